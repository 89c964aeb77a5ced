package basalt.interop.differential;

import static basalt.interop.Rows.b;
import static basalt.interop.Rows.text;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.quotas.QuotaScope;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfigBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Random calls of administration and of data, all from one seed: tables, families, namespaces, snapshots, regions, quotas and
 * replication peers, of a few names, so that calls meet what earlier ones left. Every tenth program turns the cluster's switches; no
 * other program runs beside such a one.
 */
final class AdminProgram {
  /** A call, ready to be made. */
  interface Call {
    String make() throws Exception;
  }

  /** {@code words}: what is asked. */
  record Step(String words, Call call) {
  }

  final long seed;
  /** Turns switches of the whole cluster. */
  final boolean switches;
  private final List<Long> steps = new ArrayList<>();

  AdminProgram(long seed) {
    this.seed = seed;
    switches = Math.floorMod(seed, 10) == 9;
    Rng d = new Rng(seed);
    int count = d.between(12, 30);
    for (int i = 0; i < count; i++) {
      steps.add(d.seed());
    }
  }

  /** A table and rows to begin with, the random steps, a look at all that is there then. */
  int size() {
    return steps.size() + 3;
  }

  Step step(int number, AdminSite s) throws Exception {
    if (number == 0) {
      return create(new Rng(seed ^ 1), s, s.table("a"), false);
    } else if (number == 1) {
      return put(new Rng(seed ^ 2), s, s.table("a"));
    } else if (number == size() - 1) {
      return new Step("look at all", s::lookAtAll);
    }
    Rng d = new Rng(steps.get(number - 2));
    if (switches && d.chance(45)) {
      return turn(d, s);
    }
    int kind = d.below(100);
    if (kind < 12) {
      return create(d, s, table(d, s), d.chance(35));
    } else if (kind < 30) {
      return table(d, s, table(d, s));
    } else if (kind < 42) {
      return alter(d, s, table(d, s));
    } else if (kind < 54) {
      return data(d, s, table(d, s));
    } else if (kind < 66) {
      return regions(d, s, table(d, s));
    } else if (kind < 84) {
      return snapshots(d, s);
    } else if (kind < 90) {
      return namespaces(d, s);
    } else if (kind < 95) {
      return quotas(d, s);
    }
    return peers(d, s);
  }

  private static TableName table(Rng d, AdminSite s) {
    int which = d.below(100);
    return which == 0 ? TableName.META_TABLE_NAME
      : s.table(which < 60 ? "a" : which < 78 ? "b" : which < 92 ? "n:a" : "none");
  }

  private static Step step(String words, Call call) {
    return new Step(words, call);
  }

  private interface Action {
    void run() throws Exception;
  }

  private static Step does(String words, Action action) {
    return new Step(words, () -> {
      action.run();
      return "done";
    });
  }

  private static Step create(Rng d, AdminSite s, TableName name, boolean odd) {
    TableName of = name.isSystemTable() ? s.table("b") : name;
    TableDescriptor table = AdminTables.table(d, of, odd);
    if (odd && d.chance(20)) {
      byte[] start = b(d.pick("", "a", "r8"));
      byte[] end = b(d.pick("", "r8", "a"));
      int regions = d.pick(0, 2, 3, 4);
      return step("create " + table + " from " + text(start) + " to " + text(end) + " in " + regions, () -> {
        s.admin.createTable(table, start, end, regions);
        return s.made(of);
      });
    }
    byte[][] splits = AdminTables.splits(d);
    StringBuilder words = new StringBuilder("create " + table + " split at");
    for (byte[] key : splits == null ? new byte[0][] : splits) {
      words.append(" '").append(text(key)).append('\'');
    }
    return step(words.toString(), () -> {
      s.admin.createTable(table, splits);
      return s.made(of);
    });
  }

