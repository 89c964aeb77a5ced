package basalt.interop;

import static basalt.interop.Answers.got;
import static basalt.interop.Rows.b;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;

/** The calls of {@code AsyncAdmin}, whose client code is another than that of {@code Admin}. */
public final class AsyncAdminAnswers {
  private static final String NS = "asyncanswers";
  private static final TableName T = TableName.valueOf(NS, "t");
  private static final TableName COPY = TableName.valueOf(NS, "copy");
  private static final TableName NONE = TableName.valueOf(NS, "none");

  /** Methods without arguments whose answers are the same on every cluster that is at rest. */
  private static final Set<String> AT_REST = Set.of("isBalancerEnabled", "isCatalogJanitorEnabled",
    "isCleanerChoreEnabled", "isMasterInMaintenanceMode", "isMergeEnabled", "isSplitEnabled",
    "isNormalizerEnabled", "isReplicationPeerModificationEnabled", "isRpcThrottleEnabled", "isSnapshotCleanupEnabled", "getBackupMasters",
    "getMasterInfoPort", "getMasterCoprocessorNames", "getMaster", "listDeadServers",
    "listDecommissionedRegionServers", "listUnknownServers", "listReplicationPeers",
    "getSecurityCapabilities", "getSpaceQuotaTableSizes", "getLocks", "getRegionServers", "flushMasterStore",
    "updateConfiguration");

  private AsyncAdminAnswers() {
  }

  public static void run(Check check, Server server) throws Exception {
    Answers answers = new Answers(check, "async-admin-answers.txt");
    server.adopt(T);
    server.adopt(COPY);
    try (AsyncConnection connection =
      ConnectionFactory.createAsyncConnection(server.configuration("hbase.client.retries.number", "2")).get()) {
      AsyncAdmin admin = connection.getAdmin();
      List<Method> methods = new ArrayList<>();
      for (Method method : AsyncAdmin.class.getMethods()) {
        if (method.getParameterCount() == 0 && AT_REST.contains(method.getName())) {
          methods.add(method);
        }
      }
      methods.sort((x, y) -> x.getName().compareTo(y.getName()));
      for (Method method : methods) {
        answers.say("async " + method.getName(), () -> method.invoke(admin));
      }
      tables(answers, admin);
      regions(answers, admin);
      snapshots(answers, admin);
      rest(answers, server, admin);
      got(admin.disableTable(T));
      got(admin.deleteTable(T));
      answers.say("async deleteNamespace", () -> admin.deleteNamespace(NS));
      answers.say("async deleteNamespace again", () -> admin.deleteNamespace(NS));
    }
    answers.finish();
  }

  private static void tables(Answers a, AsyncAdmin admin) {
    a.say("async createNamespace", () -> admin.createNamespace(NamespaceDescriptor.create(NS).build()));
    a.say("async createNamespace again", () -> admin.createNamespace(NamespaceDescriptor.create(NS).build()));
    a.say("async modifyNamespace none",
      () -> admin.modifyNamespace(NamespaceDescriptor.create("nowhere").build()));
    a.say("async getNamespaceDescriptor none", () -> admin.getNamespaceDescriptor("nowhere"));
    a.say("async createTable", () -> admin.createTable(TableDescriptorBuilder.newBuilder(T)
      .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build(), new byte[][] { b("h"), b("p") }));
    a.say("async createTable again", () -> admin.createTable(TableDescriptorBuilder.newBuilder(T)
      .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build()));
    a.say("async getDescriptor none", () -> admin.getDescriptor(NONE));
    a.say("async addColumnFamily", () -> admin.addColumnFamily(T, ColumnFamilyDescriptorBuilder.of("g")));
    a.say("async addColumnFamily again", () -> admin.addColumnFamily(T, ColumnFamilyDescriptorBuilder.of("g")));
    a.say("async modifyColumnFamily none", () -> admin.modifyColumnFamily(T, ColumnFamilyDescriptorBuilder.of("x")));
    a.say("async deleteColumnFamily", () -> admin.deleteColumnFamily(T, b("g")));
    a.say("async deleteColumnFamily again", () -> admin.deleteColumnFamily(T, b("g")));
    a.say("async disableTable", () -> admin.disableTable(T));
    a.say("async disableTable again", () -> admin.disableTable(T));
    a.say("async listTableNamesByState disabled", () -> got(admin.listTableNamesByState(false)).stream()
      .filter(n -> n.getNamespaceAsString().equals(NS)).collect(Collectors.toList()));
    a.say("async enableTable", () -> admin.enableTable(T));
    a.say("async enableTable again", () -> admin.enableTable(T));
    a.say("async truncateTable of an enabled one", () -> admin.truncateTable(T, true));
    a.say("async deleteTable of an enabled one", () -> admin.deleteTable(T));
    a.say("async deleteTable none", () -> admin.deleteTable(NONE));
    a.say("async cloneTableSchema", () -> admin.cloneTableSchema(T, COPY, false));
    a.say("async regions of the copy", () -> got(admin.getRegions(COPY)).size());
    a.say("async listTableDescriptorsByNamespace",
      () -> got(admin.listTableDescriptorsByNamespace(NS)).stream().map(d -> d.getTableName())
        .collect(Collectors.toList()));
    a.say("async listTableNamesByNamespace none", () -> admin.listTableNamesByNamespace("nowhere"));
    a.say("async listTableNames", () -> admin.listTableNames(Pattern.compile(NS + ".*"), false));
    a.say("async modifyTableStoreFileTracker", () -> admin.modifyTableStoreFileTracker(T, "FILE"));
    a.say("async modifyTableStoreFileTracker none", () -> admin.modifyTableStoreFileTracker(NONE, "FILE"));
    a.say("async modifyColumnFamilyStoreFileTracker of no family",
      () -> admin.modifyColumnFamilyStoreFileTracker(T, b("nothing"), "FILE"));
    a.say("async isTableAvailable none", () -> admin.isTableAvailable(NONE));
    a.say("async drop of the copy", () -> {
      got(admin.disableTable(COPY));
      return admin.deleteTable(COPY);
    });
  }

