package basalt.interop.differential;

import basalt.interop.Server;
import basalt.interop.differential.Shrink.Difference;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
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
  private final Server left;
  private final Server right;
  private final Admin leftAdmin;
  private final Admin rightAdmin;
  private final Contest contest;
  private final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
  private final AtomicInteger tables = new AtomicInteger();
  private final ExecutorService makers = Executors.newFixedThreadPool(2);
  private final ExecutorService droppers = Executors.newFixedThreadPool(2);
  /** Pairs of tables that are there; more would only fill the servers. */
  private final Semaphore room = new Semaphore(24);
  /** By the group of neighbouring seeds. */
  private final Map<Long, Shared> shared = new ConcurrentHashMap<>();

  private Differential(String left, String right, Contest contest) throws Exception {
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
    this.contest = contest;
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
    Map<String, String> options = Contest.options(args);
    // the client logs each exception that a scan brings; here they are answers
    org.apache.logging.log4j.core.config.Configurator.setRootLevel(org.apache.logging.log4j.Level.OFF);
    Contest contest = new Contest(options, "");
    Differential d = new Differential(options.get("--left"), options.get("--right"), contest);
    boolean well = contest.run(d::game, 12);
    d.makers.shutdownNow();
    d.droppers.shutdown();
    d.droppers.awaitTermination(20, TimeUnit.SECONDS);
    System.exit(well ? 0 : 1);
  }

  private Contest.Game game(long seed, long first, long end) {
    Program program = new Program(seed);
    return new Contest.Game() {
      @Override
      public int size() {
        return program.size();
      }

      @Override
      public Difference whole() throws Exception {
        int[] all = IntStream.range(0, program.size()).toArray();
        return program.world.alone ? apart(program, all, false) : together(program, all, first, end);
      }

      @Override
      public Difference some(int[] steps, boolean print) throws Exception {
        return apart(program, steps, print);
      }

      @Override
      public String heading() {
        return "\n    " + descriptor(program);
      }

      @Override
      public String words(int step) throws Exception {
        return program.step(step).words();
      }
    };
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
        contest.steps.incrementAndGet();
        // made twice: clients may keep state in a request
        String a = reply(program.step(i), ls);
        Program.Step step = program.step(i);
        String b = reply(step, rs);
        if (print) {
          System.out.println("step " + i + ": " + step.words() + "\n    left:  " + a + "\n    right: " + b);
        }
        if (!a.equals(b) && Replies.isTimeout(a)) {
          contest.stall();
          System.out.println("note: stall in program " + program.seed + " at step " + i + ": " + step.words());
          return null;
        }
        if (!a.equals(b) && Replies.isFall(a)) {
          contest.falls.incrementAndGet();
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
