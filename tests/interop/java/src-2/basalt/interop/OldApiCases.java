package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/** Calls that 3.x no longer has, but that programs written for 1.x and 2.x still make. */
@SuppressWarnings("deprecation")
public final class OldApiCases {
  private OldApiCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    check.run("descriptors of 1.x, checkAndPut, checkAndDelete, checkAndMutate", () -> {
      TableName t = server.name("old");
      try (Admin admin = server.connection.getAdmin(); Table table = server.connection.getTable(t)) {
        HTableDescriptor d = new HTableDescriptor(t);
        d.addFamily(new HColumnDescriptor("f").setMaxVersions(2));
        admin.createTable(d);
        same("families", 1, admin.getTableDescriptor(t).getColumnFamilyCount());
        same("absent", true, table.checkAndPut(b("r"), b("f"), b("q"), null, put("r", "f:q=1")));
        same("present", false, table.checkAndPut(b("r"), b("f"), b("q"), null, put("r", "f:q=2")));
        same("equal", true, table.checkAndPut(b("r"), b("f"), b("q"), b("1"), put("r", "f:q=3")));
        same("greater", true, table.checkAndPut(b("r"), b("f"), b("q"), CompareOperator.GREATER, b("4"),
          put("r", "f:q=5")));
        same("mutate", true, table.checkAndMutate(b("r"), b("f")).qualifier(b("q")).ifEquals(b("5"))
          .thenMutate(Rows.mutations(put("r", "f:a=1"))));
        same("row", "f:a=1 f:q=5", Rows.get(table, "r"));
        same("delete", true, table.checkAndDelete(b("r"), b("f"), b("q"), b("5"), new Delete(b("r"))));
        same("gone", "", Rows.get(table, "r"));
      }
    });
    check.run("small scans of 1.x", () -> {
      TableName t = server.table("small", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 30; i++) {
          table.put(put(String.format("r%02d", i), "f:q=" + i));
        }
        same("small", 30, Rows.count(table, new Scan().setSmall(true).setCaching(7)));
        same("small reversed", 30, Rows.count(table, new Scan().setSmall(true).setReversed(true).setCaching(7)));
        same("range", "r03,r04", Rows.keys(table, new Scan(b("r03"), b("r05")).setSmall(true)));
      }
    });
    check.run("compact, flush, split through the old forms", () -> {
      TableName t = server.table("oldmaint", "f");
      try (Admin admin = server.connection.getAdmin(); Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 100; i++) {
          table.put(put(String.format("r%03d", i), "f:q=" + i));
        }
        for (var r : admin.getTableRegions(t)) {
          admin.flushRegion(r.getRegionName());
          admin.splitRegionAsync(r.getRegionName(), b("r050")).get();
        }
        Maintenance.await("two regions", () -> admin.getTableRegions(t).size() == 2);
        same("rows", 100, Rows.count(table, new Scan()));
      }
    });
  }
}