  private static Step table(Rng d, AdminSite s, TableName name) {
    switch (d.below(14)) {
      case 0, 1:
        return does("disable " + name, () -> s.admin.disableTable(name));
      case 2, 3:
        return does("enable " + name, () -> s.admin.enableTable(name));
      case 4:
        return does("delete " + name, () -> s.admin.deleteTable(name));
      case 5:
        return does("disable and delete " + name, () -> {
          s.admin.disableTable(name);
          s.admin.deleteTable(name);
        });
      case 6, 7: {
        boolean keep = d.chance(50);
        boolean disable = d.chance(80);
        TableName of = name.isSystemTable() ? s.table("a") : name;
        return step((disable ? "disable and " : "") + "truncate " + of + (keep ? " but for its splits" : ""), () -> {
          if (disable) {
            s.admin.disableTable(of);
          }
          s.admin.truncateTable(of, keep);
          return s.made(of);
        });
      }
      case 8: {
        TableName copy = s.table(d.pick("b", "n:a", "none"));
        TableName of = name.isSystemTable() ? s.table("a") : name;
        boolean keep = d.chance(50);
        return step("clone the schema of " + of + " to " + copy + (keep ? " with its splits" : ""), () -> {
          s.admin.cloneTableSchema(of, copy, keep);
          return s.made(copy);
        });
      }
      case 9:
        return step("state of " + name, () -> s.admin.tableExists(name) + " " + s.admin.isTableEnabled(name) + " "
          + s.admin.isTableDisabled(name) + " " + s.admin.isTableAvailable(name));
      case 10:
        return step("lists", () -> {
          TreeSet<String> out = new TreeSet<>();
          for (TableName n : s.admin.listTableNames(s.mine(), d.chance(50))) {
            out.add("named " + n);
          }
          for (boolean enabled : new boolean[] { true, false }) {
            for (TableName n : s.admin.listTableNamesByState(enabled)) {
              if (s.mine().matcher(n.getNameAsString()).matches()) {
                out.add((enabled ? "enabled " : "disabled ") + n);
              }
            }
          }
          for (TableDescriptor t : s.admin.listTableDescriptors(s.mine())) {
            out.add(t.toString());
          }
          return out.toString();
        });
      case 11:
        return does("flush " + name, () -> s.admin.flush(name));
      case 12: {
        byte[] family = b(d.pick("f", "g", "x"));
        return does("flush " + name + " " + text(family), () -> s.admin.flush(name, family));
      }
      default:
        return step("look at " + name, () -> name.isSystemTable() ? String.valueOf(s.admin.isTableEnabled(name)) : s.look(name));
    }
  }

  private static Step alter(Rng d, AdminSite s, TableName name) {
    TableName of = name.isSystemTable() ? s.table("a") : name;
    boolean odd = d.chance(35);
    String family = d.pick("f", "f", "g", "h", "x");
    switch (d.below(10)) {
      case 0, 1: {
        var added = AdminTables.family(d, family, odd);
        return does("add to " + of + " " + added, () -> s.admin.addColumnFamily(of, added));
      }
      case 2, 3: {
        var modified = AdminTables.family(d, family, odd);
        return does("modify in " + of + " " + modified, () -> s.admin.modifyColumnFamily(of, modified));
      }
      case 4:
        return does("delete from " + of + " " + family, () -> s.admin.deleteColumnFamily(of, b(family)));
      case 5: {
        TableDescriptor whole = AdminTables.table(d, of, odd);
        return does("modify to " + whole, () -> s.admin.modifyTable(whole));
      }
      case 6: {
        String tracker = d.pick("FILE", "MIGRATION", "DEFAULT", "nothing");
        boolean one = d.chance(50);
        return does("store file tracker of " + of + (one ? " " + family : "") + " " + tracker, () -> {
          if (one) {
            s.admin.modifyColumnFamilyStoreFileTracker(of, b(family), tracker);
          } else {
            s.admin.modifyTableStoreFileTracker(of, tracker);
          }
        });
      }
      case 7: {
        boolean reopen = d.chance(60);
        long seed = d.seed();
        return does("alter " + of + (reopen ? "" : " without reopening") + " " + change(seed, odd,
          TableDescriptorBuilder.newBuilder(of)), () -> s.admin.modifyTable(
            change(seed, odd, TableDescriptorBuilder.newBuilder(s.admin.getDescriptor(of))), reopen));
      }
      case 8: {
        long seed = d.seed();
        return does("alter " + family + " of " + of + " oddly", () -> {
          var now = s.admin.getDescriptor(of).getColumnFamily(b(family));
          var changed = now == null ? ColumnFamilyDescriptorBuilder.newBuilder(b(family))
            : ColumnFamilyDescriptorBuilder.newBuilder(now);
          AdminTables.oddFamily(new Rng(seed), changed);
          s.admin.modifyColumnFamily(of, changed.build());
        });
      }
      default: {
        long seed = d.seed();
        return does("alter " + of + " " + change(seed, odd, TableDescriptorBuilder.newBuilder(of)), () -> s.admin
          .modifyTable(change(seed, odd, TableDescriptorBuilder.newBuilder(s.admin.getDescriptor(of)))));
      }
    }
  }

