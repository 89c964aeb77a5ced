import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.postgresql.PGConnection;

/**
 * What pgJDBC does with basalt-sql. One line for each case: {@code ok NAME} or {@code FAILED NAME: why}. Run by {@code cargo xtask sql}; by
 * hand: {@code java -cp postgresql.jar Suite.java PORT}.
 */
public class Suite {
  interface Case {
    void run(Connection connection) throws Exception;
  }

  private static String url;

  private static void equal(Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  private static void test(String name, Case work) {
    try (Connection connection = DriverManager.getConnection(url)) {
      work.run(connection);
      System.out.println("ok jdbc_" + name);
    } catch (Throwable e) {
      System.out.println(("FAILED jdbc_" + name + ": " + e).replace('\n', ' '));
    }
  }

  private static void writes(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("drop table if exists jdbc");
      statement.execute("create table jdbc (id integer, part text, amount numeric(10,2), at timestamp, d date, ok boolean,"
          + " raw bytea, f double precision, n bigint, primary key (id, part))");
    }
    String insert = "insert into jdbc values (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(insert)) {
      for (int id = 0; id < 50; id++) {
        statement.setInt(1, id);
        statement.setString(2, "p" + id % 5);
        statement.setBigDecimal(3, new BigDecimal("12.50").add(BigDecimal.valueOf(id)));
        statement.setTimestamp(4, Timestamp.valueOf("2024-01-02 03:04:05.678"));
        statement.setDate(5, Date.valueOf("2024-01-02"));
        statement.setBoolean(6, id % 2 == 0);
        statement.setBytes(7, new byte[] {0, (byte) id});
        statement.setDouble(8, id / 8.0);
        statement.setLong(9, id * 1_000_000_000L);
        statement.addBatch();
      }
      equal(Arrays.stream(statement.executeBatch()).sum(), 50);
    }
  }

  /** From the fifth execution on the driver asks for binary values. */
  private static void executesOften(Connection connection) throws SQLException {
    String one = "select amount, at, d, ok, raw, f, n, part from jdbc where id = ? and part = ?";
    String some = "select amount, at, d, ok, raw, f, n, part from jdbc where id = ? and part >= ?";
    for (String sql : List.of(one, some)) {
      try (PreparedStatement statement = connection.prepareStatement(sql)) {
        for (int id = 0; id < 12; id++) {
          statement.setInt(1, id);
          statement.setString(2, "p" + id % 5);
          try (ResultSet rows = statement.executeQuery()) {
            equal(rows.next(), true);
            equal(rows.getBigDecimal(1), new BigDecimal("12.50").add(BigDecimal.valueOf(id)));
            equal(rows.getTimestamp(2), Timestamp.valueOf("2024-01-02 03:04:05.678"));
            equal(rows.getDate(3), Date.valueOf("2024-01-02"));
            equal(rows.getBoolean(4), id % 2 == 0);
            equal(rows.getBytes(5)[1], (byte) id);
            equal(rows.getDouble(6), id / 8.0);
            equal(rows.getLong(7), id * 1_000_000_000L);
            equal(rows.getString(8), "p" + id % 5);
            equal(rows.next(), false);
          }
        }
      }
    }
  }

  private static void fetchesInParts(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(7);
      List<Integer> found = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery("select id from jdbc order by id")) {
        while (rows.next()) {
          found.add(rows.getInt(1));
        }
      }
      equal(found.size(), 50);
      equal(found.get(49), 49);
    }
    connection.commit();
  }

  private static List<String> strings(ResultSet rows, String column) throws SQLException {
    List<String> found = new ArrayList<>();
    while (rows.next()) {
      found.add(rows.getString(column));
    }
    rows.close();
    return found;
  }

  private static void describesTables(Connection connection) throws SQLException {
    DatabaseMetaData of = connection.getMetaData();
    equal(of.getDatabaseProductName(), "PostgreSQL");
    equal(strings(of.getTables(null, "public", "jdbc", new String[] {"TABLE"}), "TABLE_NAME"), List.of("jdbc"));
    List<String> columns = List.of("id", "part", "amount", "at", "d", "ok", "raw", "f", "n");
    equal(strings(of.getColumns(null, "public", "jdbc", "%"), "COLUMN_NAME"), columns);
  }

  private static void copies(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.execute("drop table if exists jdbc_copied");
      statement.execute("create table jdbc_copied (k integer primary key, v text)");
    }
    var copies = connection.unwrap(PGConnection.class).getCopyAPI();
    StringBuilder text = new StringBuilder();
    for (int k = 0; k < 3000; k++) {
      text.append(k).append(",\"v,").append(k).append("\"\n");
    }
    equal(copies.copyIn("copy jdbc_copied from stdin csv", new StringReader(text.toString())), 3000L);
    StringWriter out = new StringWriter();
    equal(copies.copyOut("copy (select * from jdbc_copied order by k) to stdout csv", out), 3000L);
    equal(out.toString(), text.toString());
    try {
      copies.copyIn("copy jdbc_copied from stdin csv", new StringReader("1,a\nx,b\n"));
      throw new AssertionError("no error");
    } catch (SQLException e) {
      equal(e.getSQLState(), "22P02");
      equal(e.getMessage().contains("line 2"), true);
    }
  }

  private static void returnsKeys(Connection connection) throws SQLException {
    String sql = "insert into jdbc (id, part, n) values (?, ?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(sql, new String[] {"id", "n"})) {
      statement.setInt(1, 1000);
      statement.setString(2, "x");
      statement.setLong(3, 7);
      equal(statement.executeUpdate(), 1);
      try (ResultSet keys = statement.getGeneratedKeys()) {
        equal(keys.next(), true);
        equal(keys.getInt("id"), 1000);
        equal(keys.getLong("n"), 7L);
      }
    }
  }

  private static void stopsQueries(Connection connection) throws SQLException {
    String numbers = "with n as (select * from (values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) as v(x))"
        + " select count(*) from n a, n b, n c, n d, n e, n f, n g, n h, n i, n j"
        + " where a.x + b.x + c.x + d.x + e.x + f.x + g.x + h.x + i.x + j.x > 80";
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      long start = System.nanoTime();
      try {
        statement.executeQuery(numbers);
        throw new AssertionError("no error");
      } catch (SQLException e) {
        equal(e.getSQLState(), "57014");
      }
      equal((System.nanoTime() - start) / 1_000_000 < 2500, true);
      statement.setQueryTimeout(0);
      equal(statement.executeQuery("select 1").next(), true);
    }
  }

  /** All cases. */
  public static void main(String[] arguments) {
    url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/basalt?user=me&sslmode=disable";
    test("writes", Suite::writes);
    test("executes_often", Suite::executesOften);
    test("fetches_in_parts", Suite::fetchesInParts);
    test("describes_tables", Suite::describesTables);
    test("copies", Suite::copies);
    test("returns_keys", Suite::returnsKeys);
    test("stops_queries", Suite::stopsQueries);
  }
}
