package basalt.interop;

import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.quotas.QuotaScope;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Sets quotas of every kind and prints the cells of hbase:quota, one a line: {@code row column value}, the value in hexadecimal. With
 * {@code slowlog} it prints those of hbase:slowlog and the descriptor of the tables instead. So tests/golden/quota was made:
 * {@code QuotaGolden host:port}.
 */
public final class QuotaGolden {
  private QuotaGolden() {
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    String[] at = args[0].split(":");
    conf.set("hbase.zookeeper.quorum", at[0]);
    conf.set("hbase.zookeeper.property.clientPort", at[1]);
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      if (args.length > 1 && args[1].equals("slowlog")) {
        slowLog(connection, admin);
      } else {
        quotas(admin);
        print(connection, "hbase:quota");
        System.out.println("descriptor " + admin.getDescriptor(TableName.valueOf("hbase:quota")));
      }
    }
  }

  private static void quotas(Admin admin) throws Exception {
    admin.createNamespace(NamespaceDescriptor.create("qns").build());
    TableName table = TableName.valueOf("qns:t");
    admin.createTable(TableDescriptorBuilder.newBuilder(table).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    long limit = 1;
    for (ThrottleType type : ThrottleType.values()) {
      limit += 1;
      admin.setQuota(QuotaSettingsFactory.throttleUser("bob", type, limit, TimeUnit.SECONDS));
    }
    admin.setQuota(QuotaSettingsFactory.throttleUser("bob", table, ThrottleType.READ_SIZE, 1024, TimeUnit.MINUTES));
    admin.setQuota(QuotaSettingsFactory.throttleUser("bob", "qns", ThrottleType.WRITE_SIZE, 1 << 20, TimeUnit.HOURS));
    admin.setQuota(QuotaSettingsFactory.throttleTable(table, ThrottleType.REQUEST_NUMBER, 100, TimeUnit.DAYS, QuotaScope.CLUSTER));
    admin.setQuota(QuotaSettingsFactory.throttleNamespace("qns", ThrottleType.REQUEST_NUMBER, 7, TimeUnit.MILLISECONDS));
    admin.setQuota(QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.REQUEST_NUMBER, 100000, TimeUnit.SECONDS));
    admin.setQuota(QuotaSettingsFactory.bypassGlobals("root", true));
    admin.setQuota(QuotaSettingsFactory.bypassGlobals("eve", false));
    admin.setQuota(QuotaSettingsFactory.limitTableSpace(table, 1 << 30, SpaceViolationPolicy.NO_INSERTS));
    admin.setQuota(QuotaSettingsFactory.limitNamespaceSpace("qns", 5L << 30, SpaceViolationPolicy.DISABLE));
    admin.exceedThrottleQuotaSwitch(true);
  }

  private static void slowLog(Connection connection, Admin admin) throws Exception {
    TableName name = TableName.valueOf("slow");
    admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    try (Table table = connection.getTable(name)) {
      table.put(new Put(Bytes.toBytes("row")).addColumn(Bytes.toBytes("f"), Bytes.toBytes("q"), new byte[100]));
      table.get(new Get(Bytes.toBytes("row")));
      try (ResultScanner scanner = table.getScanner(new Scan().withStartRow(Bytes.toBytes("a")))) {
        for (Result result : scanner) {
          System.err.println(result);
        }
      }
    }
    Thread.sleep(25000);
    print(connection, "hbase:slowlog");
    System.out.println("descriptor " + admin.getDescriptor(TableName.valueOf("hbase:slowlog")));
  }

  private static void print(Connection connection, String name) throws Exception {
    try (Table table = connection.getTable(TableName.valueOf(name)); ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result result : scanner) {
        for (Cell cell : result.rawCells()) {
          System.out.println(Bytes.toStringBinary(CellUtil.cloneRow(cell)) + " "
            + Bytes.toString(CellUtil.cloneFamily(cell)) + ":" + Bytes.toStringBinary(CellUtil.cloneQualifier(cell)) + " "
            + Bytes.toHex(CellUtil.cloneValue(cell)));
        }
      }
    }
  }
}
