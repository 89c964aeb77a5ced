package basalt.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The extension of JUnit 5. */
class ExtensionTest {
  @RegisterExtension static final BasaltExtension BASALT = new BasaltExtension();

  @Test
  void aRowIsWritten() throws Exception {
    BasaltTestingUtility utility = BASALT.getTestingUtility();
    try (Table table = utility.createTable(TableName.valueOf("t"), "f")) {
      byte[] f = Bytes.toBytes("f");
      table.put(new Put(f).addColumn(f, f, f));
      assertEquals(1, utility.countRows(table));
    }
  }

  @Test
  void aServerThatDoesNotStartIsToldOf() {
    BasaltTestingUtility utility = new BasaltTestingUtility().set("hbase.master.port", "none");
    assertThrows(IOException.class, utility::startMiniCluster);
  }
}
