package basalt.interop.differential;

import static basalt.interop.Rows.b;
import static basalt.interop.Rows.text;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.CellScanner;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.protobuf.TextFormat;

/** A part of a table and the requests made of it, all from one seed. Each request is made anew for each server. */
final class Program {
  private static final int MOST_RESULTS = 5000;
  private static final long PATIENCE_NS = 60_000_000_000L;

  /** One server's copy of the table. */
  static final class Site {
    final Admin admin;
    final Table table;
    private final World world;
    private List<RegionInfo> regions;
    private boolean divided;

    Site(Admin admin, Table table, World world) {
      this.admin = admin;
      this.table = table;
      this.world = world;
    }

    /** The regions of this program's rows. */
    List<RegionInfo> regions() throws java.io.IOException {
      if (regions == null) {
        regions = new ArrayList<>();
        for (RegionInfo r : admin.getRegions(table.getName())) {
          byte[] from = r.getStartKey();
          if (world.alone || Bytes.compareTo(from, world.first()) >= 0 && Bytes.compareTo(from, world.end()) < 0) {
            regions.add(r);
          }
        }
      }
      return regions;
    }
  }

  /** A request, ready to be made of either server. */
  interface Request {
    String of(Site site) throws Exception;
  }

  /** {@code text}: what is asked, in words. {@code reads}: and nothing is changed. */
  record Step(boolean reads, Supplier<String> text, Request request) {
    String words() {
      return text.get();
    }
  }

  final long seed;
  final World world;
  private final List<Long> steps = new ArrayList<>();

  Program(long seed) {
    this.seed = seed;
    Rng d = new Rng(seed);
    world = new World(seed);
    int count = d.between(30, 120);
    for (int i = 0; i < count; i++) {
      steps.add(d.seed());
    }
  }

  /** The random steps, then those that look at everything: as it is, and after a last flush and major compaction. */
  int size() {
    return steps.size() + 6;
  }

  Step step(int number) throws Exception {
    int after = number - steps.size();
    if (after >= 0) {
      return switch (after) {
        case 0, 4 -> scan(whole());
        case 1, 5 -> scan(whole().setRaw(world.raw(true)).readAllVersions());
        case 2 -> new Step(false, () -> "flush", this::flush);
        default -> new Step(false, () -> "major compaction", Program::majorCompact);
      };
    }
    Rng d = new Rng(steps.get(number));
    Operations o = new Operations(d, world);
    int kind = d.below(100);
    if (kind < 22) {
      Put put = o.put(world.row(d));
      return writes(put, s -> nothing(() -> s.table.put(put)));
    } else if (kind < 32) {
      var delete = o.delete(world.row(d));
      return writes(delete, s -> nothing(() -> s.table.delete(delete)));
    } else if (kind < 37) {
      var increment = o.increment(world.row(d));
      return writes(increment, s -> Replies.of(s.table.increment(increment)));
    } else if (kind < 41) {
      var append = o.append(world.row(d));
      return writes(append, s -> Replies.of(s.table.append(append)));
    } else if (kind < 47) {
      CheckAndMutate check = o.check();
      return writes(check, s -> Replies.of(s.table.checkAndMutate(check)));
    } else if (kind < 50) {
      RowMutations m = o.mutations(world.row(d));
      return writes(m, s -> Replies.of(s.table.mutateRow(m)));
    } else if (kind < 55) {
      List<Row> batch = o.batch();
      return new Step(false, () -> words("batch", batch), s -> batch(s, batch));
    } else if (kind < 58) {
      List<Put> puts = o.puts();
      return new Step(false, () -> words("puts", puts), s -> nothing(() -> s.table.put(puts)));
    } else if (kind < 70) {
      Get get = o.get();
      return new Step(true, () -> words(get), s -> Replies.of(s.table.get(get)));
    } else if (kind < 72) {
      List<Get> gets = o.gets();
      return new Step(true, () -> words("gets", gets), s -> all(s.table.get(gets)));
    } else if (kind < 73) {
      Get get = o.get();
      return new Step(true, () -> "exists " + words(get), s -> String.valueOf(s.table.exists(get)));
    } else if (kind < 92) {
      return scan(o.scan(false));
    } else if (kind < 94 && !world.keepsDeleted) {
      return interrupted(o.scan(true), d);
    } else if (kind < 97) {
      return new Step(false, () -> "flush", this::flush);
    } else if (kind < 98 && world.compactsSmall) {
      return new Step(false, () -> "compaction", Program::compact);
    } else if (kind < 99 || d.chance(65)) {
      return new Step(false, () -> "major compaction", Program::majorCompact);
    }
    byte[] at = world.row(d);
    return new Step(false, () -> "split at " + text(at), s -> split(s, at));
  }

  private static Step writes(Row row, Request request) {
    return new Step(false, () -> words(row), request);
  }

  /** All there is of this program. */
  private Scan whole() {
    return world.alone ? new Scan() : new Scan().withStartRow(world.first()).withStopRow(world.end());
  }

  private interface Action {
    void run() throws Exception;
  }

  private static String nothing(Action action) throws Exception {
    action.run();
    return "done";
  }

  private static String batch(Site s, List<Row> batch) throws Exception {
    Object[] results = new Object[batch.size()];
    try {
      s.table.batch(batch, results);
    } catch (java.io.IOException e) {
      return all(results) + " " + Replies.exception(e);
    }
    return all(results);
  }

  private static String all(Object[] results) {
    StringBuilder out = new StringBuilder();
    for (Object r : results) {
      out.append(out.length() == 0 ? "" : ", ").append(Replies.of(r));
    }
    return out.toString();
  }

  private static Step scan(Scan scan) {
    return new Step(true, () -> words(scan), s -> scan(s, scan, () -> { }, Integer.MAX_VALUE));
  }

