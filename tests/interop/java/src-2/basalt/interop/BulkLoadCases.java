package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SecureBulkLoadClient;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/**
 * Bulk load: files as HFileOutputFormat2 writes them, loaded with {@code BulkLoadHFiles}, HBase's own tool, and by single
 * requests where the tool would not ask so.
 */
final class BulkLoadCases {
  private static Configuration conf;
  private static FileSystem fs;
  private static Path scratch;

  private BulkLoadCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    conf = server.configuration();
    fs = FileSystem.getLocal(conf);
    scratch = new Path(java.nio.file.Files.createTempDirectory("bulk-load").toUri());
    try {
      tool(check, server);
      meaning(check, server);
      requests(check, server);
    } finally {
      fs.delete(scratch, true);
    }
  }

  /** A new output directory of a job. */
  private static Path output(String name) {
    return new Path(scratch, name);
  }

  /** One file with the cell {@code row f:q@ts=value} for each row. */
  private static Path file(Path dir, String family, String name, long ts, String value, String... rows)
    throws IOException {
    Path path = new Path(new Path(dir, family), name);
    StoreFileWriter writer = new StoreFileWriter.Builder(conf, new CacheConfig(conf), fs).withFilePath(path)
      .withBloomType(BloomType.ROW).withMaxKeyCount(rows.length)
      .withFileContext(new HFileContextBuilder().withIncludesTags(true).build()).build();
    for (String row : rows) {
      writer.append(new KeyValue(b(row), b(family), b("q"), ts, b(value)));
    }
    writer.appendFileInfo(HStoreFile.BULKLOAD_TIME_KEY, Bytes.toBytes(System.currentTimeMillis()));
    writer.appendFileInfo(HStoreFile.BULKLOAD_TASK_KEY, b("attempt_1"));
    writer.appendFileInfo(HStoreFile.MAJOR_COMPACTION_KEY, Bytes.toBytes(true));
    writer.appendFileInfo(HStoreFile.EXCLUDE_FROM_MINOR_COMPACTION_KEY, Bytes.toBytes(false));
    writer.appendTrackedTimestampsToMetadata();
    writer.close();
    return path;
  }

  private static String[] range(int from, int to) {
    List<String> rows = new ArrayList<>();
    for (int i = from; i < to; i++) {
      rows.add(String.format("r%03d", i));
    }
    return rows.toArray(new String[0]);
  }

  private static int load(TableName table, Path dir, String... settings) throws IOException {
    Configuration own = new Configuration(conf);
    for (int i = 0; i < settings.length; i += 2) {
      own.set(settings[i], settings[i + 1]);
    }
    return BulkLoadHFiles.create(own).bulkLoad(table, dir).size();
  }

  /**
   * HBase's tool looks once, before it begins, whether every region in hbase:meta has a server. Those of a split have none until they are open, in
   * HBase as well.
   */
  private static void loadWhileRegionsChange(TableName table, Path dir) throws IOException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (true) {
      try {
        load(table, dir);
        return;
      } catch (TableNotFoundException e) {
        if (!e.getMessage().contains("is not currently available") || System.nanoTime() > end) {
          throw e;
        }
      }
    }
  }

  private static int files(Path dir) throws IOException {
    int count = 0;
    for (var it = fs.listFiles(dir, true); it.hasNext();) {
      it.next();
      count++;
    }
    return count;
  }

  private static String all(Table table) throws IOException {
    StringBuilder s = new StringBuilder();
    try (ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result result : scanner) {
        s.append(s.length() == 0 ? "" : " ").append(Rows.text(result.getRow())).append('/').append(Rows.cells(result));
      }
    }
    return s.toString();
  }

  private static void tool(Check check, Server server) {
    check.run("two files into one region", () -> {
      TableName t = server.table("bulk", "f");
      Path dir = output("one");
      file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "a", range(0, 50));
      file(dir, "f", "1123456789abcdef0123456789abcdef", 5, "b", range(50, 100));
      same("files", 2, load(t, dir));
      try (Table table = server.connection.getTable(t)) {
        same("rows", 100, Rows.count(table, new Scan()));
        same("first", "f:q=a", Rows.cells(table.get(new Get(b("r000")))));
        same("last", "f:q=b", Rows.cells(table.get(new Get(b("r099")))));
        same("missing", "", Rows.cells(table.get(new Get(b("r100")))));
      }
      // HBase moves within one HDFS and copies everywhere else
      yes("moved or copied, as a whole", files(dir) == 0 || files(dir) == 2);
    });
    check.run("families together", () -> {
      TableName t = server.split("bulkfam", new String[] { "r050" }, "f", "g");
      Path dir = output("families");
      file(dir, "f", "a1", 5, "f", range(0, 50));
      file(dir, "f", "a2", 5, "f", range(50, 100));
      file(dir, "g", "a1", 5, "g", range(0, 50));
      file(dir, "g", "a2", 5, "g", range(50, 100));
      load(t, dir);
      try (Table table = server.connection.getTable(t)) {
        same("rows", 100, Rows.count(table, new Scan()));
        same("a row", "f:q=f g:q=g", Rows.cells(table.get(new Get(b("r050")))));
      }
    });
    check.run("the tool splits files at region boundaries", () -> {
      TableName t = server.split("bulksplit", new String[] { "r020", "r040", "r060" }, "f");
      Path dir = output("split");
      file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(10, 70));
      load(t, dir);
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        same("rows", 60, Rows.count(table, new Scan()));
        for (String row : List.of("r010", "r019", "r020", "r039", "r040", "r059", "r060", "r069")) {
          same(row, "f:q=v", Rows.cells(table.get(new Get(b(row)))));
        }
        same("regions", 4, admin.getRegions(t).size());
      }
    });
    check.run("a copy leaves the files", () -> {
      TableName t = server.table("bulkcopy", "f");
      Path dir = output("copy");
      file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      load(t, dir, BulkLoadHFiles.ALWAYS_COPY_FILES, "true");
      load(t, dir, BulkLoadHFiles.ALWAYS_COPY_FILES, "true");
      same("still there", 1, files(dir));
      try (Table table = server.connection.getTable(t)) {
        same("rows", 10, Rows.count(table, new Scan()));
      }
    });
    check.run("without sequence ids", () -> {
      TableName t = server.table("bulknoseq", "f");
      Path dir = output("noseq");
      file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "loaded", range(0, 10));
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r003", "f:q@9=put"));
        load(t, dir, BulkLoadHFiles.ASSIGN_SEQ_IDS, "false");
        same("rows", 10, Rows.count(table, new Scan()));
        same("newer by time", "f:q=put", Rows.cells(table.get(new Get(b("r003")))));
      }
    });
    check.run("an unknown family", () -> {
      TableName t = server.table("bulkunknown", "f");
      Path dir = output("unknown");
      file(dir, "x", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      fails("tool", IOException.class, () -> load(t, dir));
      same("untouched", 1, files(dir));
    });
    check.run("the tool makes the table", () -> {
      TableName t = server.name("bulkmake");
      Path dir = output("make");
      file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      load(t, dir);
      try (Table table = server.connection.getTable(t)) {
        same("rows", 10, Rows.count(table, new Scan()));
      }
    });
  }

  private static void meaning(Check check, Server server) {
    check.run("order among puts and loads of one timestamp", () -> {
      TableName t = server.table("bulkorder", "f");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        table.put(put("a", "f:q@5=put1"));
        table.put(put("b", "f:q@5=put1"));
        table.put(put("c", "f:q@5=put1"));
        Path first = output("order1");
        file(first, "f", "0123456789abcdef0123456789abcdef", 5, "load1", "b", "c", "d");
        load(t, first);
        same("a load is newer than what was before", "a/f:q=put1 b/f:q=load1 c/f:q=load1 d/f:q=load1", all(table));
        table.put(put("c", "f:q@5=put2"));
        same("and older than what comes", "a/f:q=put1 b/f:q=load1 c/f:q=put2 d/f:q=load1", all(table));
        Path second = output("order2");
        file(second, "f", "0123456789abcdef0123456789abcdef", 5, "load2", "d");
        load(t, second);
        String last = "a/f:q=put1 b/f:q=load1 c/f:q=put2 d/f:q=load2";
        same("a later load is newer", last, all(table));
        admin.flush(t);
        same("after a flush", last, all(table));
        admin.majorCompact(t);
        Maintenance.await("one file", () -> {
          int files = 0;
          for (var metrics : admin.getRegionMetrics(admin.getRegionServers().iterator().next(), t)) {
            files += metrics.getStoreFileCount();
          }
          return files == 1;
        });
        same("after a compaction", last, all(table));
      }
    });
    check.run("deletes before and after", () -> {
      TableName t = server.table("bulkdelete", "f");
      try (Table table = server.connection.getTable(t)) {
        table.delete(new Delete(b("a")).addColumns(b("f"), b("q"), 9));
        Path dir = output("delete");
        file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", "a", "b", "c");
        load(t, dir);
        table.delete(new Delete(b("b")).addColumn(b("f"), b("q"), 5));
        same("rows", "c/f:q=v", all(table));
      }
    });
    check.run("counting and checking on loaded values", () -> {
      TableName t = server.table("bulkcas", "f");
      try (Table table = server.connection.getTable(t)) {
        Path dir = output("cas");
        file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "\0\0\0\0\0\0\0\7", "n");
        load(t, dir);
        same("sum", 10L, table.incrementColumnValue(b("n"), b("f"), b("q"), 3));
        same("one cell", 1, table.get(new Get(b("n")).addColumn(b("f"), b("q"))).size());
        yes("checked", table.checkAndMutate(b("n"), b("f")).qualifier(b("q")).ifEquals(Bytes.toBytes(10L))
          .thenDelete(new Delete(b("n"))));
      }
    });
    check.run("a scanner of before sees no half of a load", () -> {
      TableName t = server.table("bulkscan", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 40; i += 2) {
          table.put(put(String.format("r%03d", i), "f:q=put", "g:q=put"));
        }
        Path dir = output("scan");
        file(dir, "f", "0123456789abcdef0123456789abcdef", Long.MAX_VALUE - 10, "load", range(0, 40));
        file(dir, "g", "0123456789abcdef0123456789abcdef", Long.MAX_VALUE - 10, "load", range(0, 40));
        try (ResultScanner scanner = table.getScanner(new Scan().setCaching(3))) {
          scanner.next();
          load(t, dir);
          for (Result result : scanner) {
            same(Rows.text(result.getRow()), Rows.text(CellUtil.cloneValue(result.rawCells()[0])),
              Rows.text(CellUtil.cloneValue(result.rawCells()[1])));
          }
        }
        same("rows after", 40, Rows.count(table, new Scan()));
      }
    });
  }

  /** A table's only region and the server that has it. */
  private static final class Target {
    final ClusterConnection connection;
    final ClientService.BlockingInterface stub;
    final byte[] region;
    final SecureBulkLoadClient client;

    Target(Server server, TableName table) throws IOException {
      connection = (ClusterConnection) server.connection;
      var location = connection.getRegionLocator(table).getRegionLocation(HConstants.EMPTY_START_ROW, true);
      stub = connection.getClient(location.getServerName());
      region = location.getRegion().getRegionName();
      client = new SecureBulkLoadClient(conf, connection.getTable(table));
    }

    boolean load(String token, boolean copy, Object... familiesAndPaths) throws IOException {
      List<Pair<byte[], String>> paths = new ArrayList<>();
      for (int i = 0; i < familiesAndPaths.length; i += 2) {
        paths.add(new Pair<>(b((String) familiesAndPaths[i]), familiesAndPaths[i + 1].toString()));
      }
      return client.secureBulkLoadHFiles(stub, paths, region, true, null, token, copy);
    }
  }

  private static void requests(Check check, Server server) {
    check.run("staging directories", () -> {
      TableName t = server.table("bulkstage", "f");
      Target target = new Target(server, t);
      String token = target.client.prepareBulkLoad(target.connection);
      Path dir = new Path(token);
      yes("made: " + token, fs.exists(dir));
      same("below staging", "staging", dir.getParent().getName());
      yes("named: " + dir.getName(),
        dir.getName().matches(System.getProperty("user.name") + "__" + t.getNameAsString() + "__[0-9a-v]+"));
      Path source = file(output("stage"), "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      yes("loaded", target.load(token, false, "f", source));
      target.client.cleanupBulkLoad(target.connection, token);
      yes("removed", !fs.exists(dir));
      target.client.cleanupBulkLoad(target.connection, token);
    });
    check.run("with a token every failure is 'not loaded'", () -> {
      TableName t = server.split("bulktoken", new String[] { "r050" }, "f");
      Target target = new Target(server, t);
      String token = target.client.prepareBulkLoad(target.connection);
      Path dir = output("token");
      Path fits = file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      Path wide = file(dir, "f", "1123456789abcdef0123456789abcdef", 5, "v", range(40, 60));
      Path end = file(dir, "f", "4123456789abcdef0123456789abcdef", 5, "v", range(40, 51));
      Path empty = file(dir, "f", "2123456789abcdef0123456789abcdef", 5, "v");
      Path text = new Path(dir, "f/3123456789abcdef0123456789abcdef");
      try (var out = fs.create(text)) {
        out.write(new byte[1000]);
      }
      same("rows of two regions", false, target.load(token, false, "f", fits, "f", wide));
      same("the end is not in it", false, target.load(token, false, "f", end));
      same("an unknown family", false, target.load(token, false, "f", fits, "x", fits));
      same("a file that is not there", false, target.load(token, false, "f", fits, "f", new Path(dir, "f/no")));
      same("a file without cells", false, target.load(token, false, "f", fits, "f", empty));
      same("no HFile", false, target.load(token, false, "f", fits, "f", text));
      yes("untouched", fs.exists(fits) && fs.exists(wide) && fs.exists(text));
      try (Table table = server.connection.getTable(t)) {
        same("rows", 0, Rows.count(table, new Scan()));
        same("loaded", true, target.load(token, false, "f", fits));
        same("again", fs.exists(fits), target.load(token, false, "f", fits));
        same("rows", 10, Rows.count(table, new Scan()));
      }
      target.client.cleanupBulkLoad(target.connection, token);
    });
    check.run("without a token failures are exceptions", () -> {
      TableName t = server.split("bulkplain", new String[] { "r050" }, "f");
      Target target = new Target(server, t);
      Path dir = output("plain");
      Path fits = file(dir, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      Path wide = file(dir, "f", "1123456789abcdef0123456789abcdef", 5, "v", range(40, 60));
      same("rows of two regions", false, target.load(null, false, "f", fits, "f", wide));
      fails("an unknown family", DoNotRetryIOException.class,
        () -> target.load(null, false, "x", fits));
      fails("a file that is not there", FileNotFoundException.class,
        () -> target.load(null, false, "f", new Path(dir, "f/no")));
      yes("untouched", fs.exists(fits) && fs.exists(wide));
      try (Table table = server.connection.getTable(t)) {
        same("loaded", true, target.load(null, false, "f", fits));
        same("rows", 10, Rows.count(table, new Scan()));
      }
    });
    check.run("a region that moved on", () -> {
      TableName t = server.table("bulkgone", "f");
      Target target = new Target(server, t);
      Path source = file(output("gone"), "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 10));
      try (Admin admin = server.connection.getAdmin()) {
        admin.disableTable(t);
        fails("not serving", org.apache.hadoop.hbase.NotServingRegionException.class,
          () -> target.load(null, false, "f", source));
        admin.enableTable(t);
      }
      yes("untouched", fs.exists(source));
    });
    check.run("loads into a table that splits meanwhile", () -> {
      TableName t = server.table("bulkrace", "f");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        Path first = output("race1");
        file(first, "f", "0123456789abcdef0123456789abcdef", 5, "v", range(0, 100));
        load(t, first);
        RegionInfo before = admin.getRegions(t).get(0);
        var split = admin.splitRegionAsync(before.getRegionName(), b("r050"));
        Path second = output("race2");
        file(second, "f", "0123456789abcdef0123456789abcdef", 6, "w", range(0, 100));
        loadWhileRegionsChange(t, second);
        split.get();
        same("rows", 100, Rows.count(table, new Scan()));
        same("low", "f:q=w", Rows.cells(table.get(new Get(b("r000")))));
        same("high", "f:q=w", Rows.cells(table.get(new Get(b("r099")))));
        same("regions", 2, admin.getRegions(t).size());
      }
    });
  }
}
