package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Flush, compaction and split asked for by an administrator, with reads before, during and after. */
final class Maintenance {
  private Maintenance() {
  }

  static void run(Check check, Server server) throws Exception {
    try (Admin admin = server.connection.getAdmin()) {
      cases(check, server, admin);
    }
  }

  private static void cases(Check check, Server server, Admin admin) {
    check.run("flush, minor and major compaction keep every row", () -> {
      TableName t = server.table("maint", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int file = 0; file < 5; file++) {
          for (int i = 0; i < 100; i++) {
            table.put(put(String.format("r%03d", i), "f:q" + file + "=" + i, "f:last=" + file));
          }
          admin.flush(t);
        }
        table.delete(new Delete(b("r050")));
        admin.flush(t);
        String want = "f:last=4 f:q0=7 f:q1=7 f:q2=7 f:q3=7 f:q4=7";
        same("before", want, Rows.get(table, "r007"));
        admin.compact(t);
        same("during", 99, Rows.count(table, new Scan()));
        settle(admin, t);
        same("after minor", want, Rows.get(table, "r007"));
        compact(admin, t);
        same("after major", want, Rows.get(table, "r007"));
        same("rows", 99, Rows.count(table, new Scan()));
        same("deleted row", "", Rows.get(table, "r050"));
        same("markers gone", 99, Rows.count(table, new Scan().setRaw(true)));
      }
    });
    check.run("flush of one region and of one family", () -> {
      TableName t = server.split("flush1", new String[] { "m" }, "f", "g");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("a", "f:q=1", "g:q=1"));
        table.put(put("z", "f:q=2", "g:q=2"));
        admin.flushRegion(admin.getRegions(t).get(0).getRegionName());
        admin.flush(t, b("g"));
        same("a", "f:q=1 g:q=1", Rows.get(table, "a"));
        same("z", "f:q=2 g:q=2", Rows.get(table, "z"));
      }
    });
    check.run("an open scanner sees through flush and compaction", () -> {
      TableName t = server.table("pinned", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 300; i++) {
          table.put(put(String.format("r%03d", i), "f:q=old"));
        }
        admin.flush(t);
        try (var scanner = table.getScanner(new Scan().setCaching(10))) {
          for (int i = 0; i < 50; i++) {
            same("row", String.format("r%03d", i), Bytes.toString(scanner.next().getRow()));
          }
          for (int i = 0; i < 300; i++) {
            table.put(put(String.format("r%03d", i), "f:q=new"));
          }
          table.delete(new Delete(b("r200")));
          admin.flush(t);
          compact(admin, t);
          int seen = 50;
          for (var r = scanner.next(); r != null; r = scanner.next()) {
            same("row", String.format("r%03d", seen), Bytes.toString(r.getRow()));
            if (seen >= 70) {
              same("value of " + seen + " as of the scanner's start", "old", Bytes.toString(r.value()));
            }
            seen++;
          }
          same("rows", 300, seen);
        }
        same("a new scan", 299, Rows.count(table, new Scan()));
      }
    });
    check.run("split by request, then read, write and scan", () -> {
      TableName t = server.table("split", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 500; i++) {
          table.put(put(String.format("r%03d", i), "f:q=" + i));
        }
        admin.flush(t);
        table.put(put("r100", "f:mem=1"));
        table.put(put("r400", "f:mem=2"));
        admin.split(t, b("r250"));
        await("two regions", () -> admin.getRegions(t).size() == 2 && admin.isTableAvailable(t));
        same("rows", 500, Rows.count(table, new Scan().setCaching(37)));
        same("lower", "f:mem=1 f:q=100", Rows.get(table, "r100"));
        same("upper", "f:mem=2 f:q=400", Rows.get(table, "r400"));
        same("around the seam", "r249,r250,r251",
          Rows.keys(table, new Scan().withStartRow(b("r249")).withStopRow(b("r252"))));
        same("reversed", "r251,r250,r249",
          Rows.keys(table, new Scan().setReversed(true).withStartRow(b("r251")).withStopRow(b("r248"))));
        table.put(put("r249", "f:q=new"));
        table.put(put("r250", "f:q=new"));
        table.delete(new Delete(b("r251")));
        admin.flush(t);
        compact(admin, t);
        same("rows", 499, Rows.count(table, new Scan()));
        same("r249", "f:q=new", Rows.get(table, "r249"));
        same("r250", "f:q=new", Rows.get(table, "r250"));
        List<String> bounds = new ArrayList<>();
        for (RegionInfo r : admin.getRegions(t)) {
          bounds.add(Rows.text(r.getStartKey()) + ".." + Rows.text(r.getEndKey()));
        }
        bounds.sort(null);
        same("bounds", List.of("..r250", "r250.."), bounds);
      }
    });
    check.run("split without a given key", () -> {
      TableName t = server.table("splitmid", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 2000; i++) {
          table.put(put(String.format("r%04d", i), "f:q=" + "x".repeat(200)));
        }
        admin.flush(t);
        admin.split(t);
        await("two regions", () -> admin.getRegions(t).size() == 2 && admin.isTableAvailable(t));
        same("rows", 2000, Rows.count(table, new Scan().setCaching(500)));
      }
    });
    check.run("a client with old locations finds the daughters", () -> {
      TableName t = server.table("stale", "f");
      try (Table table = server.connection.getTable(t);
        var other = server.connect();
        Table otherTable = other.getTable(t)) {
        for (int i = 0; i < 100; i++) {
          table.put(put(String.format("r%03d", i), "f:q=" + i));
        }
        same("cached", "f:q=70", Rows.get(otherTable, "r070"));
        admin.flush(t);
        admin.split(t, b("r050"));
        await("two regions", () -> admin.getRegions(t).size() == 2 && admin.isTableAvailable(t));
        same("get through the other client", "f:q=70", Rows.get(otherTable, "r070"));
        otherTable.put(put("r070", "f:q=new"));
        same("put through the other client", "f:q=new", Rows.get(table, "r070"));
        List<Get> gets = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
          gets.add(new Get(b(String.format("r%03d", i))));
        }
        int found = 0;
        for (var r : otherTable.get(gets)) {
          found += r.isEmpty() ? 0 : 1;
        }
        same("multi-get over both", 100, found);
        same("increment", 5L, otherTable.incrementColumnValue(b("r010"), b("f"), b("n"), 5));
      }
    });
    check.run("increments and appends survive flush and compaction", () -> {
      TableName t = server.table("counters", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 1; i <= 20; i++) {
          table.increment(new Increment(b("r")).addColumn(b("f"), b("n"), i));
          table.append(new Append(b("r")).addColumn(b("f"), b("s"), b("" + i % 10)));
          if (i % 7 == 0) {
            admin.flush(t);
          }
        }
        compact(admin, t);
        same("n", 210L, Bytes.toLong(table.get(new Get(b("r"))).getValue(b("f"), b("n"))));
        same("s", "12345678901234567890", Bytes.toString(table.get(new Get(b("r"))).getValue(b("f"), b("s"))));
      }
    });
    check.run("catalog rows are readable", () -> {
      TableName t = server.split("meta", new String[] { "k" }, "f");
      try (Table meta = server.connection.getTable(TableName.META_TABLE_NAME)) {
        int rows = 0;
        try (var scanner = meta.getScanner(new Scan().withStartRow(b(t + ",,")).withStopRow(b(t + " ,,"))
          .addFamily(b("info")))) {
          for (var r : scanner) {
            rows++;
            RegionInfo info = RegionInfo.parseFrom(r.getValue(b("info"), b("regioninfo")));
            same("table", t, info.getTable());
            same("row key", r.getRow(), info.getRegionName());
            yes("server", r.getValue(b("info"), b("server")) != null);
            same("state", "OPEN", Bytes.toString(r.getValue(b("info"), b("state"))));
          }
        }
        same("regions in meta", 2, rows);
      }
    });
  }

  /** Asks for a major compaction and waits until it is done. */
  static void compact(Admin admin, TableName t) throws Exception {
    long before = admin.getLastMajorCompactionTimestamp(t);
    admin.majorCompact(t);
    long deadline = System.nanoTime() + 3_000_000_000L;
    // the request is queued: wait until it shows, or is already over
    while (admin.getCompactionState(t) == CompactionState.NONE && System.nanoTime() < deadline
      && admin.getLastMajorCompactionTimestamp(t) == before) {
      Thread.sleep(20);
    }
    settle(admin, t);
  }

  static void settle(Admin admin, TableName t) throws Exception {
    await("compaction of " + t + " to end", () -> admin.getCompactionState(t) == CompactionState.NONE);
  }

  interface Condition {
    boolean holds() throws Exception;
  }

  static void await(String what, Condition condition) throws Exception {
    long deadline = System.nanoTime() + 60_000_000_000L;
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new Check.Failure("60 s passed waiting for " + what);
      }
      Thread.sleep(20);
    }
  }
}