  /** Files are written and replaced while the scan is under way. */
  private Step interrupted(Scan scan, Rng d) {
    int after = d.between(1, 4);
    boolean flush = d.chance(60);
    return new Step(false, () -> words(scan) + (flush ? " flushed" : " compacted") + " after " + after,
      s -> scan(s, scan, () -> {
        if (flush) {
          flush(s);
        } else {
          majorCompact(s);
        }
      }, after));
  }

  private static String scan(Site s, Scan scan, Action interruption, int after) throws Exception {
    StringBuilder out = new StringBuilder();
    int results = 0;
    byte[] row = null;
    // where a server cuts a row into parts is its own affair when the client asked for parts
    boolean joined = scan.getAllowPartialResults();
    try (ResultScanner scanner = s.table.getScanner(scan)) {
      for (Result r = scanner.next(); r != null && results < MOST_RESULTS; r = scanner.next(), results++) {
        if (joined && row != null && Bytes.equals(row, r.getRow())) {
          out.append(' ');
        } else if (joined) {
          out.append('\n').append(text(r.getRow())).append(' ');
        } else {
          out.append('\n').append(Replies.of(r));
        }
        if (joined) {
          row = r.getRow();
          out.append(String.join(" ", Replies.cells(r)));
        }
        if (results + 1 == after) {
          interruption.run();
        }
      }
    } catch (java.io.IOException e) {
      out.append('\n').append(Replies.exception(e));
    }
    return results >= MOST_RESULTS ? "no end" : out.toString();
  }

  private String flush(Site s) throws Exception {
    for (RegionInfo r : s.regions()) {
      s.admin.flushRegion(r.getRegionName());
    }
    // asked for, and waited for, it is at the same moment on both sides
    return world.compactsSmall ? compact(s) : "done";
  }

  private static String compact(Site s) throws Exception {
    for (RegionInfo r : s.regions()) {
      s.admin.compactRegion(r.getRegionName());
    }
    settle(s);
    return "done";
  }

  private static String majorCompact(Site s) throws Exception {
    for (RegionInfo r : s.regions()) {
      s.admin.majorCompactRegion(r.getRegionName());
    }
    settle(s);
    return "done";
  }

  private static void settle(Site s) throws Exception {
    long start = System.nanoTime();
    for (RegionInfo r : s.regions()) {
      while (s.admin.getCompactionStateForRegion(r.getRegionName()) != CompactionState.NONE) {
        if (System.nanoTime() - start > PATIENCE_NS) {
          throw new IllegalStateException("a compaction does not end");
        }
        Thread.sleep(3);
      }
    }
  }

  /**
   * Compacted before, so that it does not matter when the halves are compacted. Once only: how long HBase refuses to split
   * a half again depends on when it clears its compacted files away.
   */
  private String split(Site s, byte[] at) throws Exception {
    if (s.divided) {
      return "once only";
    }
    s.divided = true;
    flush(s);
    majorCompact(s);
    for (RegionInfo r : s.regions()) {
      if (r.containsRow(at) && !Bytes.equals(r.getStartKey(), at)) {
        s.regions = null;
        s.admin.splitRegionAsync(r.getRegionName(), at).get();
      }
    }
    settle(s);
    return s.regions().size() + " regions";
  }

  private static String words(String what, List<? extends Row> rows) {
    StringBuilder words = new StringBuilder(what);
    rows.forEach(r -> words.append("\n        ").append(words(r)));
    return words.toString();
  }

  static String words(Row row) {
    try {
      if (row instanceof Mutation m) {
        StringBuilder out = new StringBuilder(m.getClass().getSimpleName().toLowerCase()).append(' ').append(text(m.getRow()));
        if (m.getTimestamp() != Long.MAX_VALUE) {
          out.append('@').append(m.getTimestamp());
        }
        CellScanner cells = m.cellScanner();
        while (cells.advance()) {
          out.append(' ').append(Replies.cell(cells.current()));
        }
        if (m.getTTL() != Long.MAX_VALUE) {
          out.append(" ttl ").append(m.getTTL());
        }
        if (m.getDurability() != Durability.USE_DEFAULT) {
          out.append(' ').append(m.getDurability());
        }
        if (m instanceof Increment i && !i.getTimeRange().isAllTime()) {
          out.append(' ').append(i.getTimeRange());
        } else if (m instanceof Append a && !a.getTimeRange().isAllTime()) {
          out.append(' ').append(a.getTimeRange());
        }
        return out.toString();
      } else if (row instanceof RowMutations m) {
        StringBuilder out = new StringBuilder("mutations");
        m.getMutations().forEach(x -> out.append("\n          ").append(words(x)));
        return out.toString();
      } else if (row instanceof CheckAndMutate c) {
        return "if " + text(c.getRow()) + " " + (c.hasFilter() ? c.getFilter()
          : text(c.getFamily()) + ":" + text(c.getQualifier()) + " " + c.getCompareOp() + " " + text(c.getValue()))
          + " " + c.getTimeRange() + " then " + words((Row) c.getAction());
      } else if (row instanceof Get g) {
        return "get " + TextFormat.shortDebugString(ProtobufUtil.toGet(g)) + " " + g.getFilter();
      }
      return row.toString();
    } catch (java.io.IOException e) {
      return row + " " + e;
    }
  }

  private static String words(Scan scan) {
    try {
      return "scan " + TextFormat.shortDebugString(ProtobufUtil.toScan(scan)) + " " + scan.getFilter()
        + (scan.getLimit() > 0 ? " limit " + scan.getLimit() : "");
    } catch (java.io.IOException e) {
      return scan + " " + e;
    }
  }
}
