import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/**
 * What the queries of performance.py cost Apache Phoenix: {@code ZOOKEEPER-HOST:PORT FILE PROCESS}. Makes the table, loads the rows of the file, compacts
 * them, asks. Of each query it prints {@code asked|NAME|median ms|ms of cores of PROCESS, which is HBase's|ms of cores of this one}.
 */
public class Bench {
  private static final TableName TABLE = TableName.valueOf("EVENTS");
  private static final int TIMES = 5;
  private static final int ROWS_A_COMMIT = 2000;
  /** Both JVMs have compiled what they run by then. */
  private static final long WARM_UP_MS = 20_000;
  private static final long COMPACTION_MS = 600_000;

  /** A query, and which of the groups that it counts a row is of: null where it does not count it. */
  private record Query(String name, String sql, Function<String[], String> group, Map<String, Long> counts) {
    Query(String name, String sql, Function<String[], String> group) {
      this(name, sql, group, new TreeMap<>());
    }

    void add(String[] row) {
      String of = group.apply(row);
      if (of != null) {
        counts.merge(of, 1L, Long::sum);
      }
    }

    void ask(Connection connection) throws SQLException {
      Map<String, Long> answer = new TreeMap<>();
      try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
        boolean isOne = rows.getMetaData().getColumnCount() == 1;
        while (rows.next()) {
          // Of a day its date is left.
          String of = isOne ? ALL : rows.getString(1).replaceFirst(" 00:00:00.*", "");
          answer.put(of, rows.getLong(isOne ? 1 : 2));
        }
      }
      if (!answer.equals(counts)) {
        throw new IllegalStateException(sql + ": " + answer + " instead of " + counts);
      }
    }
  }

  private static final String ALL = "all";
  private static final List<Query> QUERIES = List.of(
      new Query("count of all rows", "select count(*) from events", row -> ALL),
      new Query("by the key's first column", "select host, count(*) from events group by host", row -> row[0]),
      new Query("by the key's second column", "select domain, count(*) from events group by domain", row -> row[1]),
      new Query("by day", "select trunc(at, 'DAY'), count(*) from events group by trunc(at, 'DAY')",
          row -> row[3].substring(0, 10)),
      new Query("count with a filter on a cell", "select count(*) from events where core < 10",
          row -> Integer.parseInt(row[5]) < 10 ? ALL : null));

  public static void main(String[] args) throws Exception {
    String[] quorum = args[0].split(":");
    long hbase = Long.parseLong(args[2]), self = ProcessHandle.current().pid();
    try (Connection connection = DriverManager.getConnection("jdbc:phoenix:" + args[0])) {
      long start = System.nanoTime(), cpu = cpuMs(hbase), own = cpuMs(self);
      long rows = load(connection, Path.of(args[1]));
      System.out.printf("loaded|%d|%.1f|%.1f|%.1f%n", rows, (System.nanoTime() - start) / 1e9, (cpuMs(hbase) - cpu) / 1e3,
          (cpuMs(self) - own) / 1e3);
      Configuration conf = HBaseConfiguration.create();
      conf.set("hbase.zookeeper.quorum", quorum[0]);
      conf.set("hbase.zookeeper.property.clientPort", quorum[1]);
      start = System.nanoTime();
      try (org.apache.hadoop.hbase.client.Connection plain = ConnectionFactory.createConnection(conf);
          Admin admin = plain.getAdmin()) {
        compact(admin);
        try (Statement statement = connection.createStatement()) {
          statement.execute("update statistics events");
        }
        System.out.printf("compacted|%.1f|%d%n", (System.nanoTime() - start) / 1e9, megabytes(admin));
      }
      long warm = System.nanoTime() + WARM_UP_MS * 1_000_000;
      do {
        for (Query query : QUERIES) {
          query.ask(connection);
        }
      } while (System.nanoTime() < warm);
      for (Query query : QUERIES) {
        measure(connection, query, hbase, self);
      }
    }
    // The driver leaves threads behind.
    System.exit(0);
  }

  private static long load(Connection connection, Path file) throws Exception {
    try (Statement statement = connection.createStatement()) {
      // performance.py has a DATE in its key too: it is of milliseconds, as the rows are.
      statement.execute("create table events (host char(2) not null, domain varchar not null, feature varchar not null, "
          + "at date not null, n bigint not null, core integer, db integer, visitors integer "
          + "constraint pk primary key (host, domain, feature, at, n)) split on ('EU', 'NA')");
    }
    connection.setAutoCommit(false);
    long rows = 0;
    try (BufferedReader lines = Files.newBufferedReader(file);
        PreparedStatement upsert = connection.prepareStatement("upsert into events values (?, ?, ?, ?, ?, ?, ?, ?)")) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] row = line.split(",");
        for (int column = 0; column < 3; column++) {
          upsert.setString(column + 1, row[column]);
        }
        upsert.setDate(4, new Date(Timestamp.valueOf(row[3]).getTime()));
        upsert.setLong(5, Long.parseLong(row[4]));
        for (int column = 5; column < 8; column++) {
          upsert.setInt(column + 1, Integer.parseInt(row[column]));
        }
        upsert.executeUpdate();
        QUERIES.forEach(query -> query.add(row));
        if (++rows % ROWS_A_COMMIT == 0) {
          connection.commit();
        }
      }
    }
    connection.commit();
    return rows;
  }

  /** Has all rows in one file of each region. */
  private static void compact(Admin admin) throws Exception {
    admin.flush(TABLE);
    long asked = System.currentTimeMillis();
    admin.majorCompact(TABLE);
    while (!isCompacted(admin, asked)) {
      if (System.currentTimeMillis() - asked > COMPACTION_MS) {
        throw new IllegalStateException("no end of the compaction");
      }
      Thread.sleep(200);
    }
  }

  private static boolean isCompacted(Admin admin, long since) throws Exception {
    for (ServerName server : admin.getRegionServers()) {
      for (RegionMetrics region : admin.getRegionMetrics(server, TABLE)) {
        if (region.getStoreFileCount() != 1 || region.getLastMajorCompactionTimestamp() < since) {
          return false;
        }
      }
    }
    return admin.getCompactionState(TABLE) == CompactionState.NONE;
  }

  private static long megabytes(Admin admin) throws Exception {
    double sum = 0;
    for (ServerName server : admin.getRegionServers()) {
      for (RegionMetrics region : admin.getRegionMetrics(server, TABLE)) {
        sum += region.getStoreFileSize().get(org.apache.hadoop.hbase.Size.Unit.MEGABYTE);
      }
    }
    return Math.round(sum);
  }

  private static void measure(Connection connection, Query query, long hbase, long self) throws Exception {
    double[] times = new double[TIMES];
    long cpu = cpuMs(hbase), own = cpuMs(self);
    for (int at = 0; at < TIMES; at++) {
      long start = System.nanoTime();
      query.ask(connection);
      times[at] = (System.nanoTime() - start) / 1e6;
    }
    double used = (double) (cpuMs(hbase) - cpu) / TIMES, usedHere = (double) (cpuMs(self) - own) / TIMES;
    Arrays.sort(times);
    System.out.printf("asked|%s|%.1f|%.0f|%.0f%n", query.name(), times[TIMES / 2], used, usedHere);
  }

  /** Time of cores that a process has used, user and system: the 14th and 15th field, of which the second may hold anything. */
  private static long cpuMs(long process) throws Exception {
    String line = Files.readString(Path.of("/proc/" + process + "/stat"));
    String[] fields = line.substring(line.lastIndexOf(')') + 2).split(" ");
    return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * 10;
  }
}
