package basalt.interop;

import static basalt.interop.Rows.b;

import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Makes the table of a client that cannot: {@code ZOOKEEPER TABLE}; family "f", three versions, boundary at "m". */
public final class MakeTable {
  private MakeTable() {
  }

  public static void main(String[] args) throws Exception {
    TableName name = TableName.valueOf(args[1]);
    try (Server server = new Server(args[0], args[0], Map.of()); Admin admin = server.connection.getAdmin()) {
      if (admin.tableExists(name)) {
        admin.disableTable(name);
        admin.deleteTable(name);
      }
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build()).build(),
        new byte[][] { b("m") });
    }
  }
}
