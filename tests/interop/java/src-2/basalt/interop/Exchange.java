package basalt.interop;

import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;
import static basalt.interop.Rows.text;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CompressionTest;

/**
 * One stop of a root directory that travels between servers. Arguments: {@code ZOOKEEPER STEP...}; steps: {@code make}
 * (tables of every kind, some data in files, some in the log), {@code write N} (changes of round N), {@code dump FILE}
 * (everything there is, as text), {@code same FILE} (everything there is equals that dump).
 */
public final class Exchange {
  /** Those that the jars at hand can do; the servers of both kinds run from the same jars, or bring their own. */
  private static final List<Compression.Algorithm> CODECS = codecs();
  private static final BloomType[] BLOOMS = { BloomType.ROW, BloomType.ROWCOL, BloomType.NONE };
  private static final TableName DELETES = TableName.valueOf("ex_deletes");
  private static final TableName KEEP = TableName.valueOf("ex_keep");
  private static final TableName VERSIONS = TableName.valueOf("ex_versions");
  private static final TableName TTL = TableName.valueOf("ex_ttl");
  private static final TableName COUNTERS = TableName.valueOf("exns:counters");
  private static final TableName SPLIT = TableName.valueOf("ex_split");
  private static final TableName MOB = TableName.valueOf("ex_mob");
  /** Of a family that names no codec, values that pack well: whoever had the last turn wrote its newest file. */
  private static final TableName LETTERS = TableName.valueOf("ex_letters");
  /** Rows with old and with new values of a column, which compactions keep in files of their own. */
  private static final TableName TIERED = TableName.valueOf("ex_tiered");
  private static final TableName DISABLED = TableName.valueOf("ex_disabled");
  /** No column of it is written twice, nothing is deleted: no flush or compaction may change what a raw scan shows. */
  private static final String MATRIX = "ex_enc_";

  private final Server server;
  private final Admin admin;

  private Exchange(Server server) throws Exception {
    this.server = server;
    this.admin = server.connection.getAdmin();
  }

  public static void main(String[] args) throws Exception {
    Check check = new Check(null);
    try (Server server = new Server(args[0], args[0], Map.of("hbase.client.retries.number", "15"))) {
      Exchange exchange = new Exchange(server);
      for (int i = 1; i < args.length; i++) {
        switch (args[i]) {
          case "make":
            check.run("make", exchange::make);
            break;
          case "write": {
            int round = Integer.parseInt(args[++i]);
            check.run("write " + round, () -> exchange.write(round));
            break;
          }
          case "dump": {
            Path file = Path.of(args[++i]);
            check.run("dump", () -> Files.write(file, exchange.dump(), StandardCharsets.UTF_8));
            break;
          }
          case "same": {
            Path file = Path.of(args[++i]);
            check.run("every region is open on a server that lives", exchange::settled);
            check.run("everything is as it was", () -> {
              List<String> now = exchange.dump();
              try (PrintWriter out = new PrintWriter(file + ".now", StandardCharsets.UTF_8)) {
                now.forEach(out::println);
              }
              compare(Files.readAllLines(file, StandardCharsets.UTF_8), now);
            });
            break;
          }
          default:
            throw new IllegalArgumentException(args[i]);
        }
      }
    }
    System.exit(check.finish());
  }

  private static void compare(List<String> before, List<String> now) {
    TreeSet<String> lost = new TreeSet<>(before);
    now.forEach(lost::remove);
    TreeSet<String> new_ = new TreeSet<>(now);
    before.forEach(new_::remove);
    if (!lost.isEmpty() || !new_.isEmpty()) {
      throw new Check.Failure(lost.size() + " lines are gone, as: " + first(lost) + "; " + new_.size()
        + " came, as: " + first(new_));
    }
    Check.same("lines", before.size(), now.size());
  }

  private static List<String> first(TreeSet<String> lines) {
    return new ArrayList<>(lines).subList(0, Math.min(3, lines.size()));
  }

  private static List<Compression.Algorithm> codecs() {
    List<Compression.Algorithm> able = new ArrayList<>();
    for (Compression.Algorithm codec : new Compression.Algorithm[] { Compression.Algorithm.NONE,
      Compression.Algorithm.GZ, Compression.Algorithm.SNAPPY, Compression.Algorithm.LZ4 }) {
      try {
        CompressionTest.testCompression(codec);
        able.add(codec);
      } catch (java.io.IOException e) {
        System.out.println("note: without " + codec + ": HBase lacks its codec here");
      }
    }
    return able;
  }

  // ---- what there is

  /** Waits until every region of every enabled table is open on a server that is alive, as the catalog has it. */
  private void settled() throws Exception {
    String[] last = { "" };
    try {
      Maintenance.await("regions", () -> {
        last[0] = unsettled();
        return last[0].isEmpty();
      });
    } catch (Check.Failure e) {
      throw new Check.Failure(e.getMessage() + ": " + last[0]);
    }
  }

