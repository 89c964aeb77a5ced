package basalt.interop.differential;

import static basalt.interop.Rows.text;

import basalt.interop.Answers;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.ipc.RemoteException;

/**
 * One server's side of a program of administration. All that the program names begins with a word of the side's own ({@link #me}), in
 * place of which answers have {@code ME}: so both sides may be one server, and what other programs made is not seen.
 */
final class AdminSite {
  private static final long PATIENCE_NS = 120_000_000_000L;
  private static final int MOST_RESULTS = 2000;

  final Connection connection;
  final Admin admin;
  /** Begins every name; the same length on both sides. */
  final String me;
  /** A cluster that is not there, on an ensemble that is. */
  final String elsewhere;
  /**
   * Of each table the first keys of those regions that were neither split nor merged since they were made: only these are divided. How
   * long HBase refuses another time depends on when it has cleaned up behind the first.
   */
  private final Map<TableName, Set<String>> whole = new HashMap<>();
  /** What takes back what outlives the tables. */
  private final List<Undo> undo = new ArrayList<>();

  interface Undo {
    void run() throws Exception;
  }

  AdminSite(Connection connection, Admin admin, String me, String elsewhere) {
    this.connection = connection;
    this.admin = admin;
    this.me = me;
    this.elsewhere = elsewhere;
  }

  /** "a": of the default namespace; "n:a": of the program's. Other namespaces are named as they are. */
  TableName table(String name) {
    return name.startsWith("n:") ? TableName.valueOf(me + "_n", name.substring(2))
      : name.contains(":") ? TableName.valueOf(name) : TableName.valueOf(me + "_" + name);
  }

  String name(String name) {
    return me + "_" + name;
  }

  Pattern mine() {
    return Pattern.compile("(" + me + "_n:.*|" + me + "_.*)");
  }

  void later(Undo step) {
    undo.add(step);
  }

  /** The table was made anew: each of its regions may be divided once. */
  String made(TableName name) throws Exception {
    Set<String> starts = new TreeSet<>();
    for (RegionInfo r : admin.getRegions(name)) {
      starts.add(text(r.getStartKey()));
    }
    whole.put(name, starts);
    return "done";
  }

  /** None of its regions may be divided from now on. */
  void copied(TableName name) {
    whole.remove(name);
  }

  boolean mayDivide(TableName name, RegionInfo... regions) {
    Set<String> starts = whole.getOrDefault(name, Set.of());
    for (RegionInfo r : regions) {
      if (!starts.contains(text(r.getStartKey()))) {
        return false;
      }
    }
    return true;
  }

  void divided(TableName name, RegionInfo... regions) {
    for (RegionInfo r : regions) {
      whole.getOrDefault(name, new TreeSet<>()).remove(text(r.getStartKey()));
    }
  }

  /** One of the table's regions; null if it has none. */
  RegionInfo region(TableName name, int which) throws Exception {
    List<RegionInfo> regions = admin.getRegions(name);
    return regions.isEmpty() ? null : regions.get(which % regions.size());
  }

  /** Waits until nothing of the table is compacted or waits for it. */
  void settle(TableName name) throws Exception {
    long start = System.nanoTime();
    for (RegionInfo r : admin.getRegions(name)) {
      while (admin.getCompactionStateForRegion(r.getRegionName()) != CompactionState.NONE) {
        if (System.nanoTime() - start > PATIENCE_NS) {
          throw new IllegalStateException("a compaction does not end");
        }
        Thread.sleep(3);
      }
    }
  }

  /** A move is answered before the region is open again, and clients remember where it was. */
  void opened(TableName name) throws Exception {
    long start = System.nanoTime();
    while (admin.isTableEnabled(name)) {
      connection.clearRegionLocationCache();
      try {
        scan(name, new Scan());
        return;
      } catch (java.io.IOException e) {
        if (System.nanoTime() - start > PATIENCE_NS) {
          throw new IllegalStateException("a region does not open", e);
        }
        Thread.sleep(3);
      }
    }
  }

