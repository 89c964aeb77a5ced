package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Scans of a table under constant writing, flushing, compacting and splitting: what was there all the time comes exactly
 * once, in order, whole.
 */
final class MovingCases {
  private static final int STABLE = 300;
  private static final long MOVE_FOR_MS = 4_000;

  private MovingCases() {
  }

  static void run(Check check, Server server) throws Exception {
    check.run("a scan of a moving table misses and repeats nothing", () -> {
      TableName t = server.table("moving", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < STABLE; i++) {
          table.put(stable(i));
        }
      }
      AtomicBoolean stop = new AtomicBoolean();
      AtomicInteger passes = new AtomicInteger();
      ExecutorService pool = Executors.newCachedThreadPool();
      List<Future<?>> workers = new ArrayList<>();
      workers.add(pool.submit(() -> write(server, t, stop)));
      workers.add(pool.submit(() -> move(server, t, stop)));
      for (int i = 0; i < 3; i++) {
        int kind = i;
        workers.add(pool.submit(() -> scan(server, t, kind, stop, passes)));
      }
      pool.shutdown();
      // A worker ends early only when it failed.
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MOVE_FOR_MS);
      while (System.nanoTime() < end && workers.stream().noneMatch(Future::isDone)) {
        Thread.sleep(20);
      }
      stop.set(true);
      for (Future<?> worker : workers) {
        worker.get(60, TimeUnit.SECONDS);
      }
      yes("every scanner came round: " + passes, passes.get() >= 3);
      try (Admin admin = server.connection.getAdmin()) {
        yes("the table was split", admin.getRegions(t).size() > 1);
      }
    });
  }

  private static String name(int i) {
    return String.format("r%04d", i);
  }

  private static org.apache.hadoop.hbase.client.Put stable(int i) {
    return put(name(i), "f:a@7=" + i, "f:b@7=" + i, "g:a@7=" + i);
  }

  /** Rows between the stable ones come and go; stable ones are written again as they are. */
  private static Void write(Server server, TableName t, AtomicBoolean stop) throws Exception {
    Random rng = new Random(1);
    try (Table table = server.connection.getTable(t)) {
      while (!stop.get()) {
        int i = rng.nextInt(STABLE);
        String passing = name(i) + "-" + rng.nextInt(5);
        switch (rng.nextInt(3)) {
          case 0 -> table.put(stable(i));
          case 1 -> table.put(put(passing, "f:a=passing"));
          default -> table.delete(new Delete(b(passing)));
        }
      }
    }
    return null;
  }

  private static Void move(Server server, TableName t, AtomicBoolean stop) throws Exception {
    Random rng = new Random(2);
    try (Admin admin = server.connection.getAdmin()) {
      for (int round = 0; !stop.get(); round++) {
        admin.flush(t);
        if (rng.nextBoolean()) {
          admin.majorCompact(t);
        } else {
          admin.compact(t);
        }
        List<RegionInfo> regions = admin.getRegions(t);
        if (regions.size() < 8) {
          byte[] at = b(name(rng.nextInt(STABLE)));
          for (RegionInfo region : regions) {
            if (region.containsRow(at) && !Bytes.equals(region.getStartKey(), at)) {
              try {
                admin.splitRegionAsync(region.getRegionName(), at).get(30, TimeUnit.SECONDS);
              } catch (java.util.concurrent.ExecutionException | java.io.IOException e) {
                // It still refers to its parent's files, or is about to be compacted: another time.
                Thread.sleep(50);
              }
            }
          }
        }
        Thread.sleep(50);
      }
    }
    return null;
  }

  /** Kind 0 forwards, 1 in reverse, 2 in batches; few rows a call, so that most of a scan lies between calls. */
  private static Void scan(Server server, TableName t, int kind, AtomicBoolean stop, AtomicInteger passes)
    throws Exception {
    try (Table table = server.connection.getTable(t)) {
      do {
        Scan scan = new Scan().setCaching(7);
        if (kind == 1) {
          scan.setReversed(true);
        } else if (kind == 2) {
          scan.setBatch(2);
        }
        int next = kind == 1 ? STABLE - 1 : 0;
        List<String> cells = new ArrayList<>();
        try (ResultScanner scanner = table.getScanner(scan)) {
          for (Result r : scanner) {
            String row = Bytes.toString(r.getRow());
            if (row.contains("-")) {
              continue;
            }
            same("next row of kind " + kind, name(next), row);
            cells.add(Rows.stamped(r));
            if (kind != 2 || cells.size() == 2) {
              same("cells", "f:a@7=" + next + " f:b@7=" + next + " g:a@7=" + next, String.join(" ", cells));
              cells.clear();
              next += kind == 1 ? -1 : 1;
            }
          }
        }
        same("rows of kind " + kind, kind == 1 ? -1 : STABLE, next);
        passes.incrementAndGet();
      } while (!stop.get());
    }
    return null;
  }
}
