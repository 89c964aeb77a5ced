package basalt.interop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Short forms for rows and cells, in and out of text, so that a case reads as a table. */
public final class Rows {
  private Rows() {
  }

  public static byte[] b(String s) {
    return Bytes.toBytes(s);
  }

  public static String text(byte[] b) {
    return b == null ? "null" : Bytes.toStringBinary(b);
  }

  /** {@code put("r1", "f:a=1", "f:b@50=2")}: one put; {@code @n} is an explicit timestamp. */
  public static Put put(String row, String... cells) {
    Put put = new Put(b(row));
    for (String cell : cells) {
      int eq = cell.indexOf('=');
      String[] column = cell.substring(0, eq).split(":", 2);
      byte[] value = b(cell.substring(eq + 1));
      int at = column[1].indexOf('@');
      if (at < 0) {
        put.addColumn(b(column[0]), b(column[1]), value);
      } else {
        put.addColumn(b(column[0]), b(column[1].substring(0, at)), Long.parseLong(column[1].substring(at + 1)), value);
      }
    }
    return put;
  }

  /** One row's mutations, in order. (The forms of {@code RowMutations.add} differ between generations.) */
  public static RowMutations mutations(Mutation... mutations) throws IOException {
    return RowMutations.of(Arrays.asList(mutations));
  }

  /** "f:a=1 f:b=2", or "" for an empty result. */
  public static String cells(Result result) {
    StringBuilder s = new StringBuilder();
    if (result != null && !result.isEmpty()) {
      for (Cell c : result.rawCells()) {
        s.append(s.length() == 0 ? "" : " ").append(text(CellUtil.cloneFamily(c))).append(':')
          .append(text(CellUtil.cloneQualifier(c))).append('=').append(text(CellUtil.cloneValue(c)));
      }
    }
    return s.toString();
  }

  /** "f:a@50=1 f:b@50/DeleteColumn=": with timestamps, and types other than Put. */
  public static String stamped(Result result) {
    StringBuilder s = new StringBuilder();
    if (result != null && !result.isEmpty()) {
      for (Cell c : result.rawCells()) {
        s.append(s.length() == 0 ? "" : " ").append(text(CellUtil.cloneFamily(c))).append(':')
          .append(text(CellUtil.cloneQualifier(c))).append('@').append(c.getTimestamp());
        if (c.getType() != Cell.Type.Put) {
          s.append('/').append(c.getType());
        }
        s.append('=').append(text(CellUtil.cloneValue(c)));
      }
    }
    return s.toString();
  }

  /** As the recorded verdicts of the real server have it: "r00/f:a/1000/Put=v0". */
  public static List<String> full(Result result) {
    List<String> out = new ArrayList<>();
    for (Cell c : result.rawCells()) {
      out.add(text(CellUtil.cloneRow(c)) + "/" + text(CellUtil.cloneFamily(c)) + ":" + text(CellUtil.cloneQualifier(c))
        + "/" + c.getTimestamp() + "/" + c.getType() + "=" + text(CellUtil.cloneValue(c)));
    }
    return out;
  }

  public static String get(Table table, String row) throws Exception {
    return cells(table.get(new Get(b(row))));
  }

  /** Every row of a scan as "row{cells}", one string each. */
  public static List<String> scan(Table table, Scan scan) throws Exception {
    List<String> out = new ArrayList<>();
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result r : scanner) {
        out.add(text(r.getRow()) + "{" + cells(r) + "}");
      }
    }
    return out;
  }

  /** The row keys of a scan, joined with commas. */
  public static String keys(Table table, Scan scan) throws Exception {
    StringBuilder s = new StringBuilder();
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result r : scanner) {
        s.append(s.length() == 0 ? "" : ",").append(text(r.getRow()));
      }
    }
    return s.toString();
  }

  public static int count(Table table, Scan scan) throws Exception {
    int n = 0;
    try (ResultScanner scanner = table.getScanner(scan)) {
      while (scanner.next() != null) {
        n++;
      }
    }
    return n;
  }
}
