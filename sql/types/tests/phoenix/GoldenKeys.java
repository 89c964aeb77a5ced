import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.phoenix.util.PhoenixRuntime;

/** Writes the row keys that Phoenix has for rows whose key ends with NULL or with an array: columns, buckets of salt, values (elements of arrays
 * between bars), key. Needs no cluster; class path: phoenix-core-client and what it needs. */
public class GoldenKeys {
  static Connection c;
  static int tables = 0;

  static void show(String columns, int buckets, Object... values) throws Exception {
    StringBuilder table = new StringBuilder("CREATE TABLE T" + ++tables + " (");
    StringBuilder key = new StringBuilder();
    StringBuilder marks = new StringBuilder();
    String[] all = columns.split(", ");
    for (int i = 0; i < all.length; i++) {
      String type = all[i].replace(" DESC", "").replace("[]", " ARRAY");
      table.append("C" + i + " " + type + (i == 0 ? " NOT NULL, " : ", "));
      key.append(i == 0 ? "C" : ", C").append(i).append(all[i].endsWith(" DESC") ? " DESC" : "");
      marks.append("?, ");
    }
    table.append("V INTEGER CONSTRAINT PK PRIMARY KEY (").append(key).append("))");
    if (buckets > 0) table.append(" SALT_BUCKETS = ").append(buckets);
    c.createStatement().execute(table.toString());
    PreparedStatement s = c.prepareStatement("UPSERT INTO T" + tables + " VALUES (" + marks + "1)");
    StringBuilder line = new StringBuilder(columns.toLowerCase()).append('\t').append(buckets).append('\t');
    for (int i = 0; i < all.length; i++) {
      Object[] elements = values[i] instanceof Object[] ? (Object[]) values[i] : null;
      if (elements == null) s.setObject(i + 1, values[i]);
      else s.setArray(i + 1, c.createArrayOf(all[i].substring(0, all[i].indexOf('[')), elements));
      line.append(i == 0 ? "" : ",");
      if (elements == null) line.append(values[i]);
      for (int at = 0; elements != null && at < elements.length; at++) line.append(at == 0 ? "" : "|").append(elements[at]);
    }
    s.execute();
    Iterator<Pair<byte[], List<Cell>>> rows = PhoenixRuntime.getUncommittedDataIterator(c);
    Cell cell = rows.next().getSecond().get(0);
    line.append('\t');
    for (int i = 0; i < cell.getRowLength(); i++) line.append(String.format("%02x", cell.getRowArray()[cell.getRowOffset() + i]));
    System.out.println(line);
    c.rollback();
  }

  static Object[] of(Object... elements) {
    return elements;
  }

  public static void main(String[] a) throws Exception {
    c = DriverManager.getConnection("jdbc:phoenix:none");
    show("VARCHAR, VARCHAR", 0, "ab", "c");
    show("VARCHAR, VARCHAR", 0, "ab", null);
    show("VARCHAR, VARCHAR DESC", 0, "ab", null);
    show("VARCHAR DESC, VARCHAR", 0, "ab", null);
    show("VARCHAR DESC, VARCHAR DESC", 0, "ab", null);
    show("VARCHAR, VARCHAR, VARCHAR", 0, "ab", null, null);
    show("VARCHAR, VARCHAR DESC, VARCHAR", 0, "ab", null, null);
    show("VARCHAR, VARCHAR, VARCHAR DESC", 0, "ab", null, null);
    show("VARCHAR, VARCHAR, VARCHAR", 0, "ab", "x", null);
    show("VARCHAR, VARCHAR, VARCHAR", 0, "ab", null, "x");
    show("CHAR(2), VARCHAR DESC, VARCHAR", 0, "NA", null, null);
    show("CHAR(2), VARCHAR DESC, VARCHAR", 0, "NA", null, "c");
    show("INTEGER, VARCHAR, VARCHAR", 0, 256, null, null);
    show("INTEGER, DECIMAL, VARCHAR", 0, 1, new BigDecimal("5"), null);
    show("INTEGER, VARCHAR DESC, VARCHAR", 0, 1, "x", null);
    show("INTEGER, VARCHAR DESC", 0, 1, null);
    show("VARCHAR, VARCHAR, VARCHAR", 7, "ab", null, null);
    show("VARCHAR, VARCHAR", 7, "abc", "d");
    show("VARCHAR, INTEGER[]", 0, "ab", of(1, -2, 3));
    show("INTEGER, BIGINT[]", 0, 7, of(5L));
    show("BIGINT, VARCHAR[]", 0, -1L, of("a", "b", "c"));
    show("VARCHAR, VARCHAR[]", 0, "x", of("a", null, "ccc"));
    show("VARCHAR, VARCHAR[]", 0, "x", of(null, null, "y", null));
    show("VARCHAR, VARCHAR[]", 5, "x", of("only"));
    show("INTEGER, DECIMAL[]", 0, 0, of(new BigDecimal("1.5"), new BigDecimal("-20")));
    show("VARCHAR, INTEGER[]", 0, "no array", null);
    show("VARCHAR, INTEGER[] DESC", 0, "ab", of(1, -2, 3));
    show("INTEGER, BIGINT[] DESC", 0, 7, of(5L));
    show("VARCHAR DESC, UNSIGNED_INT[] DESC", 3, "ab", of(0, 1));
    show("BIGINT, VARCHAR[] DESC", 0, -1L, of("a", "b", "c"));
    show("VARCHAR, VARCHAR[] DESC", 0, "x", of("a", null, "ccc"));
    show("VARCHAR, VARCHAR[] DESC", 0, "x", of(null, null, "y", null));
    show("VARCHAR, VARCHAR[] DESC", 5, "x", of("only"));
    show("INTEGER, DECIMAL[] DESC", 0, 0, of(new BigDecimal("1.5"), new BigDecimal("-20")));
    show("INTEGER, DECIMAL[] DESC", 0, 0, of(new BigDecimal("100"), null, new BigDecimal("0.01")));
    show("VARCHAR, INTEGER[] DESC", 0, "no array", null);
    show("VARCHAR, VARCHAR[] DESC", 0, "no array", null);
    show("VARCHAR, BOOLEAN[] DESC", 0, "x", of(true, false));
    System.exit(0);
  }
}
