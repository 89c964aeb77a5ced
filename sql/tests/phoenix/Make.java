import java.sql.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Makes tables with Apache Phoenix, and writes their cells and what Phoenix answers to queries. */
public class Make {
  static String hex(byte[] b, int off, int len) {
    StringBuilder s = new StringBuilder();
    for (int i = 0; i < len; i++) s.append(String.format("%02x", b[off + i]));
    return s.length() == 0 ? "-" : s.toString();
  }
  public static void main(String[] a) throws Exception {
    Properties p = new Properties();
    java.sql.Connection c = DriverManager.getConnection("jdbc:phoenix:" + a[0], p);
    c.setAutoCommit(true);
    List<String> queries = new ArrayList<>();
    Statement s = c.createStatement();
    StringBuilder one = new StringBuilder();
    for (String line : java.nio.file.Files.readAllLines(java.nio.file.Paths.get(a[1]))) {
      if (line.startsWith("--") || line.isBlank()) continue;
      one.append(line).append('\n');
      if (!line.trim().endsWith(";")) continue;
      String sql = one.toString().trim(); sql = sql.substring(0, sql.length() - 1);
      one.setLength(0);
      if (sql.toUpperCase().startsWith("SELECT")) { queries.add(sql); continue; }
      try { s.execute(sql); } catch (SQLException e) { throw new RuntimeException(sql, e); }
    }
    java.io.PrintWriter out = new java.io.PrintWriter(a[2] + "/answers.txt", "UTF-8");
    for (String q : queries) {
      out.println("query " + q.replace('\n', ' '));
      ResultSet r = s.executeQuery(q);
      int n = r.getMetaData().getColumnCount();
      while (r.next()) {
        StringBuilder l = new StringBuilder();
        for (int i = 1; i <= n; i++) {
          Object o = r.getObject(i);
          String t = o == null ? "NULL" : o instanceof byte[] ? "\\x" + hex((byte[]) o, 0, ((byte[]) o).length).replace("-", "")
            : o instanceof java.sql.Array ? r.getString(i) : o.toString();
          l.append(i > 1 ? "|" : "").append(t);
        }
        out.println(l);
      }
    }
    out.close();
    out = new java.io.PrintWriter(a[2] + "/cells.txt", "UTF-8");
    Configuration conf = HBaseConfiguration.create();
    String[] q = a[0].split(":");
    conf.set("hbase.zookeeper.quorum", q[0]); conf.set("hbase.zookeeper.property.clientPort", q[1]);
    try (org.apache.hadoop.hbase.client.Connection h = ConnectionFactory.createConnection(conf)) {
      for (TableName t : h.getAdmin().listTableNames()) {
        String name = t.getNameAsString();
        if (name.startsWith("SYSTEM") && !name.equals("SYSTEM.CATALOG") && !name.equals("SYSTEM.CHILD_LINK") && !name.equals("SYSTEM.SEQUENCE")) continue;
        StringBuilder f = new StringBuilder();
        for (ColumnFamilyDescriptor d : h.getAdmin().getDescriptor(t).getColumnFamilies()) f.append(' ').append(d.getNameAsString());
        out.println("table " + name + f);
        try (ResultScanner rs = h.getTable(t).getScanner(new Scan())) {
          for (Result r : rs) for (Cell k : r.rawCells()) {
            // what the catalog says of itself is left out
            if (name.equals("SYSTEM.CATALOG") && Bytes.toString(k.getRowArray(), k.getRowOffset(), k.getRowLength()).startsWith("\0SYSTEM\0")) continue;
            out.println(hex(k.getRowArray(), k.getRowOffset(), k.getRowLength()) + " "
              + hex(k.getFamilyArray(), k.getFamilyOffset(), k.getFamilyLength()) + " "
              + hex(k.getQualifierArray(), k.getQualifierOffset(), k.getQualifierLength()) + " "
              + k.getTimestamp() + " " + hex(k.getValueArray(), k.getValueOffset(), k.getValueLength()));
          }
        }
      }
    }
    out.close();
    c.close();
    System.exit(0);
  }
}
