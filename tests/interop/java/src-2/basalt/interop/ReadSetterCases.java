package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.visibility.Authorizations;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Every setter of Get and Scan, one case each, named exactly as the inventory has it: {@code Class.method(parameters)}.
 * The coverage page counts these names.
 */
@SuppressWarnings("deprecation")
public final class ReadSetterCases {
  /** Sets one thing. */
  private interface Setting<T> {
    T on(T request) throws Exception;
  }

  /** What every row holds, newest first. */
  private static final String NEWEST = "f:a@30=3 f:b@20=x g:c@40=y";
  private static final String ALL = "f:a@30=3 f:a@20=2 f:a@10=1 f:b@20=x g:c@40=y";
  private static final String[] THREE = { "r1", "r2", "r3" };

  private ReadSetterCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    TableName t = server.table("readset", "f*5", "g*5");
    try (Table table = server.connection.getTable(t)) {
      for (String row : THREE) {
        table.put(put(row, "f:a@10=1", "f:a@20=2", "f:a@30=3", "f:b@20=x", "g:c@40=y"));
      }
      gets(check, table);
      scans(check, table);
      scanLimits(check, table);
      scanRanges(check, table);
    }
  }

  private static Permission read() {
    return Permission.newBuilder().withActions(Permission.Action.READ).build();
  }

  private static QualifierFilter onlyA() {
    return new QualifierFilter(CompareOperator.EQUAL, new BinaryComparator(b("a")));
  }

  private static void get(Check check, Table table, String setter, String expected, Setting<Get> setting) {
    check.run(setter, () -> same("row", expected, Rows.stamped(table.get(setting.on(new Get(b("r2")))))));
  }

  private static void gets(Check check, Table table) {
    get(check, table, "Get.addColumn(byte[], byte[])", "f:a@30=3", g -> g.addColumn(b("f"), b("a")));
    get(check, table, "Get.addFamily(byte[])", "g:c@40=y", g -> g.addFamily(b("g")));
    get(check, table, "Get.readAllVersions()", ALL, g -> g.readAllVersions());
    get(check, table, "Get.readVersions(int)", "f:a@30=3 f:a@20=2 f:b@20=x g:c@40=y", g -> g.readVersions(2));
    get(check, table, "Get.setACL(Map<String, Permission>)", NEWEST, g -> g.setACL(Map.of("u", read())));
    get(check, table, "Get.setACL(String, Permission)", NEWEST, g -> g.setACL("u", read()));
    get(check, table, "Get.setAttribute(String, byte[])", NEWEST, g -> g.setAttribute("mine", b("1")));
    get(check, table, "Get.setAuthorizations(Authorizations)", NEWEST,
      g -> g.setAuthorizations(new Authorizations("secret")));
    get(check, table, "Get.setCacheBlocks(boolean)", NEWEST, g -> g.setCacheBlocks(false));
    check.run("Get.setCheckExistenceOnly(boolean)", () -> {
      Result there = table.get(new Get(b("r2")).setCheckExistenceOnly(true));
      same("there", Boolean.TRUE, there.getExists());
      same("no cells", 0, there.size());
      same("not there", Boolean.FALSE, table.get(new Get(b("none")).setCheckExistenceOnly(true)).getExists());
      Get column = new Get(b("r2")).addColumn(b("f"), b("none")).setCheckExistenceOnly(true);
      same("no such column", Boolean.FALSE, table.get(column).getExists());
      Get filtered = new Get(b("r2")).setFilter(onlyA()).setCheckExistenceOnly(true);
      same("under a filter", Boolean.TRUE, table.get(filtered).getExists());
    });
    get(check, table, "Get.setClosestRowBefore(boolean)", NEWEST, g -> g.setClosestRowBefore(true));
    get(check, table, "Get.setColumnFamilyTimeRange(byte[], long, long)", "f:a@20=2 f:b@20=x g:c@40=y",
      g -> g.setColumnFamilyTimeRange(b("f"), 0, 25));
    get(check, table, "Get.setConsistency(Consistency)", NEWEST, g -> g.setConsistency(Consistency.TIMELINE));
    get(check, table, "Get.setFilter(Filter)", "f:a@30=3", g -> g.setFilter(onlyA()));
    get(check, table, "Get.setId(String)", NEWEST, g -> g.setId("me"));
    get(check, table, "Get.setIsolationLevel(IsolationLevel)", NEWEST,
      g -> g.setIsolationLevel(IsolationLevel.READ_UNCOMMITTED));
    get(check, table, "Get.setLoadColumnFamiliesOnDemand(boolean)", "f:a@30=3",
      g -> g.setLoadColumnFamiliesOnDemand(true).setFilter(onlyA()));
    get(check, table, "Get.setMaxResultsPerColumnFamily(int)", "f:a@30=3 g:c@40=y",
      g -> g.setMaxResultsPerColumnFamily(1));
    get(check, table, "Get.setMaxVersions()", ALL, g -> g.setMaxVersions());
    get(check, table, "Get.setMaxVersions(int)", "f:a@30=3 f:a@20=2 f:b@20=x g:c@40=y", g -> g.setMaxVersions(2));
    get(check, table, "Get.setPriority(int)", NEWEST, g -> g.setPriority(10));
    get(check, table, "Get.setReplicaId(int)", NEWEST, g -> g.setConsistency(Consistency.TIMELINE).setReplicaId(0));
    get(check, table, "Get.setRowOffsetPerColumnFamily(int)", "f:b@20=x", g -> g.setRowOffsetPerColumnFamily(1));
    get(check, table, "Get.setTimeRange(long, long)", "f:a@20=2 f:b@20=x", g -> g.setTimeRange(0, 25));
    get(check, table, "Get.setTimeStamp(long)", "f:a@20=2 f:b@20=x", g -> g.setTimeStamp(20));
    get(check, table, "Get.setTimestamp(long)", "f:a@10=1", g -> g.setTimestamp(10));
  }

  /** Each row's cells, one string a result; results that only say where the scan is are passed over. */
  private static List<String> rows(Table table, Scan scan) throws Exception {
    List<String> out = new ArrayList<>();
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result r : scanner) {
        if (!r.isCursor()) {
          out.add(Bytes.toString(r.getRow()) + "{" + Rows.stamped(r) + "}");
        }
      }
    }
    return out;
  }

  private static List<String> each(String cells) {
    List<String> out = new ArrayList<>();
    for (String row : THREE) {
      out.add(row + "{" + cells + "}");
    }
    return out;
  }

  private static void scan(Check check, Table table, String setter, String eachRow, Setting<Scan> setting) {
    check.run(setter, () -> same("rows", each(eachRow), rows(table, setting.on(new Scan()))));
  }

  private static void scans(Check check, Table table) {
    scan(check, table, "Scan.addColumn(byte[], byte[])", "f:a@30=3", s -> s.addColumn(b("f"), b("a")));
    scan(check, table, "Scan.addFamily(byte[])", "g:c@40=y", s -> s.addFamily(b("g")));
    scan(check, table, "Scan.readAllVersions()", ALL, s -> s.readAllVersions());
    scan(check, table, "Scan.readVersions(int)", "f:a@30=3 f:a@20=2 f:b@20=x g:c@40=y", s -> s.readVersions(2));
    scan(check, table, "Scan.setACL(Map<String, Permission>)", NEWEST, s -> s.setACL(Map.of("u", read())));
    scan(check, table, "Scan.setACL(String, Permission)", NEWEST, s -> s.setACL("u", read()));
    scan(check, table, "Scan.setAsyncPrefetch(boolean)", NEWEST, s -> s.setAsyncPrefetch(true).setCaching(1));
    scan(check, table, "Scan.setAttribute(String, byte[])", NEWEST, s -> s.setAttribute("mine", b("1")));
    scan(check, table, "Scan.setAuthorizations(Authorizations)", NEWEST,
      s -> s.setAuthorizations(new Authorizations("secret")));
    scan(check, table, "Scan.setCacheBlocks(boolean)", NEWEST, s -> s.setCacheBlocks(false));
    scan(check, table, "Scan.setCaching(int)", NEWEST, s -> s.setCaching(1));
    scan(check, table, "Scan.setColumnFamilyTimeRange(byte[], long, long)", "f:a@20=2 f:b@20=x g:c@40=y",
      s -> s.setColumnFamilyTimeRange(b("f"), 0, 25));
    scan(check, table, "Scan.setConsistency(Consistency)", NEWEST, s -> s.setConsistency(Consistency.TIMELINE));
    check.run("Scan.setEnableScanMetricsByRegion(boolean)", () -> {
      Scan s = new Scan().setEnableScanMetricsByRegion(true);
      try (ResultScanner scanner = table.getScanner(s)) {
        int n = 0;
        while (scanner.next() != null) {
          n++;
        }
        same("rows", 3, n);
        yes("metrics", scanner.getScanMetrics() != null);
        yes("of each region", !scanner.getScanMetrics().collectMetricsByRegion().isEmpty());
      }
    });
    scan(check, table, "Scan.setFamilyMap(Map<byte[], NavigableSet<byte[]>>)", "f:b@20=x g:c@40=y", s -> {
      Map<byte[], NavigableSet<byte[]>> columns = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      NavigableSet<byte[]> onlyB = new TreeSet<>(Bytes.BYTES_COMPARATOR);
      onlyB.add(b("b"));
      columns.put(b("f"), onlyB);
      columns.put(b("g"), null);
      return s.setFamilyMap(columns);
    });
    scan(check, table, "Scan.setFilter(Filter)", "f:a@30=3", s -> s.setFilter(onlyA()));
    scan(check, table, "Scan.setId(String)", NEWEST, s -> s.setId("me"));
    scan(check, table, "Scan.setIsolationLevel(IsolationLevel)", NEWEST,
      s -> s.setIsolationLevel(IsolationLevel.READ_UNCOMMITTED));
    scan(check, table, "Scan.setLoadColumnFamiliesOnDemand(boolean)", "f:a@30=3",
      s -> s.setLoadColumnFamiliesOnDemand(true).setFilter(onlyA()));
    scan(check, table, "Scan.setMaxResultsPerColumnFamily(int)", "f:a@30=3 g:c@40=y",
      s -> s.setMaxResultsPerColumnFamily(1));
    scan(check, table, "Scan.setMaxVersions()", ALL, s -> s.setMaxVersions());
    scan(check, table, "Scan.setMaxVersions(int)", "f:a@30=3 f:a@20=2 f:b@20=x g:c@40=y", s -> s.setMaxVersions(2));
    scan(check, table, "Scan.setNeedCursorResult(boolean)", NEWEST, s -> s.setNeedCursorResult(true));
    scan(check, table, "Scan.setPriority(int)", NEWEST, s -> s.setPriority(10));
    scan(check, table, "Scan.setReadType(Scan$ReadType)", NEWEST, s -> s.setReadType(Scan.ReadType.PREAD));
    scan(check, table, "Scan.setReplicaId(int)", NEWEST, s -> s.setReplicaId(0));
    scan(check, table, "Scan.setRowOffsetPerColumnFamily(int)", "f:b@20=x", s -> s.setRowOffsetPerColumnFamily(1));
    check.run("Scan.setScanMetricsEnabled(boolean)", () -> {
      try (ResultScanner scanner = table.getScanner(new Scan().setScanMetricsEnabled(true).setFilter(onlyA()))) {
        while (scanner.next() != null) {
          continue;
        }
        same("rows scanned", 3L, scanner.getScanMetrics().countOfRowsScanned.get());
        same("rows filtered", 0L, scanner.getScanMetrics().countOfRowsFiltered.get());
        yes("calls", scanner.getScanMetrics().countOfRPCcalls.get() > 0);
        same("regions", 1L, scanner.getScanMetrics().countOfRegions.get());
      }
    });
    scan(check, table, "Scan.setTimeRange(long, long)", "f:a@20=2 f:b@20=x", s -> s.setTimeRange(0, 25));
    scan(check, table, "Scan.setTimeStamp(long)", "f:a@20=2 f:b@20=x", s -> s.setTimeStamp(20));
    scan(check, table, "Scan.setTimestamp(long)", "f:a@10=1", s -> s.setTimestamp(10));
  }

  private static void list(Check check, Table table, String setter, List<String> expected, Setting<Scan> setting) {
    check.run(setter, () -> same("results", expected, rows(table, setting.on(new Scan()))));
  }

  private static void scanLimits(Check check, Table table) {
    check.run("Scan.setAllowPartialResults(boolean)", () -> {
      int cells = 0;
      int results = 0;
      Scan s = new Scan().setAllowPartialResults(true).setMaxResultSize(1);
      try (ResultScanner scanner = table.getScanner(s)) {
        for (Result r : scanner) {
          cells += r.size();
          results++;
        }
      }
      same("cells", 9, cells);
      same("one cell a result", 9, results);
    });
    list(check, table, "Scan.setBatch(int)",
      List.of("r1{f:a@30=3 f:b@20=x}", "r1{g:c@40=y}", "r2{f:a@30=3 f:b@20=x}", "r2{g:c@40=y}",
        "r3{f:a@30=3 f:b@20=x}", "r3{g:c@40=y}"),
      s -> s.setBatch(2));
    list(check, table, "Scan.setLimit(int)", each(NEWEST).subList(0, 2), s -> s.setLimit(2));
    list(check, table, "Scan.setMaxResultSize(long)", each(NEWEST), s -> s.setMaxResultSize(1));
    list(check, table, "Scan.setOneRowLimit()", each(NEWEST).subList(0, 1), s -> s.setOneRowLimit());
    list(check, table, "Scan.setReversed(boolean)",
      List.of("r3{" + NEWEST + "}", "r2{" + NEWEST + "}", "r1{" + NEWEST + "}"), s -> s.setReversed(true));
    list(check, table, "Scan.setSmall(boolean)", each(NEWEST), s -> s.setSmall(true));
    check.run("Scan.setRaw(boolean)", () -> {
      table.put(put("raw", "f:q@10=1"));
      table.delete(new org.apache.hadoop.hbase.client.Delete(b("raw")).addColumns(b("f"), b("q"), 10));
      Scan s = new Scan().withStartRow(b("raw")).withStopRow(b("rax")).readAllVersions();
      same("as usual", List.of(), rows(table, new Scan(s)));
      same("raw", List.of("raw{f:q@10/DeleteColumn= f:q@10=1}"), rows(table, s.setRaw(true)));
      table.delete(new org.apache.hadoop.hbase.client.Delete(b("raw")));
    });
  }

  private static void scanRanges(Check check, Table table) {
    List<String> all = each(NEWEST);
    list(check, table, "Scan.setRowPrefixFilter(byte[])", all.subList(1, 2), s -> s.setRowPrefixFilter(b("r2")));
    list(check, table, "Scan.setStartRow(byte[])", all.subList(1, 3), s -> s.setStartRow(b("r2")));
    list(check, table, "Scan.setStartStopRowForPrefixScan(byte[])", all.subList(2, 3),
      s -> s.setStartStopRowForPrefixScan(b("r3")));
    list(check, table, "Scan.setStopRow(byte[])", all.subList(0, 1), s -> s.setStopRow(b("r2")));
    list(check, table, "Scan.withStartRow(byte[])", all.subList(1, 3), s -> s.withStartRow(b("r2")));
    list(check, table, "Scan.withStartRow(byte[], boolean)", all.subList(2, 3), s -> s.withStartRow(b("r2"), false));
    list(check, table, "Scan.withStopRow(byte[])", all.subList(0, 1), s -> s.withStopRow(b("r2")));
    list(check, table, "Scan.withStopRow(byte[], boolean)", all.subList(0, 2), s -> s.withStopRow(b("r2"), true));
  }
}
