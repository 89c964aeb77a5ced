package basalt.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/**
 * Many rows of one value, in one file a region, and how long the servers take to find the few whose value begins with some letters: {@code HOST:PORT load TABLE ROWS
 * REGIONS}, {@code HOST:PORT scan TABLE PREFIX}. A region is scanned by a thread of its own.
 */
public final class FilteredScan {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] QUALIFIER = Bytes.toBytes("v");
  private static final int VALUE_BYTES = 100;

  private FilteredScan() {
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    String[] quorum = args[0].split(":");
    conf.set("hbase.zookeeper.quorum", quorum[0]);
    conf.set("hbase.zookeeper.property.clientPort", quorum[1]);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      TableName table = TableName.valueOf(args[2]);
      if (args[1].equals("load")) {
        load(connection, table, Long.parseLong(args[3]), Integer.parseInt(args[4]));
      } else {
        scan(connection, table, Bytes.toBytes(args[3]));
      }
    }
    System.exit(0);
  }

  private static byte[] key(long row) {
    return String.format("row%017d", row).getBytes(StandardCharsets.US_ASCII);
  }

  private static void load(Connection connection, TableName table, long rows, int regions) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      byte[][] splits = new byte[regions - 1][];
      for (int i = 1; i < regions; i++) {
        splits[i - 1] = key(rows * i / regions);
      }
      TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(table)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY));
      admin.createTable(builder.build(), splits);
      ExecutorService threads = Executors.newFixedThreadPool(regions);
      List<Future<Void>> parts = new ArrayList<>();
      for (int i = 0; i < regions; i++) {
        long from = rows * i / regions, to = rows * (i + 1) / regions;
        parts.add(threads.submit((Callable<Void>) () -> {
          Random random = new Random(from);
          byte[] value = new byte[VALUE_BYTES];
          try (BufferedMutator mutator = connection.getBufferedMutator(table)) {
            for (long row = from; row < to; row++) {
              for (int at = 0; at < value.length; at++) {
                value[at] = (byte) ('a' + random.nextInt(26));
              }
              // Reading is what is measured.
              mutator.mutate(new Put(key(row)).addColumn(FAMILY, QUALIFIER, value.clone())
                  .setDurability(Durability.SKIP_WAL));
            }
          }
          return null;
        }));
      }
      for (Future<Void> part : parts) {
        part.get();
      }
      threads.shutdown();
      // By the regions' servers: HBase's master waits now and then for ever for a flush of a whole table.
      for (RegionInfo region : admin.getRegions(table)) {
        admin.flushRegion(region.getRegionName());
      }
      compact(admin, table);
    }
  }

  /** Waits until each region has one file: what is measured then has no compaction beside it. */
  private static void compact(Admin admin, TableName table) throws Exception {
    for (int tries = 0; filesOfLargestRegion(admin, table) > 1; tries++) {
      // A request is passed over while the files are in the hands of another compaction.
      if (tries % 100 == 0) {
        admin.majorCompact(table);
      }
      Thread.sleep(100);
    }
  }

  private static int filesOfLargestRegion(Admin admin, TableName table) throws Exception {
    int files = 0;
    for (ServerName server : admin.getRegionServers()) {
      for (RegionMetrics region : admin.getRegionMetrics(server, table)) {
        files = Math.max(files, region.getStoreFileCount());
      }
    }
    return files;
  }

  private static void scan(Connection connection, TableName table, byte[] prefix) throws Exception {
    Pair<byte[][], byte[][]> keys = connection.getRegionLocator(table).getStartEndKeys();
    ExecutorService threads = Executors.newFixedThreadPool(keys.getFirst().length);
    for (int time = 0; time < 5; time++) {
      long start = System.nanoTime();
      List<Future<Long>> parts = new ArrayList<>();
      for (int i = 0; i < keys.getFirst().length; i++) {
        Scan scan = new Scan().withStartRow(keys.getFirst()[i]).withStopRow(keys.getSecond()[i])
            .addColumn(FAMILY, QUALIFIER).setFilter(
                new SingleColumnValueFilter(FAMILY, QUALIFIER, CompareOperator.EQUAL, new BinaryPrefixComparator(prefix)));
        parts.add(threads.submit(() -> {
          long found = 0;
          try (ResultScanner results = connection.getTable(table).getScanner(scan)) {
            for (Result ignored : results) {
              found++;
            }
          }
          return found;
        }));
      }
      long found = 0;
      for (Future<Long> part : parts) {
        found += part.get();
      }
      System.out.println("scan " + (System.nanoTime() - start) / 1_000_000 + " " + found);
    }
    threads.shutdown();
  }
}