  private static TableDescriptor change(long seed, boolean odd, TableDescriptorBuilder table) {
    Rng d = new Rng(seed);
    if (odd) {
      AdminTables.odd(d, table);
    } else {
      AdminTables.attribute(d, table);
    }
    return table.build();
  }

  private static Step put(Rng d, AdminSite s, TableName name) {
    List<Put> puts = new ArrayList<>();
    int rows = d.between(2, 8);
    for (int i = 0; i < rows; i++) {
      Put put = new Put(b("r" + d.below(9)), d.between(1, 9));
      put.addColumn(b(d.pick("f", "f", "f", "g")), b(d.pick("a", "b", "")), b("v" + d.below(20)));
      puts.add(put);
    }
    StringBuilder words = new StringBuilder("put into " + name);
    puts.forEach(p -> words.append("\n        ").append(Program.words(p)));
    return does(words.toString(), () -> {
      try (Table table = s.connection.getTable(name)) {
        for (Put put : puts) {
          table.put(put);
        }
      }
    });
  }

  private static Step data(Rng d, AdminSite s, TableName name) {
    TableName of = name.isSystemTable() ? s.table("a") : name;
    switch (d.below(6)) {
      case 0, 1, 2:
        return put(d, s, of);
      case 3: {
        Delete delete = new Delete(b("r" + d.below(9)), d.between(1, 9));
        return does("from " + of + " " + Program.words(delete), () -> {
          try (Table table = s.connection.getTable(of)) {
            table.delete(delete);
          }
        });
      }
      default:
        return step("scan " + of, () -> s.scan(of, new Scan().readAllVersions()));
    }
  }

