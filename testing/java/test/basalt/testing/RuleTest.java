package basalt.testing;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;

import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.ClassRule;
import org.junit.Test;

/** The rule of JUnit 4, and the methods that it shares with HBaseTestingUtility. */
public class RuleTest {
  @ClassRule public static final BasaltRule BASALT = new BasaltRule();

  private static final byte[] F = Bytes.toBytes("f");

  @Test
  public void aTableIsMadeWrittenFlushedCountedTruncatedAndDeleted() throws Exception {
    BasaltTestingUtility utility = BASALT.getTestingUtility();
    TableName name = TableName.valueOf("t");
    try (Table table = utility.createTable(name, new byte[][] {F}, new byte[][] {Bytes.toBytes("m")})) {
      table.put(new Put(Bytes.toBytes("a")).addColumn(F, F, Bytes.toBytes("1")));
      table.put(new Put(Bytes.toBytes("z")).addColumn(F, F, Bytes.toBytes("2")));
      utility.flush(name);
      assertEquals(2, utility.countRows(table));
      assertArrayEquals(Bytes.toBytes("2"), table.get(new Get(Bytes.toBytes("z"))).getValue(F, F));
    }
    try (Table table = utility.truncateTable(name)) {
      assertEquals(0, utility.countRows(table));
    }
    utility.deleteTable(name);
    assertEquals(0, utility.getAdmin().listTableDescriptors().size());
  }
}
