package basalt.interop.differential;

import basalt.interop.Server;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/**
 * The differential test: random programs, each run step by step on two servers; every reply of the one must be the
 * other's.
 *
 * <p>{@code --left ZK --right ZK --programs N --seed S [--threads T] [--shrink SECONDS] [--limit SECONDS]
 * [--steps 1,2,3]}. Program n of a run has the seed S+n, so that one alone is played again with {@code --programs 1}.
 * {@code --steps} plays only those steps of it, and prints every reply.
 */
public final class Differential {
  private static final int MOST_SHRUNK = 8;

  private final Server left;
  private final Server right;
  private final Admin leftAdmin;
  private final Admin rightAdmin;
  private final long shrinkNs;
  private final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
  private final AtomicInteger tables = new AtomicInteger();
  private final AtomicLong steps = new AtomicLong();
  /** Steps at which the left server fell over a bug of its own. */
  private final AtomicInteger falls = new AtomicInteger();
  private final AtomicInteger differences = new AtomicInteger();
  private final ExecutorService droppers = Executors.newFixedThreadPool(2);
  /** Tables that wait to be dropped; more would only fill the servers. */
  private final Semaphore undropped = new Semaphore(24);

  private Differential(String left, String right, long shrinkNs) throws Exception {
    Map<String, String> settings = new HashMap<>();
    settings.put("hbase.client.pause", "10");
    settings.put("hbase.client.retries.number", "6");
    settings.put("hbase.client.operation.timeout", "30000");
    this.left = new Server(left, left, settings);
    this.right = new Server(right, right, settings);
    this.shrinkNs = shrinkNs;
    leftAdmin = this.left.connection.getAdmin();
    rightAdmin = this.right.connection.getAdmin();
  }

  /** Where two replies were not the same. */
  private record Difference(int step, String left, String right) {
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    long shrinkNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--shrink", "40")));
    Differential d = new Differential(options.get("--left"), options.get("--right"), shrinkNs);
    int programs = Integer.parseInt(options.getOrDefault("--programs", "1"));
    long seed = Long.parseLong(options.getOrDefault("--seed", "1"));
    boolean well;
    if (options.containsKey("--steps")) {
      int[] steps = Arrays.stream(options.get("--steps").split(",")).mapToInt(Integer::parseInt).toArray();
      Program program = new Program(seed);
      System.out.println(d.descriptor(program));
      Difference found = d.play(program, steps, true);
      well = found == null;
      System.out.println(well ? "no difference" : "difference at step " + found.step);
    } else {
      int threads = Integer.parseInt(options.getOrDefault("--threads", "4"));
      long limitNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--limit", "86400")));
      well = d.all(seed, programs, threads, limitNs);
    }
    d.droppers.shutdown();
    d.droppers.awaitTermination(60, TimeUnit.SECONDS);
    System.exit(well ? 0 : 1);
  }

  private boolean all(long seed, int programs, int threads, long limitNs) throws Exception {
    long start = System.nanoTime();
    AtomicInteger next = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    List<Thread> workers = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      Thread worker = new Thread(() -> {
        for (int n = next.getAndIncrement(); n < programs && System.nanoTime() - start < limitNs; n =
          next.getAndIncrement()) {
          one(seed + n);
          int so = done.incrementAndGet();
          if (so % 100 == 0) {
            System.out.printf("note: %d programs, %.1f programs/s%n", so, so * 1e9 / (System.nanoTime() - start));
          }
        }
      });
      workers.add(worker);
      worker.start();
    }
    for (Thread worker : workers) {
      worker.join();
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    System.out.printf("seeds %d to %d: %d programs, %d steps, %.1f programs/s, %d falls on the left, %d different%n",
      seed, seed + programs - 1, done.get(), steps.get(), done.get() / seconds, falls.get(), differences.get());
    return differences.get() == 0;
  }

