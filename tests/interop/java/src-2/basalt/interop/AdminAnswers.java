package basalt.interop;

import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BalanceRequest;
import org.apache.hadoop.hbase.client.BalanceResponse;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Hbck;
import org.apache.hadoop.hbase.client.LogQueryFilter;
import org.apache.hadoop.hbase.client.MasterSwitchType;
import org.apache.hadoop.hbase.client.NormalizeTableFilterParams;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.ServerType;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableState;
import org.apache.hadoop.hbase.master.RegionState;
import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.security.access.GetUserPermissionsRequest;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;

/** The calls of {@code Admin} and {@code Hbck} that no other case makes. */
@SuppressWarnings("deprecation")
public final class AdminAnswers {
  private static final String NS = "answers";
  private static final TableName T = TableName.valueOf(NS, "t");
  private static final TableName COPY = TableName.valueOf(NS, "copy");
  private static final TableName NONE = TableName.valueOf(NS, "none");

  private AdminAnswers() {
  }

  public static void run(Check check, Server server) throws Exception {
    Answers answers = new Answers(check, "admin-answers.txt");
    server.adopt(T);
    server.adopt(COPY);
    // What fails in a way that a client tries again should fail soon.
    try (Connection connection = server.connect("hbase.client.retries.number", "2"); Admin admin = connection.getAdmin()) {
      futures(answers, admin);
      descriptors(answers, admin);
      regions(answers, server, admin);
      servers(answers, admin);
      switches(answers, admin);
      snapshots(answers, admin);
      quotas(answers, admin);
      peers(answers, server, admin);
      permissions(answers, admin);
      procedures(answers, admin);
      old(answers, admin);
      try (Hbck hbck = connection.getHbck()) {
        hbck(answers, admin, hbck);
      }
      admin.disableTable(T);
      admin.deleteTable(T);
      answers.say("deleteNamespaceAsync", () -> admin.deleteNamespaceAsync(NS));
      answers.say("deleteNamespaceAsync again", () -> admin.deleteNamespaceAsync(NS));
    }
    answers.finish();
  }

  private static void futures(Answers a, Admin admin) {
    a.say("createNamespaceAsync", () -> admin.createNamespaceAsync(NamespaceDescriptor.create(NS).build()));
    a.say("createNamespaceAsync again", () -> admin.createNamespaceAsync(NamespaceDescriptor.create(NS).build()));
    a.say("modifyNamespaceAsync",
      () -> admin.modifyNamespaceAsync(NamespaceDescriptor.create(NS).addConfiguration("k", "v").build()));
    a.say("modifyNamespaceAsync none",
      () -> admin.modifyNamespaceAsync(NamespaceDescriptor.create("nowhere").build()));
    a.say("createTableAsync", () -> admin.createTableAsync(TableDescriptorBuilder.newBuilder(T)
      .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build(), new byte[][] { b("h"), b("p") }));
    a.say("addColumnFamilyAsync", () -> admin.addColumnFamilyAsync(T, ColumnFamilyDescriptorBuilder.of("g")));
    a.say("addColumnFamilyAsync again", () -> admin.addColumnFamilyAsync(T, ColumnFamilyDescriptorBuilder.of("g")));
    a.say("modifyColumnFamilyAsync", () -> admin.modifyColumnFamilyAsync(T,
      ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setMaxVersions(3).build()));
    a.say("modifyTableAsync", () -> admin.modifyTableAsync(
      TableDescriptorBuilder.newBuilder(admin.getDescriptor(T)).setValue("note", "x").build()));
    a.say("getAlterStatus", () -> admin.getAlterStatus(T));
    a.say("deleteColumnFamilyAsync", () -> admin.deleteColumnFamilyAsync(T, b("g")));
    a.say("deleteColumnFamilyAsync again", () -> admin.deleteColumnFamilyAsync(T, b("g")));
    a.say("disableTableAsync", () -> admin.disableTableAsync(T));
    a.say("disableTableAsync again", () -> admin.disableTableAsync(T));
    a.say("listTableNamesByState disabled", () -> named(admin.listTableNamesByState(false)));
    a.say("listTableDescriptorsByState disabled", () -> admin.listTableDescriptorsByState(false).stream()
      .filter(d -> d.getTableName().getNamespaceAsString().equals(NS)).count());
    a.say("truncateTableAsync", () -> admin.truncateTableAsync(T, true));
    a.say("isTableEnabled after truncate", () -> admin.isTableEnabled(T));
    a.say("disableTableAsync for enable", () -> admin.disableTableAsync(T));
    a.say("enableTableAsync", () -> admin.enableTableAsync(T));
    a.say("enableTableAsync again", () -> admin.enableTableAsync(T));
    a.say("listTableNamesByState enabled", () -> named(admin.listTableNamesByState(true)));
    a.say("flushAsync", () -> admin.flushAsync(T, List.of(b("f"))));
    a.say("flushAsync none", () -> admin.flushAsync(NONE, Collections.emptyList()));
    a.say("deleteTableAsync none", () -> admin.deleteTableAsync(NONE));
    a.say("modifyTableStoreFileTrackerAsync none", () -> admin.modifyTableStoreFileTrackerAsync(NONE, "FILE"));
    a.say("modifyTableStoreFileTracker to what it is", () -> {
      admin.modifyTableStoreFileTracker(T, "DEFAULT");
      return admin.getDescriptor(T).getValue("hbase.store.file-tracker.impl");
    });
    a.say("modifyTableStoreFileTracker", () -> {
      admin.modifyTableStoreFileTracker(T, "FILE");
      return admin.getDescriptor(T).getValue("hbase.store.file-tracker.impl");
    });
    a.say("modifyTableStoreFileTracker to a migration", () -> {
      admin.modifyTableStoreFileTracker(T, "MIGRATION");
      return null;
    });
    a.say("modifyColumnFamilyStoreFileTracker of no family", () -> {
      admin.modifyColumnFamilyStoreFileTracker(T, b("nothing"), "FILE");
      return null;
    });
    a.say("modifyColumnFamilyStoreFileTrackerAsync",
      () -> admin.modifyColumnFamilyStoreFileTrackerAsync(T, b("f"), "FILE"));
    a.say("modifyColumnFamilyStoreFileTrackerAsync to what is none",
      () -> admin.modifyColumnFamilyStoreFileTrackerAsync(T, b("f"), "nothing"));
  }