  private static byte[] region(AsyncAdmin admin, String start) throws Exception {
    for (RegionInfo region : got(admin.getRegions(T))) {
      if (Rows.text(region.getStartKey()).equals(start)) {
        return region.getRegionName();
      }
    }
    throw new IllegalStateException("no region of " + T + " begins with '" + start + "'");
  }

  private static void regions(Answers a, AsyncAdmin admin) throws Exception {
    ServerName here = got(admin.getRegionServers()).iterator().next();
    a.say("async unassign", () -> admin.unassign(region(admin, "h")));
    a.say("async assign", () -> admin.assign(region(admin, "h")));
    a.say("async assign none", () -> admin.assign(b("nothing")));
    a.say("async offline none", () -> admin.offline(b("nothing")));
    a.say("async move", () -> admin.move(region(admin, "h")));
    a.say("async move none", () -> admin.move(b("nothing")));
    a.say("async flush", () -> admin.flush(T));
    a.say("async flush none", () -> admin.flush(NONE));
    a.say("async flushRegion none", () -> admin.flushRegion(b("nothing")));
    a.say("async flushRegionServer", () -> admin.flushRegionServer(here));
    a.say("async compact none", () -> admin.compact(NONE));
    a.say("async compactRegionServer", () -> admin.compactRegionServer(here));
    a.say("async majorCompactRegionServer", () -> admin.majorCompactRegionServer(here));
    a.say("async getCompactionState none", () -> admin.getCompactionState(NONE));
    a.say("async getLastMajorCompactionTimestamp none", () -> admin.getLastMajorCompactionTimestamp(NONE));
    a.say("async getLastMajorCompactionTimestampForRegion none",
      () -> admin.getLastMajorCompactionTimestampForRegion(b("nothing")));
    a.say("async getRegionMetrics", () -> got(admin.getRegionMetrics(here, T)).size());
    a.say("async clearCompactionQueues of another name",
      () -> admin.clearCompactionQueues(here, Set.of("middle")));
    a.say("async compactionSwitch", () -> got(admin.compactionSwitch(true, List.of())).values());
    a.say("async clearBlockCache", () -> got(admin.clearBlockCache(T)).getExceptionCount());
    a.say("async rollWALWriter", () -> admin.rollWALWriter(here));
    a.say("async mergeRegions", () -> admin.mergeRegions(List.of(region(admin, ""), region(admin, "h")), false));
    a.say("async mergeRegions of one", () -> admin.mergeRegions(List.of(region(admin, "p")), false));
    a.say("async splitRegion", () -> admin.splitRegion(region(admin, "p"), b("t")));
    a.say("async splitRegion at its start", () -> admin.splitRegion(region(admin, "t"), b("t")));
    a.say("async splitRegion none", () -> admin.splitRegion(b("nothing"), b("t")));
    a.say("async truncateRegion", () -> admin.truncateRegion(region(admin, "t")));
    a.say("async truncateRegion none", () -> admin.truncateRegion(b("nothing")));
    a.say("async regions in the end", () -> got(admin.getRegions(T)).size());
    a.say("async updateConfiguration of a server", () -> admin.updateConfiguration(here));
    a.say("async getCachedFilesList", () -> admin.getCachedFilesList(here));
    a.say("async getRegionServerSpaceQuotaSnapshots", () -> got(admin.getRegionServerSpaceQuotaSnapshots(here)).size());
  }

