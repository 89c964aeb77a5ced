package basalt.interop;

import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;

/** {@code ZOOKEEPER TABLE ROWS}: the table must hold that many rows, forwards and backwards. */
public final class CountRows {
  private CountRows() {
  }

  public static void main(String[] args) throws Exception {
    Check check = new Check(null);
    int wanted = Integer.parseInt(args[2]);
    Server server = new Server(args[0], args[0], Map.of());
    try (Table table = server.connection.getTable(TableName.valueOf(args[1]))) {
      for (boolean reversed : new boolean[] { false, true }) {
        check.run("rows of " + args[1] + (reversed ? ", backwards" : ""), () -> Check.same("rows", wanted,
          Rows.count(table, new Scan().setFilter(new FirstKeyOnlyFilter()).setCaching(2000).setReversed(reversed))));
      }
    }
    System.exit(check.finish());
  }
}