  private String unsettled() throws Exception {
    ClusterMetrics metrics = admin.getClusterMetrics();
    if (!metrics.getRegionStatesInTransition().isEmpty()) {
      return "in transition: " + metrics.getRegionStatesInTransition();
    }
    for (TableName t : admin.listTableNames()) {
      if (!admin.isTableEnabled(t)) {
        continue;
      }
      try (RegionLocator locator = server.connection.getRegionLocator(t)) {
        locator.clearRegionLocationCache();
        for (HRegionLocation location : locator.getAllRegionLocations()) {
          ServerName on = location.getServerName();
          if (on == null || !metrics.getLiveServerMetrics().containsKey(on)) {
            return location + " is not on any of " + metrics.getServersName();
          }
          if (!admin.getRegions(on).contains(location.getRegion())) {
            return location + " is not open there";
          }
        }
      }
    }
    return "";
  }

  private List<String> dump() throws Exception {
    List<String> out = new ArrayList<>();
    for (NamespaceDescriptor n : admin.listNamespaceDescriptors()) {
      out.add("namespace " + n);
    }
    for (TableDescriptor d : admin.listTableDescriptors()) {
      TableName t = d.getTableName();
      boolean enabled = admin.isTableEnabled(t);
      out.add("table " + t + (enabled ? " enabled " : " disabled ") + (admin.isTableDisabled(t) ? "" : "not disabled ")
        + d.toStringCustomizedValues());
      for (RegionInfo r : admin.getRegions(t)) {
        out.add("region " + r.getRegionNameAsString() + " to " + text(r.getEndKey()));
      }
      if (!enabled) {
        continue;
      }
      try (Table table = server.connection.getTable(t)) {
        cells(out, table, "all", new Scan().readAllVersions());
        cells(out, table, "newest, backwards", new Scan().setReversed(true));
        if (t.equals(KEEP) || t.getNameAsString().startsWith(MATRIX)) {
          cells(out, table, "raw", new Scan().setRaw(true).readAllVersions());
        }
      }
    }
    return out;
  }

  private static void cells(List<String> out, Table table, String how, Scan scan) throws Exception {
    int rows = 0;
    try (ResultScanner scanner = table.getScanner(scan.setCaching(200).setBatch(50))) {
      for (Result r : scanner) {
        rows++;
        for (Cell c : r.rawCells()) {
          out.add(table.getName() + " " + how + " " + text(CellUtil.cloneRow(c)) + "/" + text(CellUtil.cloneFamily(c))
            + ":" + text(CellUtil.cloneQualifier(c)) + "@" + c.getTimestamp() + "/" + c.getType() + "="
            + (c.getValueLength() > 40 ? Integer.toString(Arrays.hashCode(CellUtil.cloneValue(c)))
              : text(CellUtil.cloneValue(c))));
        }
      }
    }
    out.add(table.getName() + " " + how + " " + rows + " results");
  }

  // ---- what is made

  private static TableDescriptorBuilder describe(TableName t, ColumnFamilyDescriptorBuilder... families) {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(t);
    for (ColumnFamilyDescriptorBuilder f : families) {
      table.setColumnFamily(f.build());
    }
    return table;
  }

  private static ColumnFamilyDescriptorBuilder family(String name) {
    return ColumnFamilyDescriptorBuilder.newBuilder(b(name));
  }

