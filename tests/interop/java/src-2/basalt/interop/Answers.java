package basalt.interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Calls whose results or exceptions are compared, one by one, with what Apache HBase 2.6.4 answered. Names of servers, times,
 * encoded names of regions and other large numbers are masked on both sides. With UPDATE_EXPECT set the answers are written instead,
 * those of cases that did not run staying as they were (cargo xtask interop asks for the real HBase then).
 */
public final class Answers {
  private final Check check;
  private final Path file;
  private final boolean update = System.getenv("UPDATE_EXPECT") != null;
  private final Map<String, String> expected = new LinkedHashMap<>();

  Answers(Check check, String name) throws Exception {
    this.check = check;
    this.file = Path.of(System.getProperty("basalt.golden"), name);
    if (Files.exists(file)) {
      for (String line : Files.readAllLines(file)) {
        int end = line.indexOf(" => ");
        if (end > 0) {
          expected.put(line.substring(0, end), line.substring(end + 4));
        }
      }
    }
  }

  /** Makes a call and compares. What a future brings is its answer. */
  void say(String name, Callable<?> call) {
    check.run("answer of " + name, () -> {
      String answer;
      try {
        Object value = call.call();
        if (value instanceof Future) {
          value = ((Future<?>) value).get(60, TimeUnit.SECONDS);
        }
        answer = mask(text(value));
      } catch (Throwable t) {
        while (t instanceof ExecutionException && t.getCause() != null) {
          t = t.getCause();
        }
        String message = String.valueOf(t.getMessage());
        int end = message.indexOf('\n');
        answer = mask("throws " + t.getClass().getName() + ": " + (end < 0 ? message : message.substring(0, end)));
      }
      if (update) {
        expected.put(name, answer);
      } else {
        Check.same(name, expected.get(name), answer);
      }
    });
  }

  /** Writes the answers, where they are asked for. */
  void finish() throws Exception {
    if (update) {
      List<String> lines = new ArrayList<>();
      expected.forEach((name, answer) -> lines.add(name + " => " + answer));
      Files.write(file, lines);
    }
  }

  private static String text(Object value) {
    if (value instanceof byte[]) {
      return Rows.text((byte[]) value);
    }
    if (value instanceof Object[]) {
      return text(List.of((Object[]) value));
    }
    if (value instanceof Collection) {
      List<String> all = new ArrayList<>();
      ((Collection<?>) value).forEach(one -> all.add(text(one)));
      all.sort(null);
      return all.toString();
    }
    return String.valueOf(value);
  }

  /** What says only which server answered, and when. */
  public static String mask(String text) {
    return text.replaceAll("[a-zA-Z0-9.-]+,[0-9]{4,5},[0-9]{13}", "SERVER")
      .replaceAll("[a-zA-Z0-9.-]+/[0-9.:]+:[0-9]{4,5}", "ADDRESS")
      .replaceAll("\\b[0-9a-f]{32}\\b", "ENCODED")
      .replaceAll("[0-9]{13}", "TIME")
      .replaceAll("[0-9]{6,}", "NUMBER")
      .replaceAll("localhost:[0-9]+|127\\.0\\.0\\.1:[0-9]+", "ADDRESS")
      .replaceAll("pid=[0-9]+", "pid=N").replaceAll("procId=[0-9]+", "procId=N")
      .replaceAll(" details=.*| call=.*", "");
  }

  /** Waits for a future and gives its value. */
  static <T> T got(CompletableFuture<T> future) throws Exception {
    return future.get(60, TimeUnit.SECONDS);
  }
}
