package basalt.interop;

import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotDisabledException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.snapshot.SnapshotCreationException;
import org.apache.hadoop.hbase.snapshot.SnapshotDoesNotExistException;
import org.apache.hadoop.hbase.snapshot.SnapshotExistsException;
import org.apache.hadoop.hbase.util.Bytes;

/** Snapshots through Admin: taken, listed, cloned, restored, deleted; and what is refused. */
final class SnapshotCases {
  private SnapshotCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    check.run("taken of an enabled and of a disabled table, listed", () -> {
      try (Admin admin = server.connection.getAdmin()) {
        TableName t = table(server, "snap_taken");
        admin.snapshot("snap_a", t);
        admin.snapshot("snap_b", t, SnapshotType.SKIPFLUSH, Map.of("TTL", 86400L));
        admin.disableTable(t);
        admin.snapshot(new SnapshotDescription("snap_c", t));
        List<String> found = new ArrayList<>();
        for (SnapshotDescription snapshot : admin.listTableSnapshots(Pattern.compile("snap_taken"), Pattern.compile("snap_[abc]"))) {
          found.add(snapshot.getName() + " " + snapshot.getType() + " " + snapshot.getTtl() + " " + snapshot.getVersion());
          same(t, snapshot.getTableName());
          yes("made now", Math.abs(System.currentTimeMillis() - snapshot.getCreationTime()) < 600_000);
        }
        found.sort(null);
        same(List.of("snap_a FLUSH 0 2", "snap_b SKIPFLUSH 86400 2", "snap_c DISABLED 0 2"), found);
        yes("done", admin.isSnapshotFinished(new SnapshotDescription("snap_a", t)));
        admin.deleteTableSnapshots(Pattern.compile("snap_taken"), Pattern.compile("snap_[ab]"));
        same(List.of("snap_c"), names(admin, "snap_[abc]"));
        admin.deleteSnapshots(Pattern.compile("snap_c"));
        same(List.of(), names(admin, "snap_[abc]"));
      }
    });
    check.run("cloned, into a namespace of its own too", () -> {
      try (Admin admin = server.connection.getAdmin()) {
        TableName t = table(server, "snap_origin");
        List<String> then = content(server, t);
        admin.snapshot("snap_clone", t);
        put(server, t, "later");
        List<String> later = content(server, t);
        TableName copy = TableName.valueOf("snap_copy");
        TableName other = TableName.valueOf("snap_ns", "copy");
        drop(admin, copy);
        drop(admin, other);
        if (!List.of(admin.listNamespaces()).contains("snap_ns")) {
          admin.createNamespace(org.apache.hadoop.hbase.NamespaceDescriptor.create("snap_ns").build());
        }
        admin.cloneSnapshot("snap_clone", copy);
        admin.cloneSnapshot("snap_clone", other);
        same(then, content(server, copy));
        same(then, content(server, other));
        same(later, content(server, t));
        Maintenance.compact(admin, t);
        Maintenance.compact(admin, copy);
        admin.split(other, b("row05"));
        Maintenance.await("split", () -> admin.getRegions(other).size() == 4 && admin.isTableAvailable(other));
        same(then, content(server, copy));
        same(then, content(server, other));
        drop(admin, t);
        same(then, content(server, copy));
        same(then, content(server, other));
        admin.snapshot("snap_of_links", other);
        TableName third = TableName.valueOf("snap_third");
        drop(admin, third);
        admin.cloneSnapshot("snap_of_links", third);
        drop(admin, other);
        same(then, content(server, third));
        refused(TableExistsException.class, () -> admin.cloneSnapshot("snap_clone", copy));
        drop(admin, third);
        admin.deleteSnapshot("snap_clone");
        admin.deleteSnapshot("snap_of_links");
        same(then, content(server, copy));
        drop(admin, copy);
        admin.deleteNamespace("snap_ns");
      }
    });
    check.run("restored, with a snapshot that fails safe and without", () -> {
      try (Admin admin = server.connection.getAdmin()) {
        TableName t = table(server, "snap_restored");
        List<String> then = content(server, t);
        admin.snapshot("snap_restore", t);
        for (boolean failSafe : new boolean[] {true, false}) {
          put(server, t, "later " + failSafe);
          admin.flush(t);
          admin.addColumnFamily(t, ColumnFamilyDescriptorBuilder.of("h"));
          Maintenance.compact(admin, t);
          refused(TableNotDisabledException.class, () -> admin.restoreSnapshot("snap_restore", failSafe));
          admin.disableTable(t);
          admin.restoreSnapshot("snap_restore", failSafe);
          admin.enableTable(t);
          same(then, content(server, t));
          same(2, admin.getDescriptor(t).getColumnFamilyCount());
          put(server, t, "once more");
          yes("it takes writes", !content(server, t).equals(then));
          admin.disableTable(t);
          admin.restoreSnapshot("snap_restore", failSafe);
          admin.enableTable(t);
          same(then, content(server, t));
        }
        same(List.of("snap_restore"), names(admin, ".*snap_restore.*"));
        admin.deleteSnapshot("snap_restore");
      }
    });
    check.run("a dropped table comes back", () -> {
      try (Admin admin = server.connection.getAdmin()) {
        TableName t = table(server, "snap_dropped");
        List<String> then = content(server, t);
        admin.snapshot("snap_drop", t);
        drop(admin, t);
        admin.restoreSnapshot("snap_drop");
        same(then, content(server, t));
        admin.deleteSnapshot("snap_drop");
      }
    });
    check.run("refusals", () -> {
      try (Admin admin = server.connection.getAdmin()) {
        TableName t = table(server, "snap_refused");
        admin.snapshot("snap_once", t);
        refused(SnapshotExistsException.class, () -> admin.snapshot("snap_once", t));
        refused(SnapshotCreationException.class, () -> admin.snapshot("snap_none", TableName.valueOf("no_such_table")));
        refused(SnapshotDoesNotExistException.class, () -> admin.deleteSnapshot("snap_nowhere"));
        refused(SnapshotDoesNotExistException.class, () -> admin.cloneSnapshot("snap_nowhere", TableName.valueOf("snap_x")));
        refused(IllegalArgumentException.class, () -> admin.snapshot("snap/bad", t));
        same(false, admin.tableExists(TableName.valueOf("snap_x")));
        admin.deleteSnapshot("snap_once");
        boolean was = admin.isSnapshotCleanupEnabled();
        same(was, admin.snapshotCleanupSwitch(false, false));
        same(false, admin.isSnapshotCleanupEnabled());
        admin.snapshotCleanupSwitch(was, false);
      }
    });
  }

  private static void same(Object expected, Object got) {
    Check.same("what came", expected, got);
  }

  private static TableName table(Server server, String name) throws Exception {
    TableName t = TableName.valueOf(name);
    try (Admin admin = server.connection.getAdmin()) {
      for (String snapshot : names(admin, "snap_.*")) {
        admin.deleteSnapshot(snapshot);
      }
      drop(admin, t);
      admin.createTable(
          TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(),
          new byte[][] {b("row10"), b("row20")});
    }
    put(server, t, "first");
    try (Admin admin = server.connection.getAdmin()) {
      admin.flush(t);
    }
    put(server, t, "second");
    return t;
  }

  private static void put(Server server, TableName t, String value) throws Exception {
    try (Table table = server.connection.getTable(t)) {
      for (int i = 0; i < 30; i++) {
        String row = String.format("row%02d", i);
        table.put(new Put(b(row)).addColumn(b("f"), b("q"), b(value + i)).addColumn(b("g"), b("q" + value.length()), b(row)));
      }
    }
  }

  private static List<String> content(Server server, TableName t) throws Exception {
    List<String> cells = new ArrayList<>();
    try (Table table = server.connection.getTable(t); ResultScanner scanner = table.getScanner(new Scan().readAllVersions())) {
      for (Result result : scanner) {
        result.listCells().forEach(cell -> cells.add(cell + "=" + Bytes.toStringBinary(cell.getValueArray(), cell.getValueOffset(),
            cell.getValueLength())));
      }
    }
    return cells.stream().map(text -> text.replaceAll("/seqid=\\d+", "")).collect(Collectors.toList());
  }

  private static List<String> names(Admin admin, String pattern) throws Exception {
    return admin.listSnapshots(Pattern.compile(pattern)).stream().map(SnapshotDescription::getName).sorted()
        .collect(Collectors.toList());
  }

  private static void drop(Admin admin, TableName t) throws Exception {
    if (admin.tableExists(t)) {
      if (admin.isTableEnabled(t)) {
        admin.disableTable(t);
      }
      admin.deleteTable(t);
    }
  }

  private static void refused(Class<? extends Exception> wanted, Check.Body body) throws Exception {
    try {
      body.run();
    } catch (Throwable t) {
      yes(wanted.getSimpleName() + ", not " + t, wanted.isInstance(t));
      return;
    }
    throw new Check.Failure("no " + wanted.getSimpleName());
  }
}