  private static Step regions(Rng d, AdminSite s, TableName name) {
    TableName of = name.isSystemTable() ? s.table("a") : name;
    int which = d.below(6);
    byte[] at = b(d.pick("r1", "r3", "r5", "r7", "r2", ""));
    switch (d.below(14)) {
      case 0, 1, 2:
        return step("split region " + which + " of " + of + " at '" + text(at) + "'", () -> {
          RegionInfo region = s.region(of, which);
          if (region == null || !s.mayDivide(of, region)) {
            return "skipped";
          }
          s.admin.splitRegionAsync(region.getRegionName(), at).get(2, TimeUnit.MINUTES);
          s.divided(of, region);
          s.settle(of);
          return s.admin.getRegions(of).size() + " regions";
        });
      case 3, 4, 5: {
        int other = which + d.pick(0, 1, 1, 1, 2);
        boolean force = other == which + 1 && d.chance(40);
        return step("merge regions " + which + " and " + other + " of " + of + (force ? " by force" : ""), () -> {
          RegionInfo one = s.region(of, which);
          RegionInfo two = s.region(of, other);
          if (one == null || !s.mayDivide(of, one, two)
            || force && (one.isLast() || !Bytes.equals(one.getEndKey(), two.getStartKey()))) {
            return "skipped";
          }
          s.admin.mergeRegionsAsync(new byte[][] { one.getRegionName(), two.getRegionName() }, force).get(2,
            TimeUnit.MINUTES);
          s.divided(of, one, two);
          s.settle(of);
          return s.admin.getRegions(of).size() + " regions";
        });
      }
      case 6: {
        boolean major = d.chance(50);
        return step((major ? "major compaction of " : "compaction of ") + of, () -> {
          if (major) {
            s.admin.majorCompact(of);
          } else {
            s.admin.compact(of);
          }
          s.settle(of);
          return String.valueOf(s.admin.getCompactionState(of));
        });
      }
      case 7: {
        byte[] family = b(d.pick("f", "x"));
        return step("compaction of " + of + " " + text(family), () -> {
          s.admin.compact(of, family);
          s.settle(of);
          return "done";
        });
      }
      case 8:
        return does("move region " + which + " of " + of, () -> {
          RegionInfo region = s.region(of, which);
          if (region != null) {
            s.admin.move(region.getEncodedNameAsBytes());
            s.opened(of);
          }
        });
      case 9: {
        boolean known = d.chance(40);
        return does("move region " + which + " of " + of + " to " + (known ? "where it is" : "nobody"), () -> {
          RegionInfo region = s.region(of, which);
          if (region != null) {
            s.admin.move(region.getEncodedNameAsBytes(), known ? s.admin.getRegionServers().iterator().next()
              : ServerName.valueOf("nobody.invalid", 16020, 1L));
            s.opened(of);
          }
        });
      }
      case 10: {
        boolean unassign = d.chance(70);
        return does((unassign ? "unassign and " : "") + "assign region " + which + " of " + of, () -> {
          RegionInfo region = s.region(of, which);
          if (region != null) {
            if (unassign) {
              s.admin.unassign(region.getRegionName());
            }
            s.admin.assign(region.getRegionName());
            s.opened(of);
          }
        });
      }
      case 11: {
        byte[] none = b(s.name("a") + d.pick(",,1.0123456789abcdef0123456789abcdef.", "", ",x,1"));
        int call = d.below(5);
        return does("call " + call + " of no region " + text(none), () -> {
          switch (call) {
            case 0 -> s.admin.assign(none);
            case 1 -> s.admin.unassign(none);
            case 2 -> s.admin.flushRegion(none);
            case 3 -> s.admin.splitRegionAsync(none, at).get(2, TimeUnit.MINUTES);
            default -> s.admin.compactRegion(none);
          }
        });
      }
      case 12:
        return step("truncate region " + which + " of " + of, () -> {
          RegionInfo region = s.region(of, which);
          if (region == null || !s.mayDivide(of, region)) {
            return "skipped";
          }
          s.admin.truncateRegion(region.getRegionName());
          return s.scan(of, new Scan());
        });
      default:
        return step("what the cluster says of " + of, () -> {
          StringBuilder out = new StringBuilder();
          var cluster = s.admin.getClusterMetrics();
          out.append(cluster.getLiveServerMetrics().size()).append(" live ").append(cluster.getDeadServerNames().size())
            .append(" dead; ");
          TreeSet<String> all = new TreeSet<>();
          var here = s.admin.getRegionServers().iterator().next();
          for (var metrics : s.admin.getRegionMetrics(here, of)) {
            all.add(metrics.getNameAsString().replaceAll("\\.[0-9a-f]{32}\\.$", "") + " stores " + metrics.getStoreCount());
          }
          var counts = cluster.getTableRegionStatesCount().get(of);
          if (counts != null) {
            out.append(counts.getOpenRegions()).append(" open ").append(counts.getClosedRegions()).append(" closed ")
              .append(counts.getRegionsInTransition()).append(" in transition ");
          }
          return out.append(all).toString();
        });
    }
  }