  private static void snapshots(Answers a, AsyncAdmin admin) {
    SnapshotDescription wanted = new SnapshotDescription("async_s", T, SnapshotType.FLUSH);
    a.say("async snapshot", () -> admin.snapshot(wanted));
    a.say("async snapshot again", () -> admin.snapshot(wanted));
    a.say("async snapshot none", () -> admin.snapshot("async_n", NONE));
    a.say("async isSnapshotFinished", () -> admin.isSnapshotFinished(wanted));
    a.say("async isSnapshotFinished none",
      () -> admin.isSnapshotFinished(new SnapshotDescription("async_none", T, SnapshotType.FLUSH)));
    a.say("async cloneSnapshot", () -> admin.cloneSnapshot("async_s", COPY));
    a.say("async cloneSnapshot again", () -> admin.cloneSnapshot("async_s", COPY));
    a.say("async cloneSnapshot none", () -> admin.cloneSnapshot("async_none", NONE));
    a.say("async restoreSnapshot of an enabled table", () -> admin.restoreSnapshot("async_s"));
    a.say("async restoreSnapshot none", () -> admin.restoreSnapshot("async_none"));
    a.say("async drop of the clone", () -> {
      got(admin.disableTable(COPY));
      return admin.deleteTable(COPY);
    });
    a.say("async deleteSnapshot none", () -> admin.deleteSnapshot("async_none"));
    a.say("async deleteTableSnapshots",
      () -> admin.deleteTableSnapshots(Pattern.compile(NS + ":t"), Pattern.compile("async_.*")));
    a.say("async listSnapshots", () -> got(admin.listSnapshots(Pattern.compile("async_.*"))).size());
  }

  private static void rest(Answers a, Server server, AsyncAdmin admin) {
    ReplicationPeerConfig config =
      ReplicationPeerConfig.newBuilder().setClusterKey(server.zk + ":/elsewhere").build();
    a.say("async listReplicatedTableCFs", () -> got(admin.listReplicatedTableCFs()).stream()
      .filter(t -> t.getTable().getNamespaceAsString().equals(NS)).count());
    a.say("async addReplicationPeer", () -> admin.addReplicationPeer("asyncanswers", config, false));
    a.say("async addReplicationPeer again", () -> admin.addReplicationPeer("asyncanswers", config, false));
    a.say("async isReplicationPeerEnabled", () -> admin.isReplicationPeerEnabled("asyncanswers"));
    a.say("async disableReplicationPeer", () -> admin.disableReplicationPeer("asyncanswers"));
    a.say("async appendReplicationPeerTableCFs",
      () -> admin.appendReplicationPeerTableCFs("asyncanswers", Map.of(T, List.of("f"))));
    a.say("async removeReplicationPeer", () -> admin.removeReplicationPeer("asyncanswers"));
    a.say("async removeReplicationPeer again", () -> admin.removeReplicationPeer("asyncanswers"));
    a.say("async execProcedure of no kind", () -> admin.execProcedure("nothing", "x", Map.of()));
    a.say("async isProcedureFinished of no kind", () -> admin.isProcedureFinished("nothing", "x", Map.of()));
    a.say("async abortProcedure none", () -> admin.abortProcedure(99_999_999L, true));
    a.say("async getClusterMetrics", () -> got(admin.getClusterMetrics(EnumSet.of(
      ClusterMetrics.Option.LIVE_SERVERS, ClusterMetrics.Option.MASTER))).getLiveServerMetrics().size());
    a.say("async getCurrentSpaceQuotaSnapshot", () -> admin.getCurrentSpaceQuotaSnapshot(T));
    a.say("async runCatalogJanitor", () -> got(admin.runCatalogJanitor()) >= 0);
    a.say("async stopRegionServer that is not there",
      () -> admin.stopRegionServer(ServerName.valueOf("127.0.0.1", 1, 1)));
    a.say("async balance", () -> admin.balance());
    a.say("async switchRpcThrottle", () -> admin.switchRpcThrottle(true));
    a.say("async exceedThrottleQuotaSwitch", () -> admin.exceedThrottleQuotaSwitch(true));
    a.say("async splitSwitch", () -> admin.splitSwitch(true));
    a.say("async mergeSwitch", () -> admin.mergeSwitch(true));
    a.say("async catalogJanitorSwitch", () -> admin.catalogJanitorSwitch(true));
    a.say("async cleanerChoreSwitch", () -> admin.cleanerChoreSwitch(true));
    a.say("async snapshotCleanupSwitch", () -> admin.snapshotCleanupSwitch(true, true));
    a.say("async replicationPeerModificationSwitch", () -> admin.replicationPeerModificationSwitch(true));
  }
}
