package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;

/** Wrong requests: the class of exception a client relies on, at once, and nothing half done. */
final class ErrorCases {
  private ErrorCases() {
  }

  static void run(Check check, Server server) throws Exception {
    TableName t = server.table("err", "f");
    try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
      check.run("unknown family", () -> {
        fails("put", NoSuchColumnFamilyException.class, () -> table.put(put("r", "x:q=1")));
        fails("put of two families", NoSuchColumnFamilyException.class, () -> table.put(put("r", "f:q=1", "x:q=1")));
        fails("get", NoSuchColumnFamilyException.class, () -> table.get(new Get(b("r")).addFamily(b("x"))));
        fails("delete", NoSuchColumnFamilyException.class, () -> table.delete(new Delete(b("r")).addFamily(b("x"))));
        fails("scan", NoSuchColumnFamilyException.class,
          () -> Rows.count(table, new Scan().addFamily(b("x"))));
        same("nothing half done", 0, Rows.count(table, new Scan()));
      });
      check.run("unknown table", () -> {
        TableName none = TableName.valueOf("it_no_such_table");
        try (Table absent = server.connection.getTable(none)) {
          fails("get", TableNotFoundException.class, () -> Rows.get(absent, "r"));
          fails("put", TableNotFoundException.class, () -> absent.put(put("r", "f:q=1")));
          fails("scan", TableNotFoundException.class, () -> Rows.count(absent, new Scan()));
          fails("descriptor", TableNotFoundException.class, absent::getDescriptor);
        }
        fails("disable", TableNotFoundException.class, () -> admin.disableTable(none));
        fails("enable", TableNotFoundException.class, () -> admin.enableTable(none));
        fails("flush", TableNotFoundException.class, () -> admin.flush(none));
        fails("add family", TableNotFoundException.class,
          () -> admin.addColumnFamily(none, ColumnFamilyDescriptorBuilder.of("f")));
        fails("isTableEnabled", TableNotFoundException.class, () -> admin.isTableEnabled(none));
        fails("unknown namespace", Exception.class,
          () -> server.connection.getTable(TableName.valueOf("no_such_ns:t")).get(new Get(b("r"))));
      });
      check.run("cells too large", () -> {
        byte[] big = new byte[11 << 20];
        fails("refused by the client", IllegalArgumentException.class,
          () -> table.put(new Put(b("r")).addColumn(b("f"), b("q"), big)));
        try (Connection lax = server.connect("hbase.client.keyvalue.maxsize", "0"); Table own = lax.getTable(t)) {
          Throwable e = fails("refused by the server", DoNotRetryIOException.class,
            () -> own.put(new Put(b("r")).addColumn(b("f"), b("q"), big)));
          yes("says so: " + e.getMessage(), e.toString().contains("exceeds limit"));
        }
        same("nothing written", "", Rows.get(table, "r"));
      });
      check.run("a put without cells, a row too long", () -> {
        fails("no cells", IllegalArgumentException.class, () -> table.put(new Put(b("r"))));
        fails("row too long", IllegalArgumentException.class, () -> new Put(new byte[40_000]));
        fails("empty row", IllegalArgumentException.class, () -> new Put(new byte[0]));
      });
      check.run("bad descriptors are refused by the server", () -> {
        fails("time to live of zero", Exception.class,
          () -> admin.createTable(TableDescriptorBuilder.newBuilder(server.name("badttl")).setColumnFamily(
            ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setTimeToLive(0).build()).build()));
        fails("tiny region size", Exception.class,
          () -> admin.createTable(TableDescriptorBuilder.newBuilder(server.name("badsize")).setMaxFileSize(10)
            .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build()));
        fails("minimum of versions above maximum", Exception.class,
          () -> admin.createTable(TableDescriptorBuilder.newBuilder(server.name("badmin")).setColumnFamily(
            ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMinVersions(9).build()).build()));
      });
      check.run("system tables are protected", () -> {
        fails("disable meta", Exception.class, () -> admin.disableTable(TableName.META_TABLE_NAME));
        fails("delete the hbase namespace", Exception.class, () -> admin.deleteNamespace("hbase"));
        fails("delete the default namespace", Exception.class, () -> admin.deleteNamespace("default"));
      });
      check.run("a raw scan with chosen columns is refused", () -> fails("scan", Exception.class,
        () -> Rows.count(table, new Scan().setRaw(true).addColumn(b("f"), b("q")))));
      check.run("the connection is fine after all that", () -> {
        table.put(put("after", "f:q=1"));
        same("row", "f:q=1", Rows.get(table, "after"));
      });
    }
  }
}
