package basalt.interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * The smallest possible test harness: named cases, each printed as "ok" or "FAILED" as it ends, and a count at the end.
 * A failing case never stops the ones after it.
 */
public final class Check {
  /** A piece of a case that may throw anything. */
  public interface Body {
    void run() throws Throwable;
  }

  /** A case went wrong: what was expected and what came. */
  public static final class Failure extends RuntimeException {
    public Failure(String message) {
      super(message);
    }
  }

  private final Pattern only;
  private final List<String> failed = new ArrayList<>();
  private int passed;
  private String prefix = "";

  /** {@code only}: a regular expression found in the full case name, or null for all. */
  public Check(String only) {
    this.only = only == null ? null : Pattern.compile(only);
  }

  /** Everything run from here on is named {@code prefix + name}. */
  public void group(String newPrefix) {
    prefix = newPrefix.isEmpty() ? "" : newPrefix + " ";
  }

  public void run(String name, Body body) {
    String full = prefix + name;
    if (only != null && !only.matcher(full).find()) {
      return;
    }
    long start = System.nanoTime();
    try {
      body.run();
      passed++;
      System.out.println("ok " + full + " (" + (System.nanoTime() - start) / 1_000_000 + " ms)");
    } catch (Throwable t) {
      failed.add(full);
      System.out.println("FAILED " + full + ": " + describe(t));
      if (!(t instanceof Failure)) {
        t.printStackTrace();
      } else {
        for (StackTraceElement e : t.getStackTrace()) {
          if (!e.getClassName().endsWith(".Check")) {
            System.out.println("    at " + e);
            break;
          }
        }
      }
    }
    System.out.flush();
  }

  /** Prints the summary; the process exit status to use. */
  public int finish() {
    for (String name : failed) {
      System.out.println("failed: " + name);
    }
    System.out.println(passed + " passed, " + failed.size() + " failed");
    return failed.isEmpty() ? 0 : 1;
  }

  public static void same(String what, Object expected, Object got) {
    Object e = expected instanceof byte[] ? Rows.text((byte[]) expected) : expected;
    Object g = got instanceof byte[] ? Rows.text((byte[]) got) : got;
    if (!Objects.deepEquals(e, g)) {
      throw new Failure(what + ": expected " + shorten(e) + ", got " + shorten(g));
    }
  }

  public static void yes(String what, boolean condition) {
    if (!condition) {
      throw new Failure(what);
    }
  }

  /** {@code body} must fail with {@code wanted} somewhere in its chain of causes; returns what was thrown. */
  public static Throwable fails(String what, Class<? extends Throwable> wanted, Body body) {
    Throwable thrown = null;
    try {
      body.run();
    } catch (Throwable t) {
      thrown = t;
    }
    if (thrown == null) {
      throw new Failure(what + ": expected " + wanted.getSimpleName() + ", but it went through");
    }
    if (!causedBy(thrown, wanted)) {
      Failure f = new Failure(what + ": expected " + wanted.getSimpleName() + ", got " + describe(thrown));
      f.initCause(thrown);
      throw f;
    }
    return thrown;
  }

  public static boolean causedBy(Throwable t, Class<? extends Throwable> wanted) {
    for (int depth = 0; t != null && depth < 20; depth++, t = t.getCause()) {
      if (wanted.isInstance(t)) {
        return true;
      }
      // a batch reports one cause per action, under a class that exists in 2.x only
      if (t.getClass().getSimpleName().equals("RetriesExhaustedWithDetailsException")) {
        try {
          for (Object c : (List<?>) t.getClass().getMethod("getCauses").invoke(t)) {
            if (causedBy((Throwable) c, wanted)) {
              return true;
            }
          }
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException(e);
        }
      }
    }
    return false;
  }

  private static String describe(Throwable t) {
    if (t instanceof Failure) {
      return t.getMessage();
    }
    StringBuilder s = new StringBuilder();
    for (int depth = 0; t != null && depth < 6; depth++, t = t.getCause()) {
      String m = String.valueOf(t.getMessage());
      int end = m.indexOf('\n');
      s.append(depth == 0 ? "" : " <- ").append(t.getClass().getName()).append(": ")
        .append(end < 0 ? m : m.substring(0, end));
    }
    return s.length() > 1500 ? s.substring(0, 1500) : s.toString();
  }

  private static String shorten(Object o) {
    String s = o instanceof Object[] ? Arrays.deepToString((Object[]) o) : String.valueOf(o);
    return s.length() <= 1200 ? s : s.substring(0, 1200) + "... (" + s.length() + " characters)";
  }
}
