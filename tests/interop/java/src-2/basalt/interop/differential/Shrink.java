package basalt.interop.differential;

import java.util.Arrays;

/** Makes a program in which two servers differ smaller, by leaving steps out. */
final class Shrink {
  /** Where two replies were not the same. */
  record Difference(int step, String left, String right) {
  }

  /** Plays these steps; null if all replies were the same. */
  interface Play {
    Difference of(int[] steps) throws Exception;
  }

  /** Steps that are enough, the difference that they make, and what is to be said of it. */
  record Small(int[] steps, Difference difference, String note) {
    /** "1,2,3": as the command line takes them. */
    String numbers() {
      StringBuilder out = new StringBuilder();
      for (int i : steps) {
        out.append(out.length() == 0 ? "" : ",").append(i);
      }
      return out.toString();
    }
  }

  private Shrink() {
  }

  /** {@code all}: in order; {@code found} at one of them. No new try is made after that many nanoseconds; none at all for zero. */
  static Small smaller(int[] all, Difference found, long withinNs, Play play) throws Exception {
    int[] steps = Arrays.copyOf(all, Arrays.binarySearch(all, found.step) + 1);
    if (withinNs <= 0) {
      return new Small(steps, found, "");
    }
    long deadline = System.nanoTime() + withinNs;
    Difference last = found;
    Difference again = play.of(steps);
    String note = again == null ? " (not the second time)" : "";
    for (int chunk = Math.max(1, steps.length / 2); again != null && chunk >= 1; chunk /= 2) {
      for (int at = 0; at + chunk < steps.length && System.nanoTime() < deadline;) {
        int[] without = new int[steps.length - chunk];
        System.arraycopy(steps, 0, without, 0, at);
        System.arraycopy(steps, at + chunk, without, at, steps.length - at - chunk);
        Difference still = play.of(without);
        if (still != null) {
          last = still;
          steps = Arrays.copyOf(without, Arrays.binarySearch(without, still.step) + 1);
        } else {
          at += chunk;
        }
      }
    }
    return new Small(steps, last, note);
  }
}
