package basalt.interop;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/**
 * What a program on HBase's client does without SQL: it scans all rows of the table of events and computes the answer of one of the queries of
 * {@code cargo xtask sql bench=ROWS} itself. {@code HOST:PORT TABLE FAMILY QUERY TIMES}. A region is scanned by a thread of its own. Prints for each
 * time its milliseconds, those of this process's cores, and how many rows and groups there are.
 */
public final class ClientSideAnswers {
  /** A key: host (2 bytes), domain and feature (each ends with 0), milliseconds (8 bytes, sign turned round), nanoseconds (4), number (8). */
  private static final int HOST_BYTES = 2;
  private static final long DAY_MS = 86_400_000;

  private ClientSideAnswers() {
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    String[] quorum = args[0].split(":");
    conf.set("hbase.zookeeper.quorum", quorum[0]);
    conf.set("hbase.zookeeper.property.clientPort", quorum[1]);
    byte[] family = Bytes.toBytes(args[2]);
    byte[] core = Bytes.toBytes("core");
    boolean isFiltered = args[3].equals("filter");
    Function<Result, Object> group = group(args[3], family, core);
    OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      TableName table = TableName.valueOf(args[1]);
      Pair<byte[][], byte[][]> keys = connection.getRegionLocator(table).getStartEndKeys();
      ExecutorService threads = Executors.newFixedThreadPool(keys.getFirst().length);
      for (int time = 0; time < Integer.parseInt(args[4]); time++) {
        long start = System.nanoTime(), cpu = process.getProcessCpuTime();
        List<Future<Map<Object, Long>>> parts = new ArrayList<>();
        for (int i = 0; i < keys.getFirst().length; i++) {
          Scan scan = new Scan().withStartRow(keys.getFirst()[i]).withStopRow(keys.getSecond()[i]);
          if (isFiltered) {
            scan.addColumn(family, core);
          } else {
            scan.setFilter(new FirstKeyOnlyFilter());
          }
          parts.add(threads.submit(() -> {
            Map<Object, Long> groups = new HashMap<>();
            try (ResultScanner results = connection.getTable(table).getScanner(scan)) {
              for (Result row : results) {
                Object of = group.apply(row);
                if (of != null) {
                  groups.merge(of, 1L, Long::sum);
                }
              }
            }
            return groups;
          }));
        }
        Map<Object, Long> all = new HashMap<>();
        for (Future<Map<Object, Long>> part : parts) {
          part.get().forEach((of, count) -> all.merge(of, count, Long::sum));
        }
        long ms = (System.nanoTime() - start) / 1_000_000, cores = (process.getProcessCpuTime() - cpu) / 1_000_000;
        long rows = all.values().stream().mapToLong(Long::longValue).sum();
        System.out.println("answer " + ms + " " + cores + " " + rows + " " + all.size());
      }
      threads.shutdown();
    }
    System.exit(0);
  }

  /** What a row is counted by; null where it is not counted. */
  private static Function<Result, Object> group(String query, byte[] family, byte[] core) {
    switch (query) {
      case "all":
        return row -> "";
      case "first":
        return row -> Bytes.toString(row.getRow(), 0, HOST_BYTES);
      case "second":
        return row -> {
          byte[] key = row.getRow();
          return Bytes.toString(key, HOST_BYTES, end(key, HOST_BYTES) - HOST_BYTES);
        };
      case "day":
        return row -> {
          byte[] key = row.getRow();
          int at = end(key, end(key, HOST_BYTES) + 1) + 1;
          return Math.floorDiv(Bytes.toLong(key, at) ^ Long.MIN_VALUE, DAY_MS);
        };
      case "filter":
        return row -> {
          Cell cell = row.getColumnLatestCell(family, core);
          return cell != null && (Bytes.toInt(cell.getValueArray(), cell.getValueOffset()) ^ Integer.MIN_VALUE) < 10 ? "" : null;
        };
      default:
        throw new IllegalArgumentException(query);
    }
  }

  private static int end(byte[] key, int from) {
    int at = from;
    while (key[at] != 0) {
      at++;
    }
    return at;
  }
}
