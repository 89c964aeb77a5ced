package basalt.interop;

import static basalt.interop.Rows.b;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** The server under test: how to reach it, and the tables made on it in this run. */
public final class Server implements AutoCloseable {
  public final String zk;
  public final String bootstrap;
  public final Connection connection;
  private final Map<String, String> settings;
  private final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
  private final List<TableName> made = new ArrayList<>();
  private int counter;

  /** {@code zk} and {@code bootstrap} (region server or master, for the RPC registry) are host:port. */
  public Server(String zk, String bootstrap, Map<String, String> settings) throws IOException {
    this.zk = zk;
    this.bootstrap = bootstrap;
    this.settings = new TreeMap<>(settings);
    this.connection = connect();
  }

  /** A configuration for this server; {@code extra}: key, value, key, value. */
  public Configuration configuration(String... extra) {
    Configuration conf = HBaseConfiguration.create();
    int colon = zk.lastIndexOf(':');
    conf.set("hbase.zookeeper.quorum", zk.substring(0, colon));
    conf.set("hbase.zookeeper.property.clientPort", zk.substring(colon + 1));
    conf.set("hbase.client.bootstrap.servers", bootstrap);
    // 3.x asks the bootstrap servers unless told otherwise; the ZooKeeper way is the default here for both
    conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.ZKConnectionRegistry");
    conf.setInt("hbase.client.pause", 50);
    conf.setInt("hbase.client.retries.number", 10);
    conf.setInt("hbase.client.operation.timeout", 60_000);
    conf.setInt("hbase.rpc.timeout", 30_000);
    settings.forEach(conf::set);
    for (int i = 0; i < extra.length; i += 2) {
      conf.set(extra[i], extra[i + 1]);
    }
    return conf;
  }

  public Connection connect(String... extra) throws IOException {
    return ConnectionFactory.createConnection(configuration(extra));
  }

  /** A table name not used before; dropped at the end of the run. */
  public TableName name(String hint) {
    TableName name = TableName.valueOf("it_" + hint + "_" + run + "_" + counter++);
    made.add(name);
    return name;
  }

  /** Registers a table made by other means for dropping at the end. */
  public TableName adopt(TableName name) {
    made.add(name);
    return name;
  }

  /** A new table; families as "f" or "f*3" (three versions kept). */
  public TableName table(String hint, String... families) throws IOException {
    return split(hint, null, families);
  }

  public TableName split(String hint, String[] splitKeys, String... families) throws IOException {
    TableName name = name(hint);
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (String family : families) {
      int star = family.indexOf('*');
      ColumnFamilyDescriptorBuilder f =
        ColumnFamilyDescriptorBuilder.newBuilder(b(star < 0 ? family : family.substring(0, star)));
      if (star >= 0) {
        f.setMaxVersions(Integer.parseInt(family.substring(star + 1)));
      }
      table.setColumnFamily(f.build());
    }
    try (Admin admin = connection.getAdmin()) {
      if (splitKeys == null) {
        admin.createTable(table.build());
      } else {
        byte[][] keys = new byte[splitKeys.length][];
        for (int i = 0; i < keys.length; i++) {
          keys[i] = b(splitKeys[i]);
        }
        admin.createTable(table.build(), keys);
      }
    }
    return name;
  }

  @Override
  public void close() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      for (TableName name : made) {
        try {
          if (admin.tableExists(name)) {
            if (admin.isTableEnabled(name)) {
              admin.disableTable(name);
            }
            admin.deleteTable(name);
          }
        } catch (IOException e) {
          System.out.println("note: could not drop " + name + ": " + e);
        }
      }
    }
    connection.close();
  }
}
