package basalt.interop.differential;

import basalt.interop.Server;
import basalt.interop.differential.Shrink.Difference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.client.Admin;

/**
 * The differential test of administration: random programs of {@link AdminProgram}, each played on one server and then on the other;
 * results, exceptions' classes and their messages must be the same, but for those in a list with reasons.
 *
 * <p>The same options as {@link Differential}, and {@code --allowed FILE}; {@code --survey yes} prints every difference, none made
 * smaller, and goes on behind it.
 */
public final class Administration {
  private static final int MOST_SHRUNK = 6;

  private final Server left;
  private final Server right;
  private final Admin leftAdmin;
  private final Admin rightAdmin;
  private final long shrinkNs;
  private final List<Allowed> allowed;
  /** Every difference is printed, and the program goes on behind it. */
  private final boolean survey;
  private final String run = Long.toString(System.currentTimeMillis() % 60_000_000, 36);
  private final AtomicInteger sides = new AtomicInteger();
  private final AtomicLong steps = new AtomicLong();
  private final AtomicInteger falls = new AtomicInteger();
  private final AtomicInteger differences = new AtomicInteger();
  /** How often each difference that is allowed came, by its reason. */
  private final Map<String, Integer> excused = new TreeMap<>();
  /** Programs that turn switches run alone. */
  private final ReadWriteLock switches = new ReentrantReadWriteLock(true);

  /**
   * A step whose answers may be these two. All three are found somewhere in the text; {@code reason} is for readers. {@code ends}: the
   * servers are not in one state behind it, so that the program ends.
   */
  private record Allowed(Pattern step, Pattern left, Pattern right, String reason, boolean ends) {
  }

  private Administration(String left, String right, long shrinkNs, List<Allowed> allowed, boolean survey)
    throws Exception {
    Map<String, String> settings = new HashMap<>();
    settings.put("hbase.client.pause", "10");
    settings.put("hbase.client.retries.number", "4");
    settings.put("hbase.client.operation.timeout", "90000");
    settings.put("hbase.client.meta.operation.timeout", "90000");
    settings.put("hbase.rpc.timeout", "60000");
    this.left = new Server(left, left, settings);
    this.right = new Server(right, right, settings);
    this.shrinkNs = shrinkNs;
    this.allowed = allowed;
    this.survey = survey;
    leftAdmin = this.left.connection.getAdmin();
    rightAdmin = this.right.connection.getAdmin();
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    org.apache.logging.log4j.core.config.Configurator.setRootLevel(org.apache.logging.log4j.Level.OFF);
    long shrinkNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--shrink", "40")));
    Administration a = new Administration(options.get("--left"), options.get("--right"), shrinkNs,
      allowed(Path.of(options.get("--allowed"))), options.containsKey("--survey"));
    int programs = Integer.parseInt(options.getOrDefault("--programs", "1"));
    long seed = Long.parseLong(options.getOrDefault("--seed", "1"));
    boolean well;
    if (options.containsKey("--steps")) {
      int[] steps = Arrays.stream(options.get("--steps").split(",")).mapToInt(Integer::parseInt).toArray();
      Difference found = a.play(new AdminProgram(seed), steps, true);
      well = found == null;
      System.out.println(well ? "no difference" : "difference at step " + found.step());
    } else {
      int threads = Integer.parseInt(options.getOrDefault("--threads", "6"));
      long limitNs = TimeUnit.SECONDS.toNanos(Long.parseLong(options.getOrDefault("--limit", "86400")));
      well = a.all(seed, programs, threads, limitNs);
    }
    System.exit(well ? 0 : 1);
  }