  private static String named(List<TableName> names) {
    return names.stream().filter(n -> n.getNamespaceAsString().equals(NS)).sorted().toList().toString();
  }

  private static void descriptors(Answers a, Admin admin) {
    a.say("cloneTableSchema", () -> {
      admin.cloneTableSchema(T, COPY, true);
      return admin.getRegions(COPY).size() + " " + admin.getDescriptor(COPY).getColumnFamilyCount();
    });
    a.say("cloneTableSchema again", () -> {
      admin.cloneTableSchema(T, COPY, true);
      return null;
    });
    a.say("getTableDescriptors", () -> admin.getTableDescriptors(List.of(T.getNameAsString())).length);
    a.say("getTableDescriptorsByTableName", () -> admin.getTableDescriptorsByTableName(List.of(T, NONE)).length);
    a.say("isTableAvailable with keys", () -> admin.isTableAvailable(T, new byte[][] { b("h"), b("p") }));
    a.say("isTableAvailable with other keys", () -> admin.isTableAvailable(T, new byte[][] { b("x") }));
    a.say("disableTables", () -> admin.disableTables(Pattern.compile(NS + ":copy")).length);
    a.say("enableTables", () -> admin.enableTables(Pattern.compile(NS + ":copy")).length);
    a.say("disableTables by text", () -> admin.disableTables(NS + ":copy").length);
    a.say("deleteTables", () -> admin.deleteTables(NS + ":copy").length);
    a.say("tableExists of the copy", () -> admin.tableExists(COPY));
    a.say("getConfiguration", () -> admin.getConfiguration() != null);
    a.say("getConnection", () -> admin.getConnection().isClosed());
    a.say("getOperationTimeout", admin::getOperationTimeout);
    a.say("getSyncWaitTimeout", admin::getSyncWaitTimeout);
    a.say("isAborted", admin::isAborted);
    a.say("abort", () -> {
      try (Admin other = admin.getConnection().getAdmin()) {
        other.abort("as wanted", new java.io.IOException("so"));
        return other.isAborted();
      }
    });
    Pattern mine = Pattern.compile(NS + ":.*");
    a.say("listTables", () -> Arrays.stream(admin.listTables()).filter(t -> t.getTableName().equals(T)).count());
    a.say("listTables by pattern", () -> admin.listTables(mine).length + " " + admin.listTables(NS + ":t").length);
    a.say("listTables with HBase's own",
      () -> admin.listTables(Pattern.compile("hbase:meta"), true).length + " " + admin.listTables("hbase:meta", false).length);
  }