  String scan(TableName name, Scan scan) throws Exception {
    StringBuilder out = new StringBuilder();
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      int results = 0;
      for (Result r = scanner.next(); r != null; r = scanner.next()) {
        out.append("\n    ").append(Replies.of(r));
        if (++results > MOST_RESULTS) {
          return "no end";
        }
      }
    }
    return out.toString();
  }

  /** State, descriptor, regions and cells. */
  String look(TableName name) throws Exception {
    StringBuilder out = new StringBuilder(name.getNameAsString());
    if (!admin.tableExists(name)) {
      return out.append(": none").toString();
    }
    boolean enabled = admin.isTableEnabled(name);
    out.append(enabled ? ": enabled" : admin.isTableDisabled(name) ? ": disabled" : ": neither enabled nor disabled");
    out.append(admin.isTableAvailable(name) ? ", available" : ", not available");
    out.append("\n    ").append(admin.getDescriptor(name));
    for (RegionInfo r : admin.getRegions(name)) {
      out.append("\n    '").append(text(r.getStartKey())).append("' to '").append(text(r.getEndKey())).append("' ")
        .append(r.getReplicaId()).append(r.isOffline() ? " offline" : "").append(r.isSplit() ? " split" : "");
    }
    return out.append(enabled ? scan(name, new Scan().readAllVersions()) : "").toString();
  }

  /** Every table, namespace, snapshot, quota and peer of this side. */
  String lookAtAll() throws Exception {
    StringBuilder out = new StringBuilder();
    for (TableName name : tables()) {
      out.append(look(name)).append('\n');
    }
    out.append(snapshots()).append('\n').append(namespaces()).append('\n').append(quotas()).append('\n').append(peers());
    return out.toString();
  }

  /** By name: the order of {@code TableName} is another one from run to run. */
  private Collection<TableName> tables() throws Exception {
    TreeMap<String, TableName> all = new TreeMap<>();
    for (TableName name : admin.listTableNames(mine())) {
      all.put(name.getNameAsString(), name);
    }
    return all.values();
  }

  String snapshots() throws Exception {
    TreeSet<String> all = new TreeSet<>();
    for (SnapshotDescription s : admin.listSnapshots(Pattern.compile(me + "_.*"))) {
      all.add(s.getName() + " of " + s.getTableName() + " " + s.getType() + " owner " + s.getOwner() + " ttl " + s.getTtl()
        + " version " + s.getVersion() + " max " + s.getMaxFileSize());
    }
    return "snapshots " + all;
  }

  String namespaces() throws Exception {
    TreeSet<String> all = new TreeSet<>();
    for (var n : admin.listNamespaceDescriptors()) {
      if (n.getName().startsWith(me)) {
        all.add(n.toString());
      }
    }
    return "namespaces " + all;
  }

  String quotas() throws Exception {
    TreeSet<String> all = new TreeSet<>();
    String any = me + "_.*";
    for (QuotaFilter filter : List.of(new QuotaFilter().setTableFilter(any), new QuotaFilter().setNamespaceFilter(any),
      new QuotaFilter().setUserFilter(any))) {
      for (QuotaSettings q : admin.getQuota(filter)) {
        all.add(q.toString());
      }
    }
    return "quotas " + all;
  }

  String peers() throws Exception {
    TreeSet<String> all = new TreeSet<>();
    admin.listReplicationPeers(Pattern.compile(me + ".*"))
      .forEach(p -> all.add(p.getPeerId() + (p.isEnabled() ? " enabled " : " disabled ") + peer(p.getPeerConfig())));
    return "peers " + all;
  }

  /** A peer's maps come in no order. */
  static String peer(ReplicationPeerConfig c) {
    return c.getClusterKey() + " " + c.getReplicationEndpointImpl() + " all " + c.replicateAllUserTables() + " tables "
      + sorted(c.getTableCFsMap()) + " but " + sorted(c.getExcludeTableCFsMap()) + " namespaces "
      + (c.getNamespaces() == null ? null : new TreeSet<>(c.getNamespaces())) + " but "
      + (c.getExcludeNamespaces() == null ? null : new TreeSet<>(c.getExcludeNamespaces())) + " bandwidth "
      + c.getBandwidth() + " serial " + c.isSerial() + " " + new TreeMap<>(c.getConfiguration());
  }

  private static TreeMap<String, List<String>> sorted(Map<TableName, List<String>> families) {
    TreeMap<String, List<String>> out = new TreeMap<>();
    if (families != null) {
      families.forEach((name, f) -> out.put(name.getNameAsString(), f));
    }
    return out;
  }

  /** Every switch as it is on a new cluster: a run that was broken off may have left some otherwise. */
  void turnBack() throws Exception {
    admin.balancerSwitch(true, true);
    admin.normalizerSwitch(true);
    admin.catalogJanitorSwitch(true);
    admin.cleanerChoreSwitch(true);
    admin.splitSwitch(true, true);
    admin.mergeSwitch(true, true);
    admin.snapshotCleanupSwitch(true, true);
    admin.switchRpcThrottle(true);
    admin.exceedThrottleQuotaSwitch(false);
    admin.replicationPeerModificationSwitch(true);
    admin.compactionSwitch(true, List.of());
  }

  /** Takes away all that is left of this side. */
  void clean() {
    try {
      for (int i = undo.size() - 1; i >= 0; i--) {
        undo.get(i).run();
      }
      for (TableName name : tables()) {
        if (admin.isTableEnabled(name)) {
          admin.disableTable(name);
        }
        admin.deleteTable(name);
      }
      admin.deleteSnapshots(Pattern.compile(me + "_.*"));
      for (var n : admin.listNamespaceDescriptors()) {
        if (n.getName().startsWith(me)) {
          admin.deleteNamespace(n.getName());
        }
      }
      for (var peer : admin.listReplicationPeers(Pattern.compile(me + ".*"))) {
        admin.removeReplicationPeer(peer.getPeerId());
      }
    } catch (Exception e) {
      System.out.println("note: cannot clean up behind " + me + ": " + e);
    }
  }

  /** An answer as it is the same on every server. */
  String mask(String answer) {
    return Answers.mask(answer.replace(me, "ME").replace(elsewhere, "ELSEWHERE"))
      .replaceAll("(ME[A-Za-z0-9_:]*,[^,]*,)[A-Z0-9]+\\.ENCODED\\.", "$1TIME.ENCODED.");
  }

  /** Class and first line of what the server said; the client's wrappings depend on timing. */
  static String exception(Throwable e) {
    if (e instanceof RetriesExhaustedWithDetailsException details) {
      TreeSet<String> causes = new TreeSet<>();
      details.getCauses().forEach(c -> causes.add(exception(c)));
      return causes.toString();
    }
    boolean wraps = e instanceof RetriesExhaustedException || e instanceof ExecutionException || e instanceof CompletionException;
    if (wraps && e.getCause() != null) {
      return exception(e.getCause());
    }
    String name = e instanceof RemoteException remote ? remote.getClassName() : e.getClass().getName();
    String message = String.valueOf(e.getMessage());
    int end = message.indexOf('\n');
    message = end < 0 ? message : message.substring(0, end);
    return "throws " + name + ": " + (message.startsWith(name + ": ") ? message.substring(name.length() + 2) : message);
  }
}
