package basalt.interop.differential;

import basalt.interop.Server;
import basalt.interop.differential.Shrink.Difference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.client.Admin;

/**
 * The differential test of administration: random programs of {@link AdminProgram}, each played on one server and then on the other;
 * results, exceptions' classes and their messages must be the same, but for those in a list with reasons.
 *
 * <p>The same options as {@link Differential}, and {@code --allowed FILE}; {@code --survey yes} prints every difference, none made
 * smaller, and goes on behind it.
 */
public final class Administration {
  private final Server left;
  private final Server right;
  private final Admin leftAdmin;
  private final Admin rightAdmin;
  private final Contest contest;
  private final List<Allowed> allowed;
  /** Every difference is printed, and the program goes on behind it. */
  private final boolean survey;
  private final String run = Long.toString(System.currentTimeMillis() % 60_000_000, 36);
  private final AtomicInteger sides = new AtomicInteger();
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

  private Administration(String left, String right, Contest contest, List<Allowed> allowed, boolean survey)
    throws Exception {
    Map<String, String> settings = new HashMap<>();
    settings.put("hbase.client.pause", "10");
    settings.put("hbase.client.retries.number", "4");
    settings.put("hbase.client.operation.timeout", "90000");
    settings.put("hbase.client.meta.operation.timeout", "90000");
    settings.put("hbase.rpc.timeout", "60000");
    this.left = new Server(left, left, settings);
    this.right = new Server(right, right, settings);
    this.contest = contest;
    this.allowed = allowed;
    this.survey = survey;
    leftAdmin = this.left.connection.getAdmin();
    rightAdmin = this.right.connection.getAdmin();
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = Contest.options(args);
    org.apache.logging.log4j.core.config.Configurator.setRootLevel(org.apache.logging.log4j.Level.OFF);
    Contest contest = new Contest(options, "--administration ");
    Administration a = new Administration(options.get("--left"), options.get("--right"), contest,
      allowed(Path.of(options.get("--allowed"))), options.containsKey("--survey"));
    boolean well = contest.run((seed, first, end) -> a.game(new AdminProgram(seed)), 6);
    a.excused.forEach((reason, times) -> System.out.println("allowed " + times + " times: " + reason));
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

  private Contest.Game game(AdminProgram program) {
    return new Contest.Game() {
      @Override
      public int size() {
        return program.size();
      }

      @Override
      public Difference whole() throws Exception {
        return play(program, IntStream.range(0, program.size()).toArray(), false);
      }

      @Override
      public Difference some(int[] steps, boolean print) throws Exception {
        return play(program, steps, print);
      }

      @Override
      public String heading() {
        return "";
      }

      @Override
      public String words(int step) throws Exception {
        return program.step(step, new AdminSite(null, null, "ME", "ELSEWHERE")).words();
      }
    };
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
        contest.steps.incrementAndGet();
        String l = a.get(i);
        String r = b.get(i);
        String words = program.step(numbers[i], nowhere).words();
        if (print) {
          System.out.println("step " + numbers[i] + ": " + words + "\n    left:  " + l + "\n    right: " + r);
        }
        if (!l.equals(r) && fell(l)) {
          contest.falls.incrementAndGet();
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
