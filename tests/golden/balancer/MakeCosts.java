// What HBase 2.6.4's cost functions compute for clusters that are made up here, before and after regions move.
//   javac -cp "jars/*" -d classes MakeCosts.java && java -cp "classes:jars/*" org.apache.hadoop.hbase.master.balancer.MakeCosts > costs.jsonl
package org.apache.hadoop.hbase.master.balancer;

import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.master.RackManager;

public class MakeCosts {
  static final Random RANDOM = new Random(20264);

  /** Files of each region lie on machines as this says: region's encoded name -> machine -> blocks. */
  static class Finder extends RegionLocationFinder {
    final Map<String, HDFSBlocksDistribution> known = new HashMap<>();
    @Override public HDFSBlocksDistribution getBlockDistribution(RegionInfo region) {
      return known.getOrDefault(region.getEncodedName(), new HDFSBlocksDistribution());
    }
    @Override protected List<ServerName> getTopBlockLocations(RegionInfo region) { return Collections.emptyList(); }
  }

  static String list(Collection<?> values) { return values.toString().replace(" ", ""); }

  static void make(String name, int servers, int hosts, int racks, int tables, int regions, int replicas, boolean local, int reports, int skew, int moves) {
    Map<ServerName, List<RegionInfo>> cluster = new LinkedHashMap<>();
    List<ServerName> names = new ArrayList<>();
    Map<String, String> rackOf = new HashMap<>();
    for (int s = 0; s < servers; s++) {
      ServerName server = ServerName.valueOf("host" + s % hosts, 1000 + s, 1);
      rackOf.put(server.getHostname(), "/rack" + s % hosts % racks);
      names.add(server);
      cluster.put(server, new ArrayList<>());
    }
    for (int r = 0; r < regions; r++) {
      TableName table = TableName.valueOf("t" + r % tables);
      for (int replica = 0; replica < replicas; replica++) {
        byte[] start = Integer.toString(r + 100000).getBytes();
        RegionInfo region = RegionInfoBuilder.newBuilder(table).setStartKey(start).setRegionId(1000 + r).setReplicaId(replica).build();
        // The smaller skew, the more are on the first servers.
        int at = Math.min(RANDOM.nextInt(servers), RANDOM.nextInt(servers * skew));
        cluster.get(names.get(at)).add(region);
      }
    }
    Map<String, Deque<BalancerRegionLoad>> loads = new HashMap<>();
    Finder finder = new Finder();
    List<String> shown = new ArrayList<>();
    for (ServerName server : names) {
      for (RegionInfo region : cluster.get(server)) {
        Deque<BalancerRegionLoad> history = new ArrayDeque<>();
        List<String> samples = new ArrayList<>();
        long reads = 0, writes = 0;
        for (int n = 0; n < reports; n++) {
          // Now and then a region was opened anew, and counts from 0.
          reads = RANDOM.nextInt(7) == 0 ? RANDOM.nextInt(50) : reads + RANDOM.nextInt(1000);
          writes = RANDOM.nextInt(9) == 0 ? RANDOM.nextInt(50) : writes + RANDOM.nextInt(300);
          int memstore = RANDOM.nextInt(128), files = RANDOM.nextInt(2000);
          samples.add("[" + reads + "," + writes + "," + memstore + "," + files + "]");
          history.add(new BalancerRegionLoad(RegionMetricsBuilder.newBuilder(region.getRegionName()).setReadRequestCount(reads)
              .setWriteRequestCount(writes).setMemStoreSize(new Size(memstore, Size.Unit.MEGABYTE))
              .setStoreFileSize(new Size(files, Size.Unit.MEGABYTE)).build()));
        }
        if (reports > 0) {
          loads.put(region.getRegionNameAsString(), history);
        }
        HDFSBlocksDistribution blocks = new HDFSBlocksDistribution();
        List<Integer> weights = new ArrayList<>();
        for (int h = 0; h < hosts; h++) {
          int weight = local && RANDOM.nextInt(3) > 0 ? 1 + RANDOM.nextInt(40) : 0;
          weights.add(weight);
          if (weight > 0) {
            blocks.addHostsAndBlockWeight(new String[] { "host" + h }, weight);
          }
        }
        finder.known.put(region.getEncodedName(), blocks);
        shown.add("{\"server\":" + names.indexOf(server) + ",\"table\":\"" + region.getTable() + "\",\"start\":\"" + new String(region.getStartKey())
            + "\",\"replica\":" + region.getReplicaId() + ",\"reports\":" + list(samples) + ",\"blocks\":" + list(weights) + "}");
      }
    }
    RackManager rackManager = new RackManager() {
      @Override public String getRack(ServerName server) { return rackOf.get(server.getHostname()); }
    };
    Configuration conf = HBaseConfiguration.create();
    BalancerClusterState state = new BalancerClusterState(cluster, loads, local ? finder : null, rackManager);
    CostFunction[] functions = { new RegionCountSkewCostFunction(conf), new PrimaryRegionCountSkewCostFunction(conf), new MoveCostFunction(conf),
        new ServerLocalityCostFunction(conf), new RackLocalityCostFunction(conf), new TableSkewCostFunction(conf),
        new RegionReplicaHostCostFunction(conf), new RegionReplicaRackCostFunction(conf), new ReadRequestCostFunction(conf),
        new WriteRequestCostFunction(conf), new MemStoreSizeCostFunction(conf), new StoreFileCostFunction(conf) };
    for (CostFunction function : functions) {
      function.prepare(state);
    }
    StringBuilder out = new StringBuilder("{\"name\":\"" + name + "\",\"hosts\":" + hosts + ",\"racks\":" + racks + ",\"servers\":" + servers + ",\"regions\":" + list(shown)
        + ",\"multipliers\":{");
    for (CostFunction function : functions) {
      out.append("\"" + function.getClass().getSimpleName() + "\":" + function.getMultiplier() + ",");
    }
    out.setCharAt(out.length() - 1, '}');
    out.append(",\"costs\":[" + costs(functions));
    List<String> made = new ArrayList<>();
    for (int m = 0; m < moves; m++) {
      int region = RANDOM.nextInt(state.numRegions), to = RANDOM.nextInt(servers);
      int from = state.regionIndexToServerIndex[region];
      if (from == to) {
        continue;
      }
      BalanceAction action = new MoveRegionAction(region, from, to);
      state.doAction(action);
      for (CostFunction function : functions) {
        if (function.isNeeded()) {
          function.postAction(action);
        }
      }
      made.add("[" + region + "," + from + "," + to + "]");
      out.append("," + costs(functions));
    }
    System.out.println(out + "],\"moves\":" + list(made) + "}");
  }

  static String costs(CostFunction[] functions) {
    StringBuilder out = new StringBuilder("{");
    for (CostFunction function : functions) {
      if (function.isNeeded()) {
        out.append("\"" + function.getClass().getSimpleName() + "\":" + function.cost() + ",");
      }
    }
    out.setCharAt(out.length() - 1, '}');
    return out.toString();
  }

  public static void main(String[] args) {
    make("even", 3, 3, 1, 1, 9, 1, false, 0, 1, 4);
    make("one report", 4, 4, 1, 2, 20, 1, false, 1, 2, 4);
    make("fewer regions than servers", 8, 8, 1, 3, 5, 1, false, 3, 1, 4);
    make("loads", 5, 5, 1, 3, 40, 1, false, 15, 3, 8);
    make("one server", 1, 1, 1, 2, 4, 1, false, 3, 1, 0);
    make("servers that share machines", 6, 3, 2, 2, 24, 2, false, 2, 2, 8);
    make("racks and read replicas", 9, 9, 3, 2, 18, 3, true, 4, 2, 10);
    make("where files are", 5, 5, 2, 2, 25, 1, true, 5, 2, 10);
    make("more", 20, 20, 4, 6, 150, 1, true, 2, 4, 12);
    System.exit(0);
  }
}
