package basalt.interop;

import java.io.IOException;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceQuotaSnapshotView;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Has tables violate their quotas of space under each policy, and prints what is refused and how: {@code what => answer}, one a line. So
 * tests/golden/quota/space-answers.txt was made, by {@code SpaceQuotaGolden host:port} against a server with {@code hbase.quota.enabled} and
 * short periods of its chores ({@code hbase.master.quotas.*}, {@code hbase.regionserver.quotas.*}).
 */
public final class SpaceQuotaGolden {
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] Q = Bytes.toBytes("q");
  private static final byte[] ROW = Bytes.toBytes("row");
  private static final TableName T = TableName.valueOf("sq");
  private static final TableName IN_NS = TableName.valueOf("sqns:t");

  private SpaceQuotaGolden() {
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    String[] at = args[0].split(":");
    conf.set("hbase.zookeeper.quorum", at[0]);
    conf.set("hbase.zookeeper.property.clientPort", at[1]);
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      make(connection, admin, T);
      for (SpaceViolationPolicy policy : List.of(SpaceViolationPolicy.NO_INSERTS, SpaceViolationPolicy.NO_WRITES,
        SpaceViolationPolicy.NO_WRITES_COMPACTIONS)) {
        admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1, policy));
        until(() -> isRefused(connection, T, policy.name()));
        underPolicy(connection, admin, policy);
        enough(connection, admin);
      }
      compactions(conf, admin);
      disabled(connection, admin);
      namespaces(connection, admin);
      snapshots(connection, admin);
      say("removal", () -> {
        admin.setQuota(QuotaSettingsFactory.removeTableSpaceLimit(T));
        until(() -> admin.getRegionServerSpaceQuotaSnapshots(here(admin)).get(T) == null);
        return cells(connection, "t.sq");
      });
    }
  }

  private static void make(Connection connection, Admin admin, TableName name) throws Exception {
    admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    byte[] noise = new byte[20_000];
    new Random(7).nextBytes(noise);
    try (Table table = connection.getTable(name)) {
      table.put(new Put(ROW).addColumn(F, Q, noise));
    }
    admin.flush(name);
    until(() -> admin.getSpaceQuotaTableSizes().getOrDefault(name, 0L) > 20_000);
  }

  /** The table may use so much that nothing is refused. */
  private static void enough(Connection connection, Admin admin) throws Exception {
    admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1 << 30, SpaceViolationPolicy.NO_INSERTS));
    until(() -> !isRefused(connection, T, ""));
  }

  private static boolean isRefused(Connection connection, TableName name, String policy) throws IOException {
    try (Table table = connection.getTable(name)) {
      table.put(new Put(Bytes.toBytes("probe")).addColumn(F, Q, Bytes.toBytes("v")));
      return false;
    } catch (IOException e) {
      return e.getMessage().contains(policy + " ");
    }
  }

  private static void underPolicy(Connection connection, Admin admin, SpaceViolationPolicy policy) throws Exception {
    Put put = new Put(ROW).addColumn(F, Q, Bytes.toBytes("v"));
    Delete delete = new Delete(Bytes.toBytes("no row"));
    try (Table table = connection.getTable(T)) {
      say(policy + " put", () -> {
        table.put(put);
        return null;
      });
      say(policy + " delete", () -> {
        table.delete(delete);
        return null;
      });
      say(policy + " increment", () -> table.increment(new Increment(ROW).addColumn(F, Bytes.toBytes("n"), 1)));
      say(policy + " append", () -> table.append(new Append(ROW).addColumn(F, Q, Bytes.toBytes("v"))));
      say(policy + " get", () -> table.exists(new Get(ROW)));
      say(policy + " checkAndMutate", () -> table.checkAndMutate(ROW, F).qualifier(Bytes.toBytes("none")).ifNotExists().thenPut(put));
      say(policy + " mutateRow", () -> table.mutateRow(RowMutations.of(List.of(put, new Delete(ROW).addColumn(F, Bytes.toBytes("x"))))));
      say(policy + " batch", () -> {
        List<Row> actions = List.of(delete, new Get(ROW), put);
        Object[] results = new Object[actions.size()];
        try {
          table.batch(actions, results);
        } catch (RetriesExhaustedWithDetailsException e) {
          // They are in the results.
        }
        StringBuilder said = new StringBuilder();
        for (Object result : results) {
          said.append(result instanceof Throwable ? shown((Throwable) result) : "done").append("; ");
        }
        return said;
      });
    }
    say(policy + " current snapshot", () -> shown((SpaceQuotaSnapshotView) admin.getCurrentSpaceQuotaSnapshot(T)));
    say(policy + " snapshot of the region server", () -> shown(admin.getRegionServerSpaceQuotaSnapshots(here(admin)).get(T)));
    say(policy + " cells", () -> cells(connection, "t.sq"));
  }

  private static void compactions(Configuration conf, Admin admin) throws Exception {
    admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1, SpaceViolationPolicy.NO_WRITES_COMPACTIONS));
    User bob = User.createUserForTesting(conf, "bob", new String[0]);
    bob.runAs((java.security.PrivilegedExceptionAction<Void>) () -> {
      try (Connection connection = ConnectionFactory.createConnection(conf); Admin as = connection.getAdmin()) {
        until(() -> isRefused(connection, T, "NO_WRITES_COMPACTIONS"));
        say("compaction by anybody", () -> {
          as.compact(T);
          return null;
        });
      }
      return null;
    });
    say("compaction by a superuser", () -> {
      admin.compact(T);
      return null;
    });
  }

  private static void disabled(Connection connection, Admin admin) throws Exception {
    admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1, SpaceViolationPolicy.DISABLE));
    until(() -> admin.isTableDisabled(T));
    say("enable", () -> {
      admin.enableTable(T);
      return null;
    });
    say("DISABLE current snapshot", () -> shown((SpaceQuotaSnapshotView) admin.getCurrentSpaceQuotaSnapshot(T)));
    admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1 << 30, SpaceViolationPolicy.DISABLE));
    until(() -> admin.isTableEnabled(T));
    enough(connection, admin);
  }

  private static void namespaces(Connection connection, Admin admin) throws Exception {
    admin.createNamespace(NamespaceDescriptor.create("sqns").build());
    make(connection, admin, IN_NS);
    admin.setQuota(QuotaSettingsFactory.limitNamespaceSpace("sqns", 1, SpaceViolationPolicy.NO_INSERTS));
    until(() -> isRefused(connection, IN_NS, "NO_INSERTS"));
    say("namespace snapshot", () -> shown((SpaceQuotaSnapshotView) admin.getCurrentSpaceQuotaSnapshot("sqns")));
    say("snapshot of a table in it", () -> admin.getCurrentSpaceQuotaSnapshot(IN_NS));
    say("cells of a table in it", () -> cells(connection, "t.sqns:t"));
    say("quotas", () -> {
      TreeSet<String> found = new TreeSet<>();
      for (QuotaSettings settings : admin.getQuota(new org.apache.hadoop.hbase.quotas.QuotaFilter())) {
        found.add(settings.toString());
      }
      return found;
    });
    admin.setQuota(QuotaSettingsFactory.removeNamespaceSpaceLimit("sqns"));
    until(() -> !isRefused(connection, IN_NS, ""));
    say("cells without the namespace's quota", () -> cells(connection, "n.sqns") + " " + cells(connection, "t.sqns:t"));
  }

  private static void snapshots(Connection connection, Admin admin) throws Exception {
    admin.snapshot("sq_s", T);
    until(() -> cells(connection, "t.sq").contains("u:sss"));
    say("a snapshot's cells", () -> cells(connection, "t.sq") + " " + cells(connection, "n.default"));
    admin.deleteSnapshot("sq_s");
    until(() -> !cells(connection, "t.sq").contains("u:sss"));
    say("cells without the snapshot", () -> cells(connection, "t.sq") + " " + cells(connection, "n.default"));
  }

  private static ServerName here(Admin admin) throws IOException {
    return admin.getRegionServers().iterator().next();
  }

  /** Columns of a row of hbase:quota; with values where they have no sizes that files decide. */
  private static String cells(Connection connection, String row) throws IOException {
    StringBuilder found = new StringBuilder();
    try (Table table = connection.getTable(TableName.valueOf("hbase:quota"))) {
      Cell[] all = table.get(new Get(Bytes.toBytes(row))).rawCells();
      for (Cell cell : all == null ? new Cell[0] : all) {
        String column = Bytes.toString(CellUtil.cloneFamily(cell)) + ":" + Bytes.toString(CellUtil.cloneQualifier(cell));
        found.append(column).append(column.equals("u:p") ? "" : "=" + Bytes.toHex(CellUtil.cloneValue(cell))).append(' ');
      }
    }
    return found.toString().trim();
  }

  private static String shown(SpaceQuotaSnapshotView snapshot) {
    if (snapshot == null) {
      return "none";
    }
    return snapshot.getQuotaStatus() + " of " + snapshot.getLimit() + (snapshot.getUsage() > 20_000 ? ", used" : ", empty");
  }

  private static String shown(Throwable t) {
    String message = String.valueOf(t.getMessage());
    int end = message.indexOf('\n');
    return "throws " + t.getClass().getName() + ": " + (end < 0 ? message : message.substring(0, end));
  }

  private static void say(String what, Callable<?> call) {
    String answer;
    try {
      answer = String.valueOf(call.call());
    } catch (Throwable t) {
      answer = shown(t);
    }
    System.out.println(what + " => " + answer);
  }

  private static void until(Callable<Boolean> isSo) throws Exception {
    while (!isSo.call()) {
      Thread.sleep(20);
    }
  }
}
