package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;

import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.mob.MobConstants;
import org.apache.hadoop.hbase.util.Bytes;

/** MOB families: what a client sees of values over the threshold, before and after flushes, compactions and splits. */
final class MobCases {
  private static final int THRESHOLD = 100;

  private MobCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    check.run("values of every size through a flush and compactions", () -> {
      TableName t = table(server, "mob");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        for (int i = 0; i < 40; i++) {
          table.put(new Put(b(row(i))).addColumn(b("m"), b("q"), value(i)).addColumn(b("f"), b("q"), value(i)));
        }
        verify(table, 0);
        admin.flush(t);
        verify(table, 0);
        for (int i = 0; i < 20; i++) {
          table.delete(new Delete(b(row(i))));
        }
        admin.flush(t);
        verify(table, 20);
        Maintenance.compact(admin, t);
        verify(table, 20);
        admin.split(t, b(row(30)));
        Maintenance.await("two regions", () -> admin.getRegions(t).size() == 2 && admin.isTableAvailable(t));
        verify(table, 20);
        Maintenance.compact(admin, t);
        verify(table, 20);
        admin.disableTable(t);
        admin.enableTable(t);
        verify(table, 20);
      }
    });
    check.run("references, for those who ask", () -> {
      TableName t = table(server, "mobraw");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        table.put(new Put(b("big")).addColumn(b("m"), b("q"), 5, value(39)));
        table.put(new Put(b("small")).addColumn(b("m"), b("q"), 5, value(1)));
        admin.flush(t);
        Scan raw = new Scan();
        raw.setAttribute(MobConstants.MOB_SCAN_RAW, Bytes.toBytes(true));
        try (ResultScanner scanner = table.getScanner(raw)) {
          byte[] reference = scanner.next().value();
          same("the real length", value(39).length, Bytes.toInt(reference));
          String name = Bytes.toString(reference, 4, reference.length - 4);
          yes("a file name: " + name, name.matches("[0-9a-f]{32}[0-9]{8}[0-9a-f]{32}_[0-9a-f]{32}"));
          same("the region", admin.getRegions(t).get(0).getEncodedName(), name.substring(73));
          same("small", value(1), scanner.next().value());
        }
        raw.setAttribute(MobConstants.MOB_SCAN_REF_ONLY, Bytes.toBytes(true));
        same("references only", "big", Rows.keys(table, raw));
        Scan resolved = new Scan();
        resolved.setAttribute(MobConstants.MOB_SCAN_REF_ONLY, Bytes.toBytes(true));
        resolved.setAttribute(MobConstants.MOB_CACHE_BLOCKS, Bytes.toBytes(true));
        try (ResultScanner scanner = table.getScanner(resolved)) {
          same("resolved", value(39), scanner.next().value());
          yes("no more", scanner.next() == null);
        }
      }
    });
    check.run("append, check and versions", () -> {
      TableName t = table(server, "mobops");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        table.put(new Put(b("r")).addColumn(b("m"), b("q"), 5, value(30)));
        admin.flush(t);
        table.put(new Put(b("r")).addColumn(b("m"), b("q"), 6, value(35)));
        admin.flush(t);
        Result both = table.get(new Get(b("r")).readAllVersions());
        same("versions", 2, both.size());
        same("newest", value(35), CellUtil.cloneValue(both.rawCells()[0]));
        same("older", value(30), CellUtil.cloneValue(both.rawCells()[1]));
        yes("checked", table.checkAndMutate(b("r"), b("m")).qualifier(b("q"))
          .ifMatches(CompareOperator.EQUAL, value(35)).thenPut(new Put(b("r")).addColumn(b("m"), b("done"), b("1"))));
        table.append(new Append(b("r")).addColumn(b("m"), b("q"), b("more")));
        byte[] appended = table.get(new Get(b("r")).addColumn(b("m"), b("q"))).value();
        same("appended", Bytes.add(value(35), b("more")), appended);
        admin.flush(t);
        same("appended", appended, table.get(new Get(b("r")).addColumn(b("m"), b("q"))).value());
        table.delete(new Delete(b("r")).addColumns(b("m"), b("q")));
        admin.flush(t);
        same("deleted", "m:done=1", Rows.cells(table.get(new Get(b("r")))));
      }
    });
    check.run("a family that becomes one, and one that is no more", () -> {
      TableName t = server.table("mobalter", "m");
      try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
        table.put(new Put(b("r")).addColumn(b("m"), b("q"), value(39)));
        admin.flush(t);
        admin.modifyColumnFamily(t, mob());
        same("made", value(39), table.get(new Get(b("r"))).value());
        Maintenance.compact(admin, t);
        same("compacted", value(39), table.get(new Get(b("r"))).value());
        Scan refs = new Scan();
        refs.setAttribute(MobConstants.MOB_SCAN_REF_ONLY, Bytes.toBytes(true));
        same("moved out", "r", Rows.keys(table, refs));
      }
    });
  }

  private static org.apache.hadoop.hbase.client.ColumnFamilyDescriptor mob() {
    return ColumnFamilyDescriptorBuilder.newBuilder(b("m")).setMobEnabled(true).setMobThreshold(THRESHOLD)
      .setMaxVersions(3).build();
  }

  private static TableName table(Server server, String hint) throws Exception {
    TableName name = server.name(hint);
    try (Admin admin = server.connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(mob())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    }
    return name;
  }

  private static String row(int i) {
    return String.format("r%02d", i);
  }

  /** Around the threshold, and far over it. */
  private static byte[] value(int i) {
    byte[] value = new byte[i < 10 ? i : i < 30 ? THRESHOLD - 20 + 2 * (i - 10) : 10_000 * (i - 29)];
    Arrays.fill(value, (byte) ('a' + i % 26));
    return value;
  }

  private static void verify(Table table, int from) throws Exception {
    for (boolean reversed : new boolean[] { false, true }) {
      int count = 0;
      try (ResultScanner scanner = table.getScanner(new Scan().setReversed(reversed))) {
        for (Result result : scanner) {
          int i = reversed ? 39 - count : from + count;
          same("row", row(i), Rows.text(result.getRow()));
          for (Cell cell : result.rawCells()) {
            same("value of " + cell, value(i), CellUtil.cloneValue(cell));
          }
          same("families", 2, result.size());
          count++;
        }
      }
      same("rows", 40 - from, count);
    }
    same("one value", value(35), table.get(new Get(b(row(35))).addColumn(b("m"), b("q"))).value());
  }
}