  private void one(long seed) {
    Program program = new Program(seed);
    int[] all = new int[program.size()];
    Arrays.setAll(all, i -> i);
    try {
      Difference found = play(program, all, false);
      if (found == null) {
        return;
      }
      boolean shrink = differences.getAndIncrement() < MOST_SHRUNK && shrinkNs > 0;
      int[] short_ = Arrays.copyOf(all, Arrays.binarySearch(all, found.step) + 1);
      Difference last = found;
      String note = "";
      if (shrink) {
        long deadline = System.nanoTime() + shrinkNs;
        Difference again = play(program, short_, false);
        if (again == null) {
          note = " (not the second time)";
        }
        for (int chunk = Math.max(1, short_.length / 2); again != null && chunk >= 1; chunk /= 2) {
          for (int at = 0; at + chunk < short_.length && System.nanoTime() < deadline;) {
            int[] without = new int[short_.length - chunk];
            System.arraycopy(short_, 0, without, 0, at);
            System.arraycopy(short_, at + chunk, without, at, short_.length - at - chunk);
            Difference still = play(program, without, false);
            if (still != null) {
              last = still;
              short_ = Arrays.copyOf(without, Arrays.binarySearch(without, still.step) + 1);
            } else {
              at += chunk;
            }
          }
        }
      }
      StringBuilder out = new StringBuilder();
      StringBuilder numbers = new StringBuilder();
      for (int i : short_) {
        numbers.append(numbers.length() == 0 ? "" : ",").append(i);
      }
      out.append("FAILED program ").append(seed).append(": step ").append(found.step).append(note)
        .append("; replay with: cargo xtask differential --programs 1 --seed ").append(seed).append(" --steps ")
        .append(numbers).append("\n    ").append(descriptor(program));
      for (int i : short_.length > 30 ? new int[] { last.step } : short_) {
        out.append("\n    step ").append(i).append(": ").append(program.step(i).words());
      }
      out.append("\n    left:  ").append(last.left.replace("\n", "\n           ")).append("\n    right: ")
        .append(last.right.replace("\n", "\n           "));
      System.out.println(out);
    } catch (Exception e) {
      differences.incrementAndGet();
      synchronized (System.out) {
        System.out.println("FAILED program " + seed + ": " + e);
        e.printStackTrace(System.out);
      }
    }
  }

  private String descriptor(Program program) {
    return program.world.descriptor(TableName.valueOf("t")) + " splits "
      + (program.world.splits() == null ? "none"
        : Arrays.stream(program.world.splits()).map(org.apache.hadoop.hbase.util.Bytes::toString).toList());
  }

  /** Runs these steps on tables of their own; null if all replies were the same. */
  private Difference play(Program program, int[] numbers, boolean print) throws Exception {
    undropped.acquire(2);
    int number = tables.getAndIncrement();
    // two names: both sides may be one server, to test the test
    TableName leftName = TableName.valueOf("d_" + run + "_" + number + "_l");
    TableName rightName = TableName.valueOf("d_" + run + "_" + number + "_r");
    try {
      create(leftAdmin, leftName, program.world);
      create(rightAdmin, rightName, program.world);
      try (Table l = left.connection.getTable(leftName); Table r = right.connection.getTable(rightName)) {
        Program.Site ls = new Program.Site(leftAdmin, l);
        Program.Site rs = new Program.Site(rightAdmin, r);
        for (int i : numbers) {
          steps.incrementAndGet();
          // made twice: clients may keep state in a request
          String a = reply(program.step(i), ls);
          Program.Step step = program.step(i);
          String b = reply(step, rs);
          if (print) {
            System.out.println("step " + i + ": " + step.words() + "\n    left:  " + a + "\n    right: " + b);
          }
          if (!a.equals(b) && Replies.isFall(a)) {
            falls.incrementAndGet();
            if (step.reads()) {
              continue;
            }
            return null;
          }
          if (!a.equals(b)) {
            return new Difference(i, a, b);
          }
          // a timestamp that the next step is given shall be another one
          long now = System.currentTimeMillis();
          while (System.currentTimeMillis() == now) {
            Thread.onSpinWait();
          }
        }
      }
      return null;
    } finally {
      droppers.submit(() -> drop(leftAdmin, leftName));
      droppers.submit(() -> drop(rightAdmin, rightName));
    }
  }

  private static String reply(Program.Step step, Program.Site site) {
    try {
      return step.request().of(site);
    } catch (Exception e) {
      return Replies.exception(e);
    }
  }

  private static void create(Admin admin, TableName name, World world) throws Exception {
    if (world.splits() == null) {
      admin.createTable(world.descriptor(name));
    } else {
      admin.createTable(world.descriptor(name), world.splits());
    }
  }

  private void drop(Admin admin, TableName name) {
    try {
      admin.disableTable(name);
      admin.deleteTable(name);
    } catch (org.apache.hadoop.hbase.TableNotFoundException e) {
      // it could not be made: said elsewhere
    } catch (Exception e) {
      System.out.println("note: cannot drop " + name + ": " + e);
    } finally {
      undropped.release();
    }
  }
}