  private static byte[] region(Admin admin, String start) throws Exception {
    for (RegionInfo region : admin.getRegions(T)) {
      if (Rows.text(region.getStartKey()).equals(start)) {
        return region.getRegionName();
      }
    }
    throw new IllegalStateException("no region of " + T + " begins with '" + start + "'");
  }

  private static void regions(Answers a, Server server, Admin admin) throws Exception {
    try (Table table = server.connection.getTable(T)) {
      for (String row : new String[] { "a", "i", "q" }) {
        table.put(put(row, "f:q=" + row));
      }
      ServerName here = admin.getRegionServers().iterator().next();
      a.say("unassign", () -> {
        admin.unassign(region(admin, "h"));
        return Rows.get(table, "a");
      });
      a.say("assign", () -> {
        admin.assign(region(admin, "h"));
        return Rows.get(table, "i");
      });
      a.say("unassign with force", () -> {
        admin.unassign(region(admin, "h"), true);
        admin.assign(region(admin, "h"));
        return Rows.get(table, "i");
      });
      a.say("assign of no region", () -> {
        admin.assign(b("nothing"));
        return null;
      });
      a.say("unassign of no region", () -> {
        admin.unassign(b("nothing"));
        return null;
      });
      a.say("offline of no region", () -> {
        admin.offline(b("nothing"));
        return null;
      });
      a.say("move", () -> {
        admin.move(b(RegionInfo.encodeRegionName(region(admin, "h"))));
        return Rows.get(table, "i");
      });
      a.say("move to where it is", () -> {
        admin.move(b(RegionInfo.encodeRegionName(region(admin, "h"))), here);
        return Rows.get(table, "i");
      });
      a.say("move of no region", () -> {
        admin.move(b("nothing"));
        return null;
      });
      a.say("flushRegionServer", () -> {
        admin.flushRegionServer(here);
        return Rows.get(table, "q");
      });
      a.say("compactRegionServer", () -> {
        admin.compactRegionServer(here);
        return null;
      });
      a.say("majorCompactRegionServer", () -> {
        admin.majorCompactRegionServer(here);
        return null;
      });
      a.say("clearCompactionQueues", () -> {
        admin.clearCompactionQueues(here, Set.of("long", "short"));
        return null;
      });
      a.say("clearCompactionQueues of another name", () -> {
        admin.clearCompactionQueues(here, Set.of("middle"));
        return null;
      });
      a.say("compactionSwitch off", () -> admin.compactionSwitch(false, List.of()).values());
      a.say("compactionSwitch on", () -> admin.compactionSwitch(true, List.of()).values());
      a.say("getLastMajorCompactionTimestampForRegion",
        () -> admin.getLastMajorCompactionTimestampForRegion(region(admin, "h")) >= 0);
      a.say("getLastMajorCompactionTimestampForRegion of none",
        () -> admin.getLastMajorCompactionTimestampForRegion(b("nothing")));
      a.say("getRegionMetrics", () -> admin.getRegionMetrics(here, T).size());
      a.say("getRegionMetrics names", () -> {
        Set<String> names = new java.util.TreeSet<>();
        for (RegionMetrics metrics : admin.getRegionMetrics(here, T)) {
          names.add(metrics.getStoreFileCount() + " " + metrics.getStoreCount() + " " + metrics.getMemStoreSize());
        }
        return names;
      });
      a.say("clearBlockCache", () -> admin.clearBlockCache(T).getExceptionCount());
      a.say("rollWALWriter", () -> {
        admin.rollWALWriter(here);
        return Rows.get(table, "a");
      });
      a.say("mergeRegionsAsync", () -> admin.mergeRegionsAsync(
        new byte[][] { region(admin, ""), region(admin, "h") }, false));
      a.say("regions after the merge", () -> admin.getRegions(T).size());
      a.say("mergeRegionsAsync of one", () -> admin.mergeRegionsAsync(new byte[][] { region(admin, "p") }, false));
      a.say("mergeRegionsAsync of one twice", () -> admin.mergeRegionsAsync(region(admin, "p"), region(admin, "p"),
        false));
      a.say("truncateRegion", () -> {
        admin.truncateRegion(region(admin, "p"));
        return Rows.get(table, "q") + "|" + Rows.get(table, "a");
      });
      a.say("truncateRegionAsync of none", () -> admin.truncateRegionAsync(b("nothing")));
      a.say("getCachedFilesList", () -> admin.getCachedFilesList(here));
      a.say("closeRegion by name", () -> {
        admin.closeRegion(Rows.text(region(admin, "p")), here.getServerName());
        admin.assign(region(admin, "p"));
        return Rows.get(table, "q");
      });
      a.say("closeRegion by bytes", () -> {
        admin.closeRegion(region(admin, "p"), here.getServerName());
        admin.assign(region(admin, "p"));
        return Rows.get(table, "q");
      });
      a.say("closeRegion of a server", () -> {
        admin.closeRegion(here, admin.getTableRegions(T).get(0));
        admin.assign(admin.getTableRegions(T).get(0).getRegionName());
        return Rows.get(table, "a");
      });
      a.say("closeRegionWithEncodedRegionName of none",
        () -> admin.closeRegionWithEncodedRegionName("nothing", here.getServerName()));
    }
  }

