package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.snapshot.ExportSnapshot;
import org.apache.hadoop.util.ToolRunner;

/**
 * HBase's own ExportSnapshot between two clusters that run, there and back: what one has taken the other clones, restores and serves.
 * Arguments: {@code ZOOKEEPER ROOT OTHER_ZOOKEEPER OTHER_ROOT SCRATCH}, directories of the local file system.
 */
public final class ExportSnapshots {
  private static final TableName TABLE = TableName.valueOf("exported");
  private static final TableName COPY = TableName.valueOf("exported-copy");
  private static final int ROWS = 400;

  private final String scratch;

  private record Side(Server server, Admin admin, String root) {
  }

  private ExportSnapshots(String scratch) {
    this.scratch = scratch;
  }

  public static void main(String[] args) throws Exception {
    Check check = new Check(null);
    check.group("ExportSnapshot:");
    ExportSnapshots e = new ExportSnapshots(args[4]);
    try (Server one = new Server(args[0], args[0], Map.of()); Server other = new Server(args[2], args[2], Map.of())) {
      e.run(check, new Side(one, one.connection.getAdmin(), "file://" + args[1]),
        new Side(other, other.connection.getAdmin(), "file://" + args[3]));
    }
    System.exit(check.finish());
  }

  private void run(Check check, Side here, Side there) throws Exception {
    List<String> first = new ArrayList<>();
    List<String> second = new ArrayList<>();
    check.run("a snapshot of files, memstores and a split region goes over", () -> {
      here.admin.createTable(TableDescriptorBuilder.newBuilder(TABLE)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), new byte[][] { b("r1"), b("r2") });
      fill(here, "a");
      here.admin.flush(TABLE);
      fill(here, "b");
      here.admin.flush(TABLE);
      here.admin.split(TABLE, b("r15"));
      Maintenance.await("the split", () -> here.admin.getRegions(TABLE).size() == 4);
      fill(here, "in memory");
      try (Table table = here.server.connection.getTable(TABLE)) {
        table.delete(new Delete(b(row(7))));
      }
      here.admin.snapshot("first", TABLE);
      first.addAll(content(here, TABLE));
      fill(here, "too late");
      export("first", null, here, there);
      same("what it lists", List.of("first"), names(there));
    });
    check.run("it is cloned there", () -> {
      there.admin.cloneSnapshot("first", COPY);
      same("the clone", first, content(there, COPY));
      there.admin.cloneSnapshot("first", TABLE);
      same("the table of its own name", first, content(there, TABLE));
    });
    check.run("a table is restored from it there", () -> {
      fill(there, "to be undone");
      there.admin.majorCompact(TABLE);
      there.admin.flush(TABLE);
      there.admin.disableTable(TABLE);
      there.admin.restoreSnapshot("first");
      there.admin.enableTable(TABLE);
      same("the table", first, content(there, TABLE));
    });
    check.run("a snapshot of a table with links comes back under another name", () -> {
      fill(there, "back");
      there.admin.snapshot("second", TABLE);
      second.addAll(content(there, TABLE));
      export("second", "back", there, here);
      yes("it is listed", names(here).contains("back"));
    });
    check.run("the table that it came from is restored from it", () -> {
      here.admin.disableTable(TABLE);
      here.admin.restoreSnapshot("back");
      here.admin.enableTable(TABLE);
      same("the table", second, content(here, TABLE));
    });
    check.run("it is cloned here, and serves when the snapshot and its table are gone", () -> {
      here.admin.cloneSnapshot("back", COPY);
      here.admin.deleteSnapshot("back");
      here.admin.disableTable(TABLE);
      here.admin.deleteTable(TABLE);
      same("the clone", second, content(here, COPY));
      here.admin.majorCompact(COPY);
      same("the clone as it is compacted", second, content(here, COPY));
    });
  }

  private void export(String name, String target, Side from, Side to) throws Exception {
    // a local file system has no checksums of whole files to compare
    List<String> words = new ArrayList<>(Arrays.asList("-snapshot", name, "-copy-from", from.root, "-copy-to", to.root,
      "-mappers", "2", "-no-checksum-verify"));
    if (target != null) {
      words.addAll(List.of("-target", target));
    }
    Configuration conf = from.server.configuration("mapreduce.framework.name", "local", "fs.defaultFS", "file:///",
      "hbase.rootdir", from.root, "hadoop.tmp.dir", scratch);
    same("its exit status", 0, ToolRunner.run(conf, new ExportSnapshot(), words.toArray(String[]::new)));
  }

  private static String row(int n) {
    return String.format("r%03d", n);
  }

  private static void fill(Side side, String value) throws Exception {
    List<Put> puts = new ArrayList<>();
    for (int n = 0; n < ROWS; n++) {
      puts.add(put(row(n), "f:q=" + value + n, "g:" + value + "=" + n));
    }
    try (Table table = side.server.connection.getTable(TABLE)) {
      table.put(puts);
    }
  }

  /** Every cell with its timestamp, all versions of it. */
  private static List<String> content(Side side, TableName name) throws Exception {
    List<String> found = new ArrayList<>();
    try (Table table = side.server.connection.getTable(name);
      ResultScanner scanner = table.getScanner(new Scan().readAllVersions())) {
      for (Result result : scanner) {
        found.add(Rows.text(result.getRow()) + "{" + Rows.stamped(result) + "}");
      }
    }
    yes("there are rows", found.size() >= ROWS - 1);
    return found;
  }

  private static List<String> names(Side side) throws Exception {
    List<String> found = new ArrayList<>();
    for (SnapshotDescription snapshot : side.admin.listSnapshots()) {
      found.add(snapshot.getName());
    }
    return found;
  }
}