  private static Step snapshots(Rng d, AdminSite s) {
    String name = s.name(d.pick("s", "s", "s", "u", "gone"));
    TableName of = table(d, s);
    TableName user = of.isSystemTable() ? s.table("a") : of;
    switch (d.below(14)) {
      case 0, 1, 2, 3, 4: {
        SnapshotType type = d.pick(SnapshotType.FLUSH, SnapshotType.FLUSH, SnapshotType.SKIPFLUSH, SnapshotType.DISABLED);
        Map<String, Object> more = d.chance(20) ? Map.of("TTL", d.pick(0L, 100_000L, -1L)) : Map.of();
        // what is in the memstore and what is in files is the same on both sides, but not when: so nothing is left to chance
        return does("snapshot " + name + " of " + of + " " + type + " " + more, () -> s.admin.snapshot(name, of, type, more));
      }
      case 5, 6:
        return step("clone " + name + " as " + user, () -> {
          s.admin.cloneSnapshot(name, user);
          s.copied(user);
          return s.look(user);
        });
      case 7, 8, 9: {
        boolean disable = d.chance(70);
        boolean failsafe = d.chance(50);
        TableName back = s.table(d.pick("a", "a", "b", "n:a"));
        return step((disable ? "disable " + back + ", " : "") + "restore " + name + (failsafe ? " with a failsafe" : ""), () -> {
          if (disable && s.admin.tableExists(back) && s.admin.isTableEnabled(back)) {
            s.admin.disableTable(back);
          }
          for (String any : new String[] { "a", "b", "n:a" }) {
            s.copied(s.table(any));
          }
          s.admin.restoreSnapshot(name, failsafe);
          return s.admin.isTableDisabled(back) ? s.look(back) : "done";
        });
      }
      case 10:
        return does("delete snapshot " + name, () -> s.admin.deleteSnapshot(name));
      case 11:
        return does("delete snapshots of " + of, () -> s.admin.deleteTableSnapshots(Pattern.compile(of.getNameAsString()),
          Pattern.compile(s.me + "_.*")));
      case 12:
        return step("is snapshot " + name + " finished", () -> String.valueOf(
          s.admin.isSnapshotFinished(new SnapshotDescription(name, of))));
      default:
        return step("snapshots", () -> s.snapshots() + " of " + of + " " + s.admin.listTableSnapshots(
          Pattern.compile(of.getNameAsString()), Pattern.compile(s.me + "_.*")).size());
    }
  }

  private static Step namespaces(Rng d, AdminSite s) {
    String name = s.name(d.pick("n", "n", "n", "m"));
    NamespaceDescriptor.Builder n = NamespaceDescriptor.create(name);
    switch (d.below(8)) {
      case 0 -> n.addConfiguration("hbase.namespace.quota.maxtables", d.pick("0", "1", "2", "5", "many", "-1"));
      case 1 -> n.addConfiguration("hbase.namespace.quota.maxregions", d.pick("0", "1", "3", "20", "many"));
      case 2 -> n.addConfiguration("k" + d.below(3), "v" + d.below(3));
      default -> {
      }
    }
    NamespaceDescriptor namespace = n.build();
    switch (d.below(10)) {
      case 0, 1, 2, 3:
        return does("create namespace " + namespace, () -> s.admin.createNamespace(namespace));
      case 4, 5:
        return does("modify namespace " + namespace, () -> s.admin.modifyNamespace(namespace));
      case 6: {
        String gone = d.chance(15) ? d.pick("default", "hbase") : name;
        return does("delete namespace " + gone, () -> s.admin.deleteNamespace(gone));
      }
      case 7:
        return step("namespace " + name, () -> String.valueOf(s.admin.getNamespaceDescriptor(name)));
      case 8:
        return step("tables of namespace " + name, () -> List.of(s.admin.listTableNamesByNamespace(name)) + " "
          + s.admin.listTableDescriptorsByNamespace(b(name)));
      default:
        return step("namespaces", s::namespaces);
    }
  }