  private static void servers(Answers a, Admin admin) throws Exception {
    ServerName here = admin.getRegionServers().iterator().next();
    ServerName nobody = ServerName.valueOf("nobody.invalid", 16020, 1);
    a.say("stopRegionServer that is not there", () -> {
      admin.stopRegionServer("127.0.0.1:1");
      return null;
    });
    a.say("getMaster", admin::getMaster);
    a.say("getBackupMasters", admin::getBackupMasters);
    a.say("getMasterInfoPort", admin::getMasterInfoPort);
    a.say("getRegionServers without those decommissioned", () -> admin.getRegionServers(true).size());
    a.say("getMasterCoprocessors", admin::getMasterCoprocessors);
    a.say("getMasterCoprocessorNames", admin::getMasterCoprocessorNames);
    a.say("listDeadServers", admin::listDeadServers);
    a.say("listUnknownServers", admin::listUnknownServers);
    a.say("clearDeadServers", () -> admin.clearDeadServers(List.of(nobody)));
    a.say("listDecommissionedRegionServers", admin::listDecommissionedRegionServers);
    a.say("decommissionRegionServers", () -> {
      admin.decommissionRegionServers(List.of(here), false);
      return admin.listDecommissionedRegionServers();
    });
    a.say("recommissionRegionServer", () -> {
      admin.recommissionRegionServer(here, List.of());
      return admin.listDecommissionedRegionServers();
    });
    a.say("recommissionRegionServer of one that is not", () -> {
      admin.recommissionRegionServer(here, List.of());
      return null;
    });
    a.say("updateConfiguration of a server", () -> {
      admin.updateConfiguration(here);
      return null;
    });
    a.say("updateConfiguration", () -> {
      admin.updateConfiguration();
      return null;
    });
    a.say("getClusterStatus", () -> admin.getClusterStatus().getServersSize());
    a.say("getClusterMetrics with options", () -> {
      ClusterMetrics metrics = admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.SERVERS_NAME,
        ClusterMetrics.Option.BALANCER_ON, ClusterMetrics.Option.TASKS));
      return metrics.getServersName().size() + " " + metrics.getBalancerOn() + " "
        + metrics.getLiveServerMetrics().size() + " " + metrics.getClusterId();
    });
    LogQueryFilter filter = new LogQueryFilter();
    filter.setLimit(5);
    filter.setTableName(NONE.getNameAsString());
    a.say("getSlowLogResponses", () -> admin.getSlowLogResponses(Set.of(here), filter));
    a.say("clearSlowLogResponses", () -> admin.clearSlowLogResponses(Set.of(here)).size());
    Map<String, Object> none = Map.of("tableName", NONE.getNameAsString());
    a.say("getLogEntries slow log",
      () -> admin.getLogEntries(Set.of(here), "SLOW_LOG", ServerType.REGION_SERVER, 5, none));
    a.say("getLogEntries large log",
      () -> admin.getLogEntries(Set.of(here), "LARGE_LOG", ServerType.REGION_SERVER, 5, none));
    a.say("getLogEntries balancer decisions",
      () -> admin.getLogEntries(Collections.emptySet(), "BALANCER_DECISION", ServerType.MASTER, 5, null));
    a.say("getLogEntries balancer rejections",
      () -> admin.getLogEntries(Collections.emptySet(), "BALANCER_REJECTION", ServerType.MASTER, 5, null));
    a.say("getLogEntries of no kind",
      () -> admin.getLogEntries(Collections.emptySet(), "NOTHING", ServerType.MASTER, 5, null));
    a.say("getSecurityCapabilities", admin::getSecurityCapabilities);
    a.say("isMasterInMaintenanceMode", admin::isMasterInMaintenanceMode);
    a.say("flushMasterStore", () -> {
      admin.flushMasterStore();
      return null;
    });
  }

  private static void switches(Answers a, Admin admin) {
    a.say("balance", () -> admin.balance());
    a.say("balance with force", () -> admin.balance(true));
    a.say("balancer", () -> admin.balancer());
    a.say("balance dry run", () -> {
      BalanceResponse response = admin.balance(BalanceRequest.newBuilder().setDryRun(true)
        .setIgnoreRegionsInTransition(true).build());
      return response.isBalancerRan() + " " + response.getMovesCalculated() + " " + response.getMovesExecuted();
    });
    a.say("splitSwitch off", () -> admin.splitSwitch(false, true));
    a.say("isSplitEnabled", admin::isSplitEnabled);
    a.say("splitSwitch on", () -> admin.splitSwitch(true, true));
    a.say("mergeSwitch off", () -> admin.mergeSwitch(false, true));
    a.say("isMergeEnabled", admin::isMergeEnabled);
    a.say("mergeSwitch on", () -> admin.mergeSwitch(true, true));
    a.say("setSplitOrMergeEnabled", () -> Arrays.toString(admin.setSplitOrMergeEnabled(true, true,
      MasterSwitchType.SPLIT, MasterSwitchType.MERGE)));
    a.say("catalogJanitorSwitch off", () -> admin.catalogJanitorSwitch(false));
    a.say("isCatalogJanitorEnabled", admin::isCatalogJanitorEnabled);
    a.say("catalogJanitorSwitch on", () -> admin.enableCatalogJanitor(true));
    // How many regions it cleans depends on which compactions have ended.
    a.say("runCatalogScan", () -> admin.runCatalogScan() >= 0);
    a.say("runCatalogJanitor", () -> admin.runCatalogJanitor() >= 0);
    a.say("setBalancerRunning", () -> admin.setBalancerRunning(true, true));
    a.say("setNormalizerRunning", () -> admin.setNormalizerRunning(true));
    a.say("isSplitOrMergeEnabled", () -> admin.isSplitOrMergeEnabled(MasterSwitchType.SPLIT) + " "
      + admin.isSplitOrMergeEnabled(MasterSwitchType.MERGE));
    a.say("cleanerChoreSwitch off", () -> admin.cleanerChoreSwitch(false));
    a.say("isCleanerChoreEnabled", admin::isCleanerChoreEnabled);
    a.say("cleanerChoreSwitch on", () -> admin.setCleanerChoreRunning(true));
    // HBase answers false while another run is under way.
    a.say("runCleanerChore", () -> {
      admin.runCleanerChore();
      return null;
    });
    a.say("normalizerSwitch on", () -> admin.normalizerSwitch(true));
    a.say("isNormalizerEnabled", admin::isNormalizerEnabled);
    // Nobody normalizes while regions are in transition.
    a.say("normalize by filter", () -> {
      admin.normalize(new NormalizeTableFilterParams.Builder().tableNames(List.of(T)).build());
      return null;
    });
    a.say("switchRpcThrottle", () -> admin.switchRpcThrottle(true));
    a.say("isRpcThrottleEnabled", admin::isRpcThrottleEnabled);
    a.say("exceedThrottleQuotaSwitch", () -> admin.exceedThrottleQuotaSwitch(true));
    a.say("snapshotCleanupSwitch off", () -> admin.snapshotCleanupSwitch(false, true));
    a.say("isSnapshotCleanupEnabled", admin::isSnapshotCleanupEnabled);
    a.say("snapshotCleanupSwitch on", () -> admin.snapshotCleanupSwitch(true, true));
    a.say("replicationPeerModificationSwitch off", () -> admin.replicationPeerModificationSwitch(false));
    a.say("isReplicationPeerModificationEnabled", admin::isReplicationPeerModificationEnabled);
    a.say("replicationPeerModificationSwitch on", () -> admin.replicationPeerModificationSwitch(true, true));
  }

  private static void snapshots(Answers a, Admin admin) {
    a.say("snapshotAsync", () -> admin.snapshotAsync(new SnapshotDescription("answers_s", T, SnapshotType.FLUSH)));
    a.say("snapshotAsync again",
      () -> admin.snapshotAsync(new SnapshotDescription("answers_s", T, SnapshotType.FLUSH)));
    a.say("takeSnapshotAsync", () -> {
      SnapshotDescription wanted = new SnapshotDescription("answers_t", T, SnapshotType.SKIPFLUSH);
      admin.takeSnapshotAsync(wanted);
      Pattern name = Pattern.compile("answers_t");
      for (int look = 0; admin.listSnapshots(name).isEmpty() && look < 600; look++) {
        Thread.sleep(100);
      }
      String taken = admin.listSnapshots(name).get(0).getType().toString();
      admin.deleteSnapshot("answers_t");
      return taken + ", left: " + admin.listSnapshots(name).size();
    });
    a.say("listTableSnapshots", () -> {
      StringBuilder found = new StringBuilder();
      for (SnapshotDescription s : admin.listTableSnapshots(NS + ":t", "answers_.*")) {
        found.append(s.getName()).append(' ').append(s.getTableNameAsString()).append(' ').append(s.getType())
          .append(' ').append(s.getOwner()).append(' ').append(s.getTtl());
      }
      return found;
    });
    a.say("cloneSnapshotAsync", () -> admin.cloneSnapshotAsync("answers_s", COPY));
    a.say("cloneSnapshotAsync again", () -> admin.cloneSnapshotAsync("answers_s", COPY));
    a.say("cloneSnapshotAsync of none", () -> admin.cloneSnapshotAsync("answers_none", NONE));
    a.say("restoreSnapshotAsync of an enabled table", () -> admin.restoreSnapshotAsync("answers_s"));
    a.say("drop of the clone", () -> {
      admin.disableTable(COPY);
      admin.deleteTable(COPY);
      return admin.tableExists(COPY);
    });
    a.say("deleteTableSnapshots", () -> {
      admin.deleteTableSnapshots(Pattern.compile(NS + ":t"), Pattern.compile("answers_.*"));
      return admin.listSnapshots("answers_.*").size();
    });
  }

  private static void quotas(Answers a, Admin admin) throws Exception {
    ServerName here = admin.getRegionServers().iterator().next();
    a.say("setQuota while they are off", () -> {
      admin.setQuota(QuotaSettingsFactory.throttleTable(T, ThrottleType.REQUEST_NUMBER, 100, TimeUnit.SECONDS));
      return null;
    });
    a.say("setQuota of space while they are off", () -> {
      admin.setQuota(QuotaSettingsFactory.limitTableSpace(T, 1 << 20, SpaceViolationPolicy.NO_INSERTS));
      return null;
    });
    a.say("getQuota", () -> admin.getQuota(new QuotaFilter().setTableFilter(NS + ":t")));
    a.say("getQuotaRetriever", () -> admin.getQuotaRetriever(new QuotaFilter()).next());
    a.say("getSpaceQuotaTableSizes", () -> new TreeMap<>(admin.getSpaceQuotaTableSizes()));
    a.say("getRegionServerSpaceQuotaSnapshots", () -> admin.getRegionServerSpaceQuotaSnapshots(here));
    a.say("getCurrentSpaceQuotaSnapshot", () -> admin.getCurrentSpaceQuotaSnapshot(T));
    a.say("getCurrentSpaceQuotaSnapshot of a namespace", () -> admin.getCurrentSpaceQuotaSnapshot(NS));
  }

  private static void peers(Answers a, Server server, Admin admin) {
    // Another cluster on the same ensemble: the master asks it for its id, which may be missing.
    String elsewhere = server.zk + ":/elsewhere";
    ReplicationPeerConfig config = ReplicationPeerConfig.newBuilder().setClusterKey(elsewhere).build();
    a.say("addReplicationPeerAsync disabled", () -> admin.addReplicationPeerAsync("answers", config, false));
    a.say("addReplicationPeer again", () -> {
      admin.addReplicationPeer("answers", config);
      return null;
    });
    a.say("getReplicationPeerConfig", () -> admin.getReplicationPeerConfig("answers").getClusterKey());
    a.say("getReplicationPeerConfig of none", () -> admin.getReplicationPeerConfig("none"));
    a.say("listReplicationPeers", () -> {
      StringBuilder found = new StringBuilder();
      admin.listReplicationPeers(Pattern.compile("answers")).forEach(
        p -> found.append(p.getPeerId()).append(' ').append(p.isEnabled()).append(' ').append(p.getPeerConfig()
          .replicateAllUserTables()));
      return found;
    });
    a.say("isReplicationPeerEnabled", () -> admin.isReplicationPeerEnabled("answers"));
    a.say("enableReplicationPeerAsync", () -> admin.enableReplicationPeerAsync("answers"));
    a.say("enableReplicationPeer again", () -> {
      admin.enableReplicationPeer("answers");
      return null;
    });
    a.say("disableReplicationPeerAsync", () -> admin.disableReplicationPeerAsync("answers"));
    a.say("disableReplicationPeer again", () -> {
      admin.disableReplicationPeer("answers");
      return null;
    });
    a.say("updateReplicationPeerConfigAsync", () -> admin.updateReplicationPeerConfigAsync("answers",
      ReplicationPeerConfig.newBuilder(config).setReplicateAllUserTables(false)
        .setTableCFsMap(Map.of(T, List.of("f"))).build()));
    a.say("appendReplicationPeerTableCFs", () -> {
      admin.appendReplicationPeerTableCFs("answers", Map.of(NONE, List.of("f")));
      return admin.getReplicationPeerConfig("answers").getTableCFsMap().size();
    });
    a.say("removeReplicationPeerTableCFs", () -> {
      admin.removeReplicationPeerTableCFs("answers", Map.of(NONE, List.of("f")));
      return admin.getReplicationPeerConfig("answers").getTableCFsMap().size();
    });
    a.say("removeReplicationPeerTableCFs again", () -> {
      admin.removeReplicationPeerTableCFs("answers", Map.of(NONE, List.of("f")));
      return null;
    });
    // Of these tables: other cases have made some that are replicated.
    a.say("listReplicatedTableCFs", () -> admin.listReplicatedTableCFs().stream()
      .filter(t -> t.getTable().getNamespaceAsString().equals(NS)).count());
    a.say("updateReplicationPeerConfig of another cluster", () -> {
      admin.updateReplicationPeerConfig("answers",
        ReplicationPeerConfig.newBuilder().setClusterKey(server.zk + ":/other").build());
      return null;
    });
    a.say("removeReplicationPeerAsync", () -> admin.removeReplicationPeerAsync("answers"));
    a.say("removeReplicationPeer again", () -> {
      admin.removeReplicationPeer("answers");
      return null;
    });
    a.say("addReplicationPeer with an illegal name", () -> {
      admin.addReplicationPeer("a-b-c", config);
      return null;
    });
    a.say("addReplicationPeer without a cluster", () -> {
      admin.addReplicationPeer("answers", ReplicationPeerConfig.newBuilder().setClusterKey("rubbish").build());
      return null;
    });
  }

  private static void permissions(Answers a, Admin admin) {
    Permission permission = Permission.newBuilder(T).withActions(Permission.Action.READ).build();
    a.say("grant", () -> {
      admin.grant(new UserPermission("somebody", permission), false);
      return null;
    });
    a.say("revoke", () -> {
      admin.revoke(new UserPermission("somebody", permission));
      return null;
    });
    a.say("getUserPermissions",
      () -> admin.getUserPermissions(GetUserPermissionsRequest.newBuilder(T).build()));
    a.say("hasUserPermissions", () -> admin.hasUserPermissions(List.of(permission)));
  }

  private static void procedures(Answers a, Admin admin) {
    a.say("getLocks", admin::getLocks);
    a.say("getProcedures", () -> admin.getProcedures().startsWith("["));
    a.say("abortProcedure of none", () -> admin.abortProcedure(99_999_999L, true));
    a.say("abortProcedureAsync of none", () -> admin.abortProcedureAsync(99_999_999L, true));
    a.say("execProcedure of no kind", () -> {
      admin.execProcedure("nothing", "x", Map.of());
      return null;
    });
    a.say("execProcedureWithRet of no kind", () -> admin.execProcedureWithRet("nothing", "x", Map.of()));
    a.say("execProcedureWithReturn of no kind", () -> admin.execProcedureWithReturn("nothing", "x", Map.of()));
    a.say("execProcedure flush", () -> {
      admin.execProcedure("flush-table-proc", T.getNameAsString(), Map.of());
      return null;
    });
    a.say("isProcedureFinished flush",
      () -> admin.isProcedureFinished("flush-table-proc", T.getNameAsString(), Map.of()));
    a.say("isProcedureFinished of no kind", () -> admin.isProcedureFinished("nothing", "x", Map.of()));
  }

  private static void old(Answers a, Admin admin) throws Exception {
    ServerName here = admin.getRegionServers().iterator().next();
    a.say("deleteColumn of none", () -> {
      admin.deleteColumn(T, b("nothing"));
      return null;
    });
    a.say("addColumn", () -> {
      admin.addColumn(T, ColumnFamilyDescriptorBuilder.of("old"));
      return admin.getDescriptor(T).getColumnFamilyCount();
    });
    a.say("modifyColumn", () -> {
      admin.modifyColumn(T, ColumnFamilyDescriptorBuilder.newBuilder(b("old")).setMaxVersions(4).build());
      return admin.getDescriptor(T).getColumnFamily(b("old")).getMaxVersions();
    });
    a.say("deleteColumn", () -> {
      admin.deleteColumn(T, b("old"));
      return admin.getDescriptor(T).getColumnFamilyCount();
    });
    a.say("getOnlineRegions", () -> admin.getOnlineRegions(here).stream().filter(r -> r.getTable().equals(T))
      .count());
    a.say("enableTableReplication without peers", () -> {
      admin.enableTableReplication(T);
      return admin.getDescriptor(T).getColumnFamily(b("f")).getScope();
    });
    a.say("disableTableReplication", () -> {
      admin.disableTableReplication(T);
      return admin.getDescriptor(T).getColumnFamily(b("f")).getScope();
    });
    a.say("enableTableReplication of none", () -> {
      admin.enableTableReplication(NONE);
      return null;
    });
  }

  private static void hbck(Answers a, Admin admin, Hbck hbck) throws Exception {
    String encoded = RegionInfo.encodeRegionName(region(admin, "p"));
    a.say("hbck setTableStateInMeta",
      () -> hbck.setTableStateInMeta(new TableState(T, TableState.State.ENABLED)).getState());
    a.say("hbck setTableStateInMeta of none",
      () -> hbck.setTableStateInMeta(new TableState(NONE, TableState.State.ENABLED)));
    a.say("hbck setRegionStateInMeta",
      () -> hbck.setRegionStateInMeta(Map.of(encoded, RegionState.State.OPEN)).values());
    a.say("hbck setRegionStateInMeta of none",
      () -> hbck.setRegionStateInMeta(Map.of("nothing", RegionState.State.OPEN)));
    a.say("hbck assigns", () -> hbck.assigns(List.of(encoded)).size());
    a.say("hbck assigns of none", () -> hbck.assigns(List.of("nothing")));
    a.say("hbck unassigns of none", () -> hbck.unassigns(List.of("nothing"), false));
    a.say("hbck bypassProcedure of none", () -> hbck.bypassProcedure(List.of(99_999_999L), 0, false, false));
    a.say("hbck scheduleServerCrashProcedure of none", () -> hbck.scheduleServerCrashProcedure(List.of()));
    a.say("hbck scheduleServerCrashProcedures of none", () -> hbck.scheduleServerCrashProcedures(List.of()));
    a.say("hbck scheduleSCPsForUnknownServers", hbck::scheduleSCPsForUnknownServers);
    a.say("hbck runHbckChore", hbck::runHbckChore);
    a.say("hbck fixMeta", () -> {
      hbck.fixMeta();
      return null;
    });
  }
}
