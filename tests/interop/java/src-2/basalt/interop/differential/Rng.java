package basalt.interop.differential;

import java.util.Random;

/** Random choices; the same seed makes the same ones. */
final class Rng {
  private final Random random;

  Rng(long seed) {
    // neighbouring seeds of java.util.Random begin alike: stir first (SplitMix64's last steps)
    long z = seed + 0x9e3779b97f4a7c15L;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    random = new Random(z ^ (z >>> 31));
  }

  long seed() {
    return random.nextLong();
  }

  /** From 0 up to but without {@code bound}. */
  int below(int bound) {
    return random.nextInt(bound);
  }

  /** Both ends included. */
  int between(int low, int high) {
    return low + random.nextInt(high - low + 1);
  }

  boolean chance(int percent) {
    return random.nextInt(100) < percent;
  }

  @SafeVarargs
  final <T> T pick(T... from) {
    return from[random.nextInt(from.length)];
  }
}