  /** Lines of {@code step => left => right => reason}, each of the first three a regular expression; "ends: " may stand first. */
  private static List<Allowed> allowed(Path file) throws Exception {
    List<Allowed> all = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      if (line.isBlank() || line.startsWith("#")) {
        continue;
      }
      boolean ends = line.startsWith("ends: ");
      String[] parts = (ends ? line.substring(6) : line).split(" => ", 4);
      if (parts.length != 4) {
        throw new IllegalArgumentException(file + ": not 'step => left => right => reason': " + line);
      }
      all.add(new Allowed(Pattern.compile(parts[0], Pattern.DOTALL), Pattern.compile(parts[1], Pattern.DOTALL),
        Pattern.compile(parts[2], Pattern.DOTALL), parts[3], ends));
    }
    return all;
  }

  private boolean all(long seed, int programs, int threads, long limitNs) throws Exception {
    long start = System.nanoTime();
    AtomicInteger next = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    List<Thread> workers = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      Thread worker = new Thread(() -> {
        while (System.nanoTime() - start < limitNs) {
          int n = next.getAndIncrement();
          if (n >= programs) {
            break;
          }
          one(new AdminProgram(seed + n));
          int so = done.incrementAndGet();
          if (so % 50 == 0) {
            System.out.printf("note: %d programs, %.2f programs/s%n", so, so * 1e9 / (System.nanoTime() - start));
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
    excused.forEach((reason, times) -> System.out.println("allowed " + times + " times: " + reason));
    System.out.printf("seeds %d to %d: %d programs, %d steps, %.2f programs/s, %d falls on the left, %d different%n", seed,
      seed + programs - 1, done.get(), steps.get(), done.get() / seconds, falls.get(), differences.get());
    return differences.get() == 0;
  }

  private void one(AdminProgram program) {
    int[] all = new int[program.size()];
    Arrays.setAll(all, i -> i);
    try {
      Difference found = play(program, all, false);
      if (found == null) {
        return;
      }
      boolean shrink = differences.getAndIncrement() < MOST_SHRUNK;
      Shrink.Small small = Shrink.smaller(all, found, shrink ? shrinkNs : 0, steps -> play(program, steps, false));
      Difference last = small.difference();
      StringBuilder out = new StringBuilder("FAILED program " + program.seed + ": step " + found.step() + small.note()
        + "; replay with: cargo xtask differential --administration --programs 1 --seed " + program.seed + " --steps "
        + small.numbers());
      AdminSite nowhere = new AdminSite(null, null, "ME", "ELSEWHERE");
      for (int i : shrink ? small.steps() : new int[] { last.step() }) {
        out.append("\n    step ").append(i).append(": ").append(program.step(i, nowhere).words());
      }
      out.append("\n    left:  ").append(last.left().replace("\n", "\n           ")).append("\n    right: ")
        .append(last.right().replace("\n", "\n           "));
      System.out.println(out);
    } catch (Exception e) {
      differences.incrementAndGet();
      synchronized (System.out) {
        System.out.println("FAILED program " + program.seed + ": " + e);
        e.printStackTrace(System.out);
      }
    }
  }

  /** Plays these steps on the one server and then on the other; the first answers that differ. */
  private Difference play(AdminProgram program, int[] numbers, boolean print) throws Exception {
    var lock = program.switches ? switches.writeLock() : switches.readLock();
    lock.lock();
    try {
      int side = sides.incrementAndGet();
      // left's ensemble for both: a cluster key is the same text then
      String elsewhere = left.zk + ":/elsewhere";
      List<String> a = play(program, numbers, new AdminSite(left.connection, leftAdmin, "dl" + run + side, elsewhere));
      List<String> b = play(program, numbers, new AdminSite(right.connection, rightAdmin, "dr" + run + side, elsewhere));
      AdminSite nowhere = new AdminSite(null, null, "ME", "ELSEWHERE");
      for (int i = 0; i < numbers.length; i++) {
        steps.incrementAndGet();
        String l = a.get(i);
        String r = b.get(i);
        String words = program.step(numbers[i], nowhere).words();
        if (print) {
          System.out.println("step " + numbers[i] + ": " + words + "\n    left:  " + l + "\n    right: " + r);
        }
        if (!l.equals(r) && fell(l)) {
          falls.incrementAndGet();
          System.out.println("note: fall in program " + program.seed + " at step " + numbers[i] + ": " + words + ": " + l);
          return null;
        }
        Allowed one = l.equals(r) ? null : allowed(words, l, r);
        if (one != null && one.ends) {
          return null;
        }
        if (!l.equals(r) && one == null) {
          if (!survey) {
            return new Difference(numbers[i], l, r);
          }
          System.out.println("SURVEY " + program.seed + "/" + numbers[i] + " " + words + "\n    left:  " + l + "\n    right: " + r);
        }
      }
      return null;
    } finally {
      lock.unlock();
    }
  }

  /** HBase fell over a bug of its own, which is no answer to be like. */
  private static boolean fell(String reply) {
    return reply.contains("java.lang.NullPointerException") || reply.contains("java.lang.IndexOutOfBoundsException")
      || reply.contains("java.lang.ClassCastException");
  }

  private Allowed allowed(String words, String l, String r) {
    for (Allowed one : allowed) {
      if (one.step.matcher(words).find() && one.left.matcher(l).find() && one.right.matcher(r).find()) {
        synchronized (excused) {
          excused.merge(one.reason, 1, Integer::sum);
        }
        return one;
      }
    }
    return null;
  }

  private static List<String> play(AdminProgram program, int[] numbers, AdminSite site) throws Exception {
    List<String> out = new ArrayList<>();
    if (program.switches) {
      site.turnBack();
    }
    try {
      for (int i : numbers) {
        String answer;
        try {
          answer = program.step(i, site).call().make();
        } catch (Exception e) {
          answer = AdminSite.exception(e);
        }
        out.add(site.mask(String.valueOf(answer)));
      }
    } finally {
      if (program.switches) {
        site.turnBack();
      }
      site.clean();
    }
    return out;
  }
}
