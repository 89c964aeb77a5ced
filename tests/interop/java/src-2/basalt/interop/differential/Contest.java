package basalt.interop.differential;

import basalt.interop.differential.Shrink.Difference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Has programs played on two servers, several at a time, each made by its seed; makes those in which the servers differ smaller, prints
 * them, and counts.
 */
final class Contest {
  /** More differences are printed as they were found. */
  private static final int MOST_SHRUNK = 8;
  /** Of a longer program only the step at which the servers differ is printed. */
  private static final int MOST_PRINTED = 30;

  /** A program of steps, and what it is played on. */
  interface Game {
    int size();

    /** Plays all steps; null if all replies were the same. */
    Difference whole() throws Exception;

    /** Plays these steps alone, on tables of their own. */
    Difference some(int[] steps, boolean print) throws Exception;

    /** What there is to say of the program before its steps, in lines that begin with a line's end; may be empty. */
    String heading();

    String words(int step) throws Exception;
  }

  /** Makes the program of a seed. {@code first} up to {@code end}: those of this run. */
  interface Games {
    Game of(long seed, long first, long end);
  }

  final AtomicLong steps = new AtomicLong();
  /** Steps at which the left server fell over a bug of its own. */
  final AtomicInteger falls = new AtomicInteger();
  private final AtomicInteger differences = new AtomicInteger();
  /** The left server answers no more. */
  private volatile boolean stalled;
  private final Map<String, String> options;
  private final long shrinkNs;
  /** What {@code cargo xtask differential} is told to play such programs. */
  private final String replay;

  Contest(Map<String, String> options, String replay) {
    this.options = options;
    this.replay = replay;
    shrinkNs = TimeUnit.SECONDS.toNanos(number("--shrink", 40));
  }

  /** {@code --name value --name value}. */
  static Map<String, String> options(String[] args) {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    return options;
  }

  private long number(String name, long otherwise) {
    return options.containsKey(name) ? Long.parseLong(options.get(name)) : otherwise;
  }

  /** No new program is begun: called again, a handler that goes round for ever is soon all of them. */
  void stall() {
    stalled = true;
    falls.incrementAndGet();
  }

  /** Plays what the options say; whether the servers were the same. */
  boolean run(Games games, int threads) throws Exception {
    long seed = number("--seed", 1);
    if (options.containsKey("--steps")) {
      int[] chosen = Arrays.stream(options.get("--steps").split(",")).mapToInt(Integer::parseInt).toArray();
      Game game = games.of(seed, seed, seed + 1);
      System.out.println(game.heading());
      Difference found = game.some(chosen, true);
      System.out.println(found == null ? "no difference" : "difference at step " + found.step());
      return found == null;
    }
    return all(games, seed, number("--programs", 1), number("--threads", threads));
  }

  private boolean all(Games games, long seed, long programs, long threads) throws Exception {
    long limitNs = TimeUnit.SECONDS.toNanos(number("--limit", 86400));
    long start = System.nanoTime();
    AtomicLong next = new AtomicLong();
    AtomicInteger done = new AtomicInteger();
    List<Thread> workers = new ArrayList<>();
    for (long t = 0; t < threads; t++) {
      Thread worker = new Thread(() -> {
        while (!stalled && System.nanoTime() - start < limitNs) {
          long n = next.getAndIncrement();
          if (n >= programs) {
            break;
          }
          one(games.of(seed + n, seed, seed + programs), seed + n);
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
    System.out.printf("seeds %d to %d: %d programs, %d steps, %.2f programs/s, %d falls on the left, %d different%n",
      seed, seed + programs - 1, done.get(), steps.get(), done.get() / seconds, falls.get(), differences.get());
    if (stalled) {
      System.out.println("continue at " + (seed + Math.min(next.get(), programs)));
    }
    return differences.get() == 0;
  }

  private void one(Game game, long seed) {
    int[] all = new int[game.size()];
    Arrays.setAll(all, i -> i);
    try {
      Difference found = game.whole();
      if (found == null) {
        return;
      }
      boolean shrink = differences.getAndIncrement() < MOST_SHRUNK;
      Shrink.Small small = Shrink.smaller(all, found, shrink ? shrinkNs : 0, some -> game.some(some, false));
      StringBuilder out = new StringBuilder("FAILED program " + seed + ": step " + found.step() + small.note()
        + "; replay with: cargo xtask differential " + replay + "--programs 1 --seed " + seed + " --steps "
        + small.numbers() + game.heading());
      Difference last = small.difference();
      for (int i : small.steps().length > MOST_PRINTED ? new int[] { last.step() } : small.steps()) {
        out.append("\n    step ").append(i).append(": ").append(game.words(i));
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
}
