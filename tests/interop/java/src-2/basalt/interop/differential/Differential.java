package basalt.interop.differential;

import basalt.interop.Server;
import basalt.interop.differential.Shrink.Difference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

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
  /** The left server answers no more: a handler that goes round for ever, called again, is soon all of them. */
  private volatile boolean stalled;
  private final ExecutorService makers = Executors.newFixedThreadPool(2);
  private final ExecutorService droppers = Executors.newFixedThreadPool(2);
  /** Pairs of tables that are there; more would only fill the servers. */
  private final Semaphore room = new Semaphore(24);
  /** By the group of neighbouring seeds. */
  private final Map<Long, Shared> shared = new ConcurrentHashMap<>();

  private Differential(String left, String right, long shrinkNs) throws Exception {
    Map<String, String> settings = new HashMap<>();
    settings.put("hbase.client.pause", "10");
    settings.put("hbase.client.retries.number", "6");
    // a loaded machine is no difference
    settings.put("hbase.client.operation.timeout", "240000");
    settings.put("hbase.client.meta.operation.timeout", "240000");
    settings.put("hbase.client.scanner.timeout.period", "240000");
    settings.put("hbase.rpc.timeout", "120000");
    this.left = new Server(left, left, settings);
    this.right = new Server(right, right, settings);
    this.shrinkNs = shrinkNs;
    leftAdmin = this.left.connection.getAdmin();
    rightAdmin = this.right.connection.getAdmin();
  }

  /** The same table twice: both sides may be one server, to test the test. */
  private record Tables(TableName left, TableName right) {
  }

  /** Tables of several programs; dropped when none of them is left. */
  private record Shared(Future<Tables> tables, AtomicInteger programs) {
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    // the client logs each exception that a scan brings; here they are answers
    org.apache.logging.log4j.core.config.Configurator.setRootLevel(org.apache.logging.log4j.Level.OFF);
    long shrinkNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--shrink", "40")));
    Differential d = new Differential(options.get("--left"), options.get("--right"), shrinkNs);
    int programs = Integer.parseInt(options.getOrDefault("--programs", "1"));
    long seed = Long.parseLong(options.getOrDefault("--seed", "1"));
    boolean well;
    if (options.containsKey("--steps")) {
      int[] steps = Arrays.stream(options.get("--steps").split(",")).mapToInt(Integer::parseInt).toArray();
      Program program = new Program(seed);
      System.out.println(d.descriptor(program));
      Difference found = d.apart(program, steps, true);
      well = found == null;
      System.out.println(well ? "no difference" : "difference at step " + found.step());
    } else {
      int threads = Integer.parseInt(options.getOrDefault("--threads", "12"));
      long limitNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--limit", "86400")));
      well = d.all(seed, programs, threads, limitNs);
    }
    d.makers.shutdownNow();
    d.droppers.shutdown();
    d.droppers.awaitTermination(20, TimeUnit.SECONDS);
    System.exit(well ? 0 : 1);
  }

  private boolean all(long seed, int programs, int threads, long limitNs) throws Exception {
    long start = System.nanoTime();
    AtomicInteger next = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    List<Thread> workers = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      Thread worker = new Thread(() -> {
        while (!stalled && System.nanoTime() - start < limitNs) {
          int n = next.getAndIncrement();
          if (n >= programs) {
            break;
          }
          one(new Program(seed + n), seed, seed + programs);
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
    if (stalled) {
      System.out.println("continue at " + (seed + Math.min(next.get(), programs)));
    }
    return differences.get() == 0;
  }

  /** {@code first} up to {@code end}: the programs of this run. */
  private void one(Program program, long first, long end) {
    long seed = program.seed;
    int[] all = new int[program.size()];
    Arrays.setAll(all, i -> i);
    try {
      Difference found = program.world.alone ? apart(program, all, false) : together(program, all, first, end);
      if (found == null) {
        return;
      }
      boolean shrink = differences.getAndIncrement() < MOST_SHRUNK;
      Shrink.Small small = Shrink.smaller(all, found, shrink ? shrinkNs : 0, steps -> apart(program, steps, false));
      StringBuilder out = new StringBuilder();
      out.append("FAILED program ").append(seed).append(": step ").append(found.step()).append(small.note())
        .append("; replay with: cargo xtask differential --programs 1 --seed ").append(seed).append(" --steps ")
        .append(small.numbers()).append("\n    ").append(descriptor(program));
      Difference last = small.difference();
      for (int i : small.steps().length > 30 ? new int[] { last.step() } : small.steps()) {
        out.append("\n    step ").append(i).append(": ").append(program.step(i).words());
      }
      out.append("\n    left:  ").append(last.left().replace("\n", "\n           ")).append("\n    right: ")
        .append(last.right().replace("\n", "\n           "));
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
        : Arrays.stream(program.world.splits()).map(Bytes::toString).toList());
  }

  /** Runs these steps on tables of their own; null if all replies were the same. */
  private Difference apart(Program program, int[] numbers, boolean print) throws Exception {
    room.acquire();
    Tables tables = create(program.world, program.world.splits());
    try {
      return play(program, numbers, print, tables);
    } finally {
      drop(tables);
    }
  }

  /** Runs these steps on the tables of the seed's group. */
  private Difference together(Program program, int[] numbers, long first, long end) throws Exception {
    long group = Math.floorDiv(program.seed, World.SLOTS);
    Shared here = shared(group, first, end);
    long next = (group + 1) * World.SLOTS;
    if (next < end && !new World(next).alone) {
      shared(group + 1, first, end);
    }
    try {
      return play(program, numbers, false, here.tables.get());
    } finally {
      if (here.programs.decrementAndGet() == 0) {
        drop(here.tables.get());
      }
    }
  }

  private Shared shared(long group, long first, long end) {
    return shared.computeIfAbsent(group, g -> {
      TreeSet<byte[]> splits = new TreeSet<>(Bytes.BYTES_COMPARATOR);
      long from = Math.max(first, g * World.SLOTS);
      long to = Math.min(end, (g + 1) * World.SLOTS);
      World world = null;
      for (long seed = from; seed < to; seed++) {
        world = new World(seed);
        splits.addAll(Arrays.asList(world.splits()));
      }
      World any = world;
      return new Shared(makers.submit(() -> {
        room.acquire();
        return create(any, splits.toArray(byte[][]::new));
      }), new AtomicInteger((int) (to - from)));
    });
  }

  private Difference play(Program program, int[] numbers, boolean print, Tables tables) throws Exception {
    try (Table l = left.connection.getTable(tables.left); Table r = right.connection.getTable(tables.right)) {
      Program.Site ls = new Program.Site(leftAdmin, l, program.world);
      Program.Site rs = new Program.Site(rightAdmin, r, program.world);
      for (int i : numbers) {
        steps.incrementAndGet();
        // made twice: clients may keep state in a request
        String a = reply(program.step(i), ls);
        Program.Step step = program.step(i);
        String b = reply(step, rs);
        if (print) {
          System.out.println("step " + i + ": " + step.words() + "\n    left:  " + a + "\n    right: " + b);
        }
        if (!a.equals(b) && Replies.isTimeout(a)) {
          stalled = true;
          falls.incrementAndGet();
          System.out.println("note: stall in program " + program.seed + " at step " + i + ": " + step.words());
          return null;
        }
        if (!a.equals(b) && Replies.isFall(a)) {
          falls.incrementAndGet();
          // what it did not do, or the scanner that it left open, would make later steps differ
          System.out.println("note: fall in program " + program.seed + " at step " + i + ": " + step.words());
          return null;
        }
        if (!a.equals(b)) {
          return new Difference(i, a, b);
        }
        // a timestamp that the next step is given shall be another one
        long now = System.currentTimeMillis();
        while (!step.reads() && System.currentTimeMillis() == now) {
          Thread.onSpinWait();
        }
      }
    }
    return null;
  }

  private static String reply(Program.Step step, Program.Site site) {
    try {
      return step.request().of(site);
    } catch (Exception e) {
      return Replies.exception(e);
    }
  }

  private Tables create(World world, byte[][] splits) throws Exception {
    int number = tables.getAndIncrement();
    Tables made = new Tables(TableName.valueOf("d_" + run + "_" + number + "_l"),
      TableName.valueOf("d_" + run + "_" + number + "_r"));
    // null splits mean no splits
    Future<Void> there = leftAdmin.createTableAsync(world.descriptor(made.left), splits);
    rightAdmin.createTableAsync(world.descriptor(made.right), splits).get(120, TimeUnit.SECONDS);
    there.get(120, TimeUnit.SECONDS);
    return made;
  }

  private void drop(Tables tables) {
    droppers.submit(() -> {
      drop(leftAdmin, tables.left);
      drop(rightAdmin, tables.right);
      room.release();
    });
  }

  private static void drop(Admin admin, TableName name) {
    try {
      admin.disableTable(name);
      admin.deleteTable(name);
    } catch (Exception e) {
      System.out.println("note: cannot drop " + name + ": " + e);
    }
  }
}