  private void make() throws Exception {
    for (DataBlockEncoding encoding : new DataBlockEncoding[] { DataBlockEncoding.NONE, DataBlockEncoding.PREFIX,
      DataBlockEncoding.DIFF, DataBlockEncoding.FAST_DIFF, DataBlockEncoding.ROW_INDEX_V1 }) {
      matrix(encoding);
    }
    admin.createTable(describe(DELETES, family("f").setMaxVersions(5), family("g")).build(), new byte[][] { b("r050") });
    admin.createTable(
      describe(KEEP, family("f").setMaxVersions(Integer.MAX_VALUE).setKeepDeletedCells(KeepDeletedCells.TRUE)).build());
    admin.createTable(describe(VERSIONS, family("f").setMaxVersions(3), family("g").setMaxVersions(10).setMinVersions(2)
      .setTimeToLive(86_400)).setValue("owner", "exchange").build());
    admin.createTable(describe(TTL, family("f").setTimeToLive(86_400)).build());
    admin.createNamespace(NamespaceDescriptor.create("exns").addConfiguration("purpose", "exchange").build());
    admin.createTable(describe(COUNTERS, family("f")).build());
    admin.createTable(describe(SPLIT, family("f")).build());
    admin.createTable(describe(DISABLED, family("f")).build());
    admin.createTable(describe(MOB, family("f").setMobEnabled(true).setMobThreshold(50).setMaxVersions(3)).build());

    admin.createTable(describe(LETTERS, family("f")).build());
    admin.createTable(describe(TIERED, family("f")
      .setConfiguration("hbase.hstore.engine.class", "org.apache.hadoop.hbase.regionserver.CustomTieredStoreEngine")
      .setConfiguration("TIERING_CELL_QUALIFIER", "date")).build());

    changes(0, true);
    letters(0);
    tiered(0);
    large(DataBlockEncoding.NONE);
    large(DataBlockEncoding.FAST_DIFF);
    try (Table table = server.connection.getTable(SPLIT)) {
      List<Put> puts = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        puts.add(put(String.format("r%04d", i), "f:q=" + "x".repeat(i % 300)));
      }
      table.put(puts);
    }
    try (Table table = server.connection.getTable(DISABLED)) {
      table.put(put("r1", "f:q=kept while disabled"));
    }
    for (TableName t : admin.listTableNames()) {
      admin.flush(t);
    }
    split("r0500");
    admin.disableTable(DISABLED);
    Maintenance.compact(admin, TableName.valueOf(MATRIX + DataBlockEncoding.DIFF));
    Maintenance.compact(admin, KEEP);
    changes(1, false);
    admin.flush(DELETES);
    admin.flush(TableName.valueOf(MATRIX + DataBlockEncoding.PREFIX));
    changes(2, false);
  }

  private void matrix(DataBlockEncoding encoding) throws Exception {
    TableName t = TableName.valueOf(MATRIX + encoding);
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(t);
    int n = encoding.ordinal();
    for (Compression.Algorithm codec : CODECS) {
      table.setColumnFamily(family(codec.getName()).setDataBlockEncoding(encoding).setCompressionType(codec)
        .setBlocksize(2048).setMaxVersions(100).setBloomFilterType(BLOOMS[n++ % BLOOMS.length]).build());
    }
    admin.createTable(table.build(), new byte[][] { b("r100") });
  }

  /** Values as PerformanceEvaluation's, letters in runs of eight. */
  private void letters(int round) throws Exception {
    Random rng = new Random(round);
    try (Table table = server.connection.getTable(LETTERS)) {
      List<Put> puts = new ArrayList<>();
      for (int i = 0; i < 300; i++) {
        puts.add(new Put(b(String.format("r%05d", round * 200 + i))).addColumn(b("f"), b("q"), letters(rng, 1000)));
      }
      table.put(puts);
      table.put(new Put(b("s" + round)).addColumn(b("f"), b("q"), letters(rng, 3_000_000)));
    }
  }

  /** Every second row is of 2001, the others of 2030. The first compaction finds the dates, the second divides by them. */
  private void tiered(int round) throws Exception {
    try (Table table = server.connection.getTable(TIERED)) {
      List<Put> puts = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        long date = (i % 2 == 0 ? 1_000_000_000_000L : 1_900_000_000_000L) + 1000L * round + i;
        puts.add(put(String.format("r%03d", i), "f:a=" + round).addColumn(b("f"), b("date"), Bytes.toBytes(date)));
      }
      table.put(puts);
    }
    admin.flush(TIERED);
    Maintenance.compact(admin, TIERED);
    Maintenance.compact(admin, TIERED);
  }

  private static byte[] letters(Random rng, int length) {
    byte[] value = new byte[length];
    for (int at = 0; at < length; at += 8) {
      Arrays.fill(value, at, at + 8, (byte) ('A' + rng.nextInt(26)));
    }
    return value;
  }

  /** A value of each codec that is larger than the buffers of Hadoop's codecs, half of it noise: its block lies in parts. */
  private void large(DataBlockEncoding encoding) throws Exception {
    Random rng = new Random(encoding.ordinal());
    try (Table table = server.connection.getTable(TableName.valueOf(MATRIX + encoding))) {
      Put p = new Put(b("r050large"));
      for (Compression.Algorithm codec : CODECS) {
        byte[] value = letters(rng, 700_000);
        byte[] noise = new byte[value.length / 2];
        rng.nextBytes(noise);
        System.arraycopy(noise, 0, value, value.length / 4, noise.length);
        p.addColumn(b(codec.getName()), b("large"), 1_000_000L, value);
      }
      table.put(p);
    }
  }

  private void split(String row) throws Exception {
    int before = admin.getRegions(SPLIT).size();
    admin.split(SPLIT, b(row));
    Maintenance.await("split at " + row, () -> admin.getRegions(SPLIT).size() > before && admin.isTableAvailable(SPLIT));
  }

  /** Changes that depend on the round only, so that a failure can be looked at again. */
  private void write(int round) throws Exception {
    changes(10 * round, true);
    letters(round);
    admin.flush(LETTERS);
    Maintenance.compact(admin, LETTERS);
    tiered(round);
    split(String.format("r%04d", 40 * round + 10));
    for (TableName t : admin.listTableNames()) {
      // one table in three stays in memory
      if (Math.floorMod(t.hashCode() + round, 3) != 0 && admin.isTableEnabled(t)) {
        admin.flush(t);
      }
    }
    Maintenance.compact(admin, round % 2 == 0 ? DELETES : KEEP);
    Maintenance.compact(admin, MOB);
    TableName passing = TableName.valueOf("ex_round_" + round);
    admin.createTable(describe(passing, family("f")).build());
    try (Table table = server.connection.getTable(passing)) {
      table.put(put("r", "f:q=" + round));
    }
    TableName past = TableName.valueOf("ex_round_" + (round - 2));
    if (admin.tableExists(past)) {
      if (admin.isTableEnabled(past)) {
        admin.disableTable(past);
      }
      admin.deleteTable(past);
    }
    TableName resting = TableName.valueOf("ex_round_" + (round - 1));
    if (admin.tableExists(resting) && admin.isTableEnabled(resting)) {
      admin.disableTable(resting);
    }
    admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(TTL))
      .setColumnFamily(family("added" + round).build()).build());
    changes(10 * round + 1, false);
  }

  private void changes(int step, boolean large) throws Exception {
    Random rng = new Random(step);
    for (TableName t : admin.listTableNames()) {
      if (!t.getNameAsString().startsWith(MATRIX)) {
        continue;
      }
      try (Table table = server.connection.getTable(t)) {
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < (large ? 200 : 20); i++) {
          Put p = new Put(b(String.format("r%03d", large ? i : rng.nextInt(200))));
          for (Compression.Algorithm codec : CODECS) {
            byte[] value = new byte[rng.nextInt(60)];
            rng.nextBytes(value);
            p.addColumn(b(codec.getName()), b("q" + rng.nextInt(4)), 1_000_000L * step + i, value);
          }
          puts.add(p);
        }
        table.put(puts);
      }
    }
    for (TableName t : new TableName[] { DELETES, KEEP, VERSIONS, TTL }) {
      boolean hasG = admin.getDescriptor(t).hasColumnFamily(b("g"));
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 60; i++) {
          String row = String.format("r%03d", rng.nextInt(100));
          long at = 1000L * (step + 1) + i;
          int kind = t.equals(DELETES) || t.equals(KEEP) ? rng.nextInt(7) : 0;
          // the marker is older than what comes later, newer than what is there
          switch (kind) {
            case 0:
            case 1:
            case 2:
              // now: the time to live has not run out; far back: it has
              table.put(t.equals(TTL) && i % 2 == 0 ? put(row, "f:q" + i % 3 + "=" + step + "." + i)
                : put(row, "f:q" + i % 3 + "@" + at + "=" + step + "." + i));
              if (hasG) {
                table.put(put(row, "g:q" + i % 2 + "=" + step + "." + i));
              }
              break;
            case 3:
              table.delete(new Delete(b(row)).addColumns(b("f"), b("q" + i % 3), at));
              break;
            case 4:
              table.delete(new Delete(b(row)).addFamily(b("f"), at));
              break;
            case 5:
              table.delete(new Delete(b(row)).addColumn(b("f"), b("q" + i % 3), at - 1));
              break;
            default:
              table.delete(new Delete(b(row)).addFamilyVersion(b("f"), at - 1));
          }
        }
      }
    }
    try (Table table = server.connection.getTable(MOB)) {
      for (int i = 0; i < 40; i++) {
        String row = String.format("r%03d", rng.nextInt(60));
        if (i % 8 == 7) {
          table.delete(new Delete(b(row)).addColumns(b("f"), b("q"), 1000L * (step + 1) + i));
        } else {
          table.put(put(row, "f:q@" + (1000L * (step + 1) + i) + "=" + (step + "." + i + "/").repeat(i)));
        }
      }
    }
    try (Table table = server.connection.getTable(COUNTERS)) {
      for (int i = 0; i < 20; i++) {
        table.increment(new Increment(b("c" + i % 5)).addColumn(b("f"), b("n"), step + i));
        table.append(new Append(b("c" + i % 5)).addColumn(b("f"), b("s"), Bytes.toBytes("." + step)));
      }
    }
    if (!large) {
      try (Table table = server.connection.getTable(SPLIT)) {
        for (int i = 0; i < 50; i++) {
          table.put(put(String.format("r%04d", rng.nextInt(1000)), "f:step" + step + "=" + i));
        }
      }
    }
  }
}
