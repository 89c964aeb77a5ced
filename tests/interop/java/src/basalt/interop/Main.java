package basalt.interop;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs the cases against a server: {@code --zk host:port --bootstrap host:port --golden DIR [--only REGEX] [--label L]
 * [--bad-input yes] [--stop yes]}.
 * Ends with the line "N passed, N failed"; exit status 0 only if none failed.
 */
public final class Main {
  private Main() {
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    Check check = new Check(options.get("--only"));
    String label = options.getOrDefault("--label", "");
    Path golden = Path.of(options.get("--golden"));
    System.setProperty("basalt.golden", golden.toString());
    try (Server server = new Server(options.get("--zk"), options.get("--bootstrap"), Map.of())) {
      if (options.containsKey("--bad-input")) {
        suite(check, label, "bad input", () -> onlyIn2("BadInputCases", check, server));
      } else if (options.containsKey("--stop")) {
        suite(check, label, "stop", () -> onlyIn2("StopCases", check, server));
      } else if (options.containsKey("--moving")) {
        suite(check, label, "moving", () -> MovingCases.run(check, server));
      } else {
        all(check, label, server, golden);
      }
    }
    System.exit(check.finish());
  }

  private static void all(Check check, String label, Server server, Path golden) {
    suite(check, label, "ddl", () -> DdlCases.run(check, server));
    suite(check, label, "data", () -> DataCases.run(check, server));
    suite(check, label, "scan", () -> ScanCases.run(check, server));
    suite(check, label, "filter", () -> FilterCases.run(check, server, golden));
    suite(check, label, "atomic", () -> AtomicCases.run(check, server));
    suite(check, label, "maintenance", () -> Maintenance.run(check, server));
    suite(check, label, "async", () -> AsyncCases.run(check, server));
    suite(check, label, "wire", () -> WireCases.run(check, server));
    suite(check, label, "error", () -> ErrorCases.run(check, server));
    suite(check, label, "old API", () -> onlyIn2("OldApiCases", check, server));
    suite(check, label, "endpoint", () -> onlyIn2("EndpointCases", check, server));
    suite(check, label, "mob", () -> onlyIn2("MobCases", check, server));
    suite(check, label, "bulk load", () -> onlyIn2("BulkLoadCases", check, server));
    suite(check, label, "snapshot", () -> onlyIn2("SnapshotCases", check, server));
    suite(check, label, "admin", () -> onlyIn2("AdminAnswers", check, server));
    suite(check, label, "admin", () -> onlyIn2("AsyncAdminAnswers", check, server));
    suite(check, label, "setter", () -> onlyIn2("ReadSetterCases", check, server));
    suite(check, label, "setter", () -> onlyIn2("WriteSetterCases", check, server));
  }

  /** Cases that compile against 2.x only are a class that may not be there. */
  private static void onlyIn2(String cases, Check check, Server server) throws Exception {
    Class<?> there;
    try {
      there = Class.forName("basalt.interop." + cases);
    } catch (ClassNotFoundException e) {
      return;
    }
    there.getDeclaredMethod("run", Check.class, Server.class).invoke(null, check, server);
  }

  /** A suite that cannot even prepare its table counts as one failed case. */
  private static void suite(Check check, String label, String name, Check.Body body) {
    check.group((label + " " + name).trim());
    try {
      body.run();
    } catch (Throwable t) {
      check.run("preparation", () -> {
        throw t;
      });
    }
  }
}