  private static Step quotas(Rng d, AdminSite s) {
    TableName table = table(d, s);
    String user = s.name("u");
    String namespace = s.name("n");
    ThrottleType type = d.pick(ThrottleType.values());
    QuotaScope scope = d.chance(80) ? QuotaScope.MACHINE : QuotaScope.CLUSTER;
    long limit = d.pick(100_000L, 5_000_000L, 900_000_000L);
    TimeUnit unit = d.pick(TimeUnit.SECONDS, TimeUnit.MINUTES, TimeUnit.HOURS, TimeUnit.DAYS);
    SpaceViolationPolicy policy = d.pick(SpaceViolationPolicy.values());
    long size = d.pick(1L << 40, 1L << 50, 0L);
    QuotaSettings quota = switch (d.below(16)) {
      case 0, 1 -> QuotaSettingsFactory.throttleTable(table, type, limit, unit, scope);
      case 2 -> QuotaSettingsFactory.throttleUser(user, type, limit, unit, scope);
      case 3 -> QuotaSettingsFactory.throttleUser(user, table, type, limit, unit, scope);
      case 4 -> QuotaSettingsFactory.throttleUser(user, namespace, type, limit, unit, scope);
      case 5 -> QuotaSettingsFactory.throttleNamespace(namespace, type, limit, unit, scope);
      case 6 -> QuotaSettingsFactory.unthrottleTable(table);
      case 7 -> QuotaSettingsFactory.unthrottleTableByThrottleType(table, type);
      case 8 -> QuotaSettingsFactory.unthrottleUser(user);
      case 9 -> QuotaSettingsFactory.unthrottleNamespace(namespace);
      case 10 -> QuotaSettingsFactory.bypassGlobals(user, d.chance(50));
      case 11 -> QuotaSettingsFactory.limitTableSpace(table, size, policy);
      case 12 -> QuotaSettingsFactory.limitNamespaceSpace(namespace, size, policy);
      case 13 -> QuotaSettingsFactory.removeTableSpaceLimit(table);
      case 14 -> QuotaSettingsFactory.removeNamespaceSpaceLimit(namespace);
      default -> null;
    };
    if (quota == null) {
      return step("quotas", s::quotas);
    }
    return step("set quota " + quota, () -> {
      s.later(() -> {
        for (QuotaSettings none : List.of(QuotaSettingsFactory.unthrottleTable(table), QuotaSettingsFactory.unthrottleUser(user),
          QuotaSettingsFactory.unthrottleUser(user, table), QuotaSettingsFactory.unthrottleUser(user, namespace),
          QuotaSettingsFactory.unthrottleNamespace(namespace), QuotaSettingsFactory.bypassGlobals(user, false),
          QuotaSettingsFactory.removeTableSpaceLimit(table), QuotaSettingsFactory.removeNamespaceSpaceLimit(namespace))) {
          try {
            s.admin.setQuota(none);
          } catch (java.io.IOException e) {
            // there is none
          }
        }
      });
      s.admin.setQuota(quota);
      return s.quotas();
    });
  }

