package basalt.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A Basalt for tests in place of HBase's mini cluster, with the methods of HBaseTestingUtility that tests use most: another import, and
 * most tests run as they are. It starts the binary that the system property {@code basalt.binary} or the variable
 * {@code BASALT_BINARY} names, else {@code basalt} on the PATH; it lives no longer than this JVM, and its data is gone then.
 */
public class BasaltTestingUtility implements AutoCloseable {
  private static final Pattern NUMBER = Pattern.compile("\"(\\w+)\": (\\d+)");
  private static final Pattern QUORUM = Pattern.compile("\"quorum\": \"([^\"]+)\"");

  private final Configuration configuration;
  private final Map<String, String> settings = new LinkedHashMap<>();
  private final Map<String, Integer> ready = new LinkedHashMap<>();
  private Process process;
  private Connection connection;

  public BasaltTestingUtility() {
    this(HBaseConfiguration.create());
  }

  /** What clients are given; the quorum is put into it at the start. */
  public BasaltTestingUtility(Configuration configuration) {
    this.configuration = configuration;
  }

  /** A setting of the server; before the start. */
  public BasaltTestingUtility set(String key, String value) {
    settings.put(key, value);
    return this;
  }

  /** Starts the server; as HBaseTestingUtility's. */
  public BasaltTestingUtility startMiniCluster() throws Exception {
    return startMiniCluster(1);
  }

  /** The number of servers is heard and changes nothing: one process serves all regions. */
  public synchronized BasaltTestingUtility startMiniCluster(int ignored) throws Exception {
    if (process != null) {
      throw new IllegalStateException("it has been started already");
    }
    List<String> command = new ArrayList<>();
    command.add(binary());
    command.add("dev");
    command.add("--until-stdin-closes");
    settings.forEach((key, value) -> {
      command.add("-D");
      command.add(key + "=" + value);
    });
    ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().remove("HBASE_CONF_DIR");
    process = builder.start();
    String line = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
    if (line == null) {
      int status = process.waitFor();
      process = null;
      throw new IOException(command + " ended before it served: exit status " + status);
    }
    read(line);
    return this;
  }

  private static String binary() {
    String named = System.getProperty("basalt.binary", System.getenv("BASALT_BINARY"));
    return named == null ? "basalt" : named;
  }

  private void read(String line) throws IOException {
    Matcher numbers = NUMBER.matcher(line);
    while (numbers.find()) {
      ready.put(numbers.group(1), Integer.parseInt(numbers.group(2)));
    }
    Matcher quorum = QUORUM.matcher(line);
    if (!quorum.find()) {
      throw new IOException("no quorum in " + line);
    }
    configuration.set("hbase.zookeeper.quorum", quorum.group(1));
    configuration.setInt("hbase.zookeeper.property.clientPort", ready.get("zookeeper_port"));
  }

  /** Ends the server; its data is gone then. */
  public synchronized void shutdownMiniCluster() throws Exception {
    if (connection != null) {
      connection.close();
      connection = null;
    }
    if (process != null) {
      // It ends when nobody holds its input any more.
      process.getOutputStream().close();
      if (!process.waitFor(30, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
      process = null;
    }
  }

  @Override
  public void close() throws Exception {
    shutdownMiniCluster();
  }

  /** For clients. */
  public Configuration getConfiguration() {
    return configuration;
  }

  /** {@code host:port} of the ZooKeeper endpoint. */
  public String getQuorum() {
    return configuration.get("hbase.zookeeper.quorum");
  }

  /** Port of its pages. */
  public int getInfoPort() {
    return ready.get("info_port");
  }

  /** One connection for all tests. */
  public synchronized Connection getConnection() throws IOException {
    if (connection == null) {
      connection = ConnectionFactory.createConnection(configuration);
    }
    return connection;
  }

  public Admin getAdmin() throws IOException {
    return getConnection().getAdmin();
  }

  public Table createTable(TableName name, String family) throws IOException {
    return createTable(name, new String[] {family});
  }

  public Table createTable(TableName name, String[] families) throws IOException {
    byte[][] bytes = new byte[families.length][];
    for (int i = 0; i < families.length; i++) {
      bytes[i] = Bytes.toBytes(families[i]);
    }
    return createTable(name, bytes);
  }

  public Table createTable(TableName name, byte[] family) throws IOException {
    return createTable(name, new byte[][] {family});
  }

  public Table createTable(TableName name, byte[][] families) throws IOException {
    return createTable(name, families, null);
  }

  /** With the first keys of all regions but the first; {@code null}: one region. */
  public Table createTable(TableName name, byte[][] families, byte[][] splits) throws IOException {
    TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(name);
    for (byte[] family : families) {
      builder.setColumnFamily(ColumnFamilyDescriptorBuilder.of(family));
    }
    try (Admin admin = getAdmin()) {
      admin.createTable(builder.build(), splits);
    }
    return getConnection().getTable(name);
  }

  public void deleteTable(TableName name) throws IOException {
    try (Admin admin = getAdmin()) {
      if (admin.isTableEnabled(name)) {
        admin.disableTable(name);
      }
      admin.deleteTable(name);
    }
  }

  public Table truncateTable(TableName name) throws IOException {
    try (Admin admin = getAdmin()) {
      if (admin.isTableEnabled(name)) {
        admin.disableTable(name);
      }
      admin.truncateTable(name, true);
    }
    return getConnection().getTable(name);
  }

  public void flush(TableName name) throws IOException {
    try (Admin admin = getAdmin()) {
      admin.flush(name);
    }
  }

  public int countRows(Table table) throws IOException {
    int rows = 0;
    try (ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result ignored : scanner) {
        rows++;
      }
    }
    return rows;
  }
}