  private static Step peers(Rng d, AdminSite s) {
    String id = d.chance(6) ? "a-b" : s.me + d.pick("p", "p", "q");
    ReplicationPeerConfigBuilder c =
      ReplicationPeerConfig.newBuilder().setClusterKey(d.chance(90) ? s.elsewhere : d.pick("rubbish", "h:2181:/x:y"));
    switch (d.below(8)) {
      case 0 -> c.setReplicateAllUserTables(false).setTableCFsMap(Map.of(s.table("a"), List.of("f", "g")));
      case 1 -> c.setReplicateAllUserTables(true).setTableCFsMap(Map.of(s.table("a"), List.of("f")));
      case 2 -> c.setReplicateAllUserTables(false).setNamespaces(java.util.Set.of(s.name("n")));
      case 3 -> c.setReplicateAllUserTables(true).setExcludeNamespaces(java.util.Set.of(s.name("n")));
      case 4 -> c.setBandwidth(d.pick(0L, 1000L, -1L)).setSerial(d.chance(50));
      case 5 -> c.setReplicationEndpointImpl(d.pick("nowhere.Endpoint",
        "org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint"));
      case 6 -> c.putConfiguration("k", "v");
      default -> {
      }
    }
    ReplicationPeerConfig config = c.build();
    switch (d.below(12)) {
      case 0, 1, 2, 3:
        return does("add peer " + id + " " + config, () -> s.admin.addReplicationPeer(id, config, false));
      case 4:
        return does("update peer " + id + " " + config, () -> s.admin.updateReplicationPeerConfig(id, config));
      case 5:
        return does("enable peer " + id, () -> s.admin.enableReplicationPeer(id));
      case 6:
        return does("disable peer " + id, () -> s.admin.disableReplicationPeer(id));
      case 7:
        return does("remove peer " + id, () -> s.admin.removeReplicationPeer(id));
      case 8:
        return step("peer " + id, () -> AdminSite.peer(s.admin.getReplicationPeerConfig(id)) + " "
          + s.admin.isReplicationPeerEnabled(id));
      case 9:
        return does("append to peer " + id, () -> s.admin.appendReplicationPeerTableCFs(id,
          Map.of(s.table("b"), List.of("f"))));
      case 10:
        return does("take from peer " + id, () -> s.admin.removeReplicationPeerTableCFs(id,
          Map.of(s.table("a"), List.of("f"))));
      default:
        return step("peers", s::peers);
    }
  }

  private static Step turn(Rng d, AdminSite s) {
    boolean on = d.chance(50);
    switch (d.below(18)) {
      case 0, 1:
        return step("balancer " + on, () -> s.admin.balancerSwitch(on, true) + " " + s.admin.isBalancerEnabled());
      case 2:
        return step("normalizer " + on, () -> s.admin.normalizerSwitch(on) + " " + s.admin.isNormalizerEnabled());
      case 3:
        return step("catalog janitor " + on,
          () -> s.admin.catalogJanitorSwitch(on) + " " + s.admin.isCatalogJanitorEnabled());
      case 4:
        return step("cleaner " + on, () -> s.admin.cleanerChoreSwitch(on) + " " + s.admin.isCleanerChoreEnabled());
      case 5, 6:
        return step("splits " + on, () -> s.admin.splitSwitch(on, true) + " " + s.admin.isSplitEnabled());
      case 7, 8:
        return step("merges " + on, () -> s.admin.mergeSwitch(on, true) + " " + s.admin.isMergeEnabled());
      case 9:
        return step("snapshot cleanup " + on,
          () -> s.admin.snapshotCleanupSwitch(on, true) + " " + s.admin.isSnapshotCleanupEnabled());
      case 10:
        return step("throttling " + on, () -> s.admin.switchRpcThrottle(on) + " " + s.admin.isRpcThrottleEnabled());
      case 11:
        return step("exceeding throttles " + on, () -> String.valueOf(s.admin.exceedThrottleQuotaSwitch(on)));
      case 12, 13:
        return step("peers may change " + on, () -> s.admin.replicationPeerModificationSwitch(on) + " "
          + s.admin.isReplicationPeerModificationEnabled());
      case 14:
        return step("compactions " + on, () -> s.admin.compactionSwitch(on, List.of()).values().toString());
      case 15:
        return step("balance", () -> String.valueOf(s.admin.balance()));
      case 16:
        return step("servers", () -> s.admin.listDeadServers() + " " + s.admin.listDecommissionedRegionServers() + " "
          + s.admin.isMasterInMaintenanceMode() + " " + s.admin.getRegionServers().size() + " "
          + s.admin.getBackupMasters() + " " + s.admin.clearDeadServers(List.of()));
      default:
        return step("catalog scan", () -> String.valueOf(s.admin.runCatalogJanitor() >= 0));
    }
  }
}
