package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.metrics.ScanMetrics;
import org.apache.hadoop.hbase.util.Bytes;

/** The whole scan protocol: ranges, directions, limits of every kind, partial rows, renewals, several regions. */
final class ScanCases {
  private ScanCases() {
  }

  static void run(Check check, Server server) throws Exception {
    TableName t = server.split("scan", new String[] { "r040", "r080" }, "f", "g");
    try (Table table = server.connection.getTable(t); Admin admin = server.connection.getAdmin()) {
      for (int i = 0; i < 120; i++) {
        table.put(put(row(i), "f:a=" + i, "f:b=" + i * 2, "g:c=" + i * 3));
        if (i == 30 || i == 90) {
          admin.flush(t);
        }
      }
      ranges(check, table);
      limits(check, table);
    }
    partials(check, server);
    others(check, server);
  }

  private static String row(int i) {
    return String.format("r%03d", i);
  }

  private static void ranges(Check check, Table table) {
    check.run("everything, in order", () -> {
      List<String> rows = Rows.scan(table, new Scan());
      same("rows", 120, rows.size());
      for (int i = 0; i < 120; i++) {
        same("row", row(i) + "{f:a=" + i + " f:b=" + i * 2 + " g:c=" + i * 3 + "}", rows.get(i));
      }
    });
    check.run("start and stop, inclusive and not", () -> {
      same("[3,6)", "r003,r004,r005", Rows.keys(table, new Scan().withStartRow(b("r003")).withStopRow(b("r006"))));
      same("(3,6]", "r004,r005,r006",
        Rows.keys(table, new Scan().withStartRow(b("r003"), false).withStopRow(b("r006"), true)));
      same("[3,3]", "r003", Rows.keys(table, new Scan().withStartRow(b("r003")).withStopRow(b("r003"), true)));
      same("[3,3)", "", Rows.keys(table, new Scan().withStartRow(b("r003")).withStopRow(b("r003"))));
      same("between rows", "r004", Rows.keys(table, new Scan().withStartRow(b("r0031")).withStopRow(b("r0041"))));
      same("past the end", "", Rows.keys(table, new Scan().withStartRow(b("x"))));
      same("before the start", "", Rows.keys(table, new Scan().withStopRow(b("a"))));
      same("over a seam", "r039,r040", Rows.keys(table, new Scan().withStartRow(b("r039")).withStopRow(b("r041"))));
      same("stop at a seam", "r039", Rows.keys(table, new Scan().withStartRow(b("r039")).withStopRow(b("r040"))));
      same("start/stop by prefix", 10, Rows.count(table, new Scan().setStartStopRowForPrefixScan(b("r05"))));
    });
    check.run("reversed", () -> {
      List<String> up = Rows.scan(table, new Scan());
      List<String> down = Rows.scan(table, new Scan().setReversed(true).setCaching(7));
      java.util.Collections.reverse(down);
      same("reversed is the reverse", up, down);
      same("[6,3)", "r006,r005,r004",
        Rows.keys(table, new Scan().setReversed(true).withStartRow(b("r006")).withStopRow(b("r003"))));
      same("(6,3]", "r005,r004,r003",
        Rows.keys(table, new Scan().setReversed(true).withStartRow(b("r006"), false).withStopRow(b("r003"), true)));
      same("over a seam", "r041,r040,r039",
        Rows.keys(table, new Scan().setReversed(true).withStartRow(b("r041")).withStopRow(b("r038"))));
      same("from past the end", "r119,r118",
        Rows.keys(table, new Scan().setReversed(true).withStartRow(b("x")).setLimit(2)));
      same("from between rows", "r004",
        Rows.keys(table, new Scan().setReversed(true).withStartRow(b("r0041")).setLimit(1)));
      same("before the start", "", Rows.keys(table, new Scan().setReversed(true).withStartRow(b("a"))));
    });
    check.run("chosen columns", () -> {
      same("family", 120, Rows.count(table, new Scan().addFamily(b("g"))));
      same("column", List.of("r005{f:b=10}", "r006{f:b=12}"), Rows.scan(table,
        new Scan().addColumn(b("f"), b("b")).withStartRow(b("r005")).withStopRow(b("r007"))));
      same("two families' columns", List.of("r005{f:b=10 g:c=15}"),
        Rows.scan(table, new Scan().addColumn(b("f"), b("b")).addColumn(b("g"), b("c")).withStartRow(b("r005"))
          .setOneRowLimit()));
      same("absent column", 0, Rows.count(table, new Scan().addColumn(b("f"), b("zz"))));
    });
  }

  private static void limits(Check check, Table table) {
    for (int caching : new int[] { 1, 2, 7, 40, 119, 120, 121, 100_000 }) {
      check.run("caching " + caching, () -> {
        same("rows", 120, Rows.count(table, new Scan().setCaching(caching)));
        same("reversed", 120, Rows.count(table, new Scan().setCaching(caching).setReversed(true)));
      });
    }
    for (int limit : new int[] { 1, 39, 40, 41, 80, 119, 120, 500 }) {
      check.run("limit " + limit, () -> {
        for (Scan.ReadType type : Scan.ReadType.values()) {
          same("rows " + type, Math.min(limit, 120),
            Rows.count(table, new Scan().setLimit(limit).setReadType(type)));
          same("reversed " + type, Math.min(limit, 120),
            Rows.count(table, new Scan().setLimit(limit).setReadType(type).setReversed(true)));
          same("with small caching " + type, Math.min(limit, 120),
            Rows.count(table, new Scan().setLimit(limit).setCaching(3).setReadType(type)));
        }
      });
    }
    check.run("max result size", () -> {
      for (long size : new long[] { 1, 100, 1000, 100_000 }) {
        same("rows at " + size, 120, Rows.count(table, new Scan().setMaxResultSize(size)));
        same("reversed at " + size, 120, Rows.count(table, new Scan().setMaxResultSize(size).setReversed(true)));
      }
    });
    check.run("batch", () -> {
      List<String> pieces = Rows.scan(table, new Scan().setBatch(2).withStopRow(b("r002")));
      same("pieces", List.of("r000{f:a=0 f:b=0}", "r000{g:c=0}", "r001{f:a=1 f:b=2}", "r001{g:c=3}"), pieces);
      same("all pieces", 240, Rows.count(table, new Scan().setBatch(2).setCaching(11)));
      same("batch of 1", 360, Rows.count(table, new Scan().setBatch(1).setMaxResultSize(100)));
      same("batch larger than any row", 120, Rows.count(table, new Scan().setBatch(50)));
      // the limit counts rows, not pieces
      same("batch and limit", 4, Rows.count(table, new Scan().setBatch(2).setLimit(2)));
    });
    check.run("small scans by PREAD", () -> {
      same("rows", "r010,r011,r012", Rows.keys(table, new Scan().withStartRow(b("r010")).withStopRow(b("r013"))
        .setReadType(Scan.ReadType.PREAD).setLimit(10)));
      same("one row", "r038", Rows.keys(table, new Scan().withStartRow(b("r038")).setOneRowLimit()));
    });
    check.run("stop early, close", () -> {
      for (int i = 0; i < 30; i++) {
        try (ResultScanner s = table.getScanner(new Scan().setCaching(5))) {
          for (int n = 0; n < i; n++) {
            same("row", row(n), Bytes.toString(s.next().getRow()));
          }
        }
      }
    });
    check.run("next(n), iterator after end", () -> {
      try (ResultScanner s = table.getScanner(new Scan().withStartRow(b("r110")))) {
        same("next(4)", 4, s.next(4).length);
        same("next(20)", 6, s.next(20).length);
        same("after the end", null, s.next());
        same("after the end again", null, s.next());
      }
    });
    check.run("lease renewal", () -> {
      try (ResultScanner s = table.getScanner(new Scan().setCaching(5))) {
        for (int i = 0; i < 120; i++) {
          same("row", row(i), Bytes.toString(s.next().getRow()));
          if (i % 9 == 0) {
            s.renewLease();
          }
        }
        same("end", null, s.next());
      }
    });
    check.run("scan metrics", () -> {
      try (ResultScanner s = table.getScanner(new Scan().setScanMetricsEnabled(true).addColumn(b("f"), b("a")))) {
        int n = 0;
        while (s.next() != null) {
          n++;
        }
        same("rows", 120, n);
        ScanMetrics m = s.getScanMetrics();
        same("regions", 3L, m.countOfRegions.get());
        // a row seen again after a call's limit counts again
        yes("rows scanned: " + m.countOfRowsScanned.get(),
          m.countOfRowsScanned.get() >= 120 && m.countOfRowsScanned.get() <= 123);
        yes("calls", m.countOfRPCcalls.get() >= 3);
      }
    });
    check.run("needs cursor, many heartbeats' worth of work", () -> {
      try (ResultScanner s = table.getScanner(new Scan().setNeedCursorResult(true).setMaxResultSize(1))) {
        int rows = 0;
        for (Result r : s) {
          rows += r.isCursor() ? 0 : 1;
        }
        same("rows", 120, rows);
      }
    });
    check.run("store limit, store offset", () -> {
      same("limit", List.of("r000{f:a=0 g:c=0}"),
        Rows.scan(table, new Scan().setMaxResultsPerColumnFamily(1).setLimit(1)));
      same("offset", List.of("r001{f:b=2}"), Rows.scan(table,
        new Scan().setMaxResultsPerColumnFamily(1).setRowOffsetPerColumnFamily(1).withStartRow(b("r001")).setLimit(1)));
    });
    check.run("time range", () -> {
      long now = System.currentTimeMillis();
      same("none", 0, Rows.count(table, new Scan().setTimeRange(0, 1)));
      same("all", 120, Rows.count(table, new Scan().setTimeRange(0, now + 100_000)));
      same("future", 0, Rows.count(table, new Scan().setTimeRange(now + 100_000, Long.MAX_VALUE)));
    });
    check.run("many scanners at once", () -> {
      List<ResultScanner> open = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        open.add(table.getScanner(new Scan().setCaching(1 + i % 13).setReversed(i % 2 == 1)));
      }
      for (int n = 0; n < 120; n++) {
        for (int i = 0; i < 50; i++) {
          same("scanner " + i, row(i % 2 == 1 ? 119 - n : n), Bytes.toString(open.get(i).next().getRow()));
        }
      }
      for (ResultScanner s : open) {
        same("end", null, s.next());
        s.close();
      }
    });
  }

  private static void partials(Check check, Server server) {
    check.run("rows larger than the result size come whole", () -> {
      TableName t = server.table("partial", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        for (int r = 0; r < 10; r++) {
          Put put = new Put(b("r" + r));
          for (int c = 0; c < 200; c++) {
            byte[] value = new byte[500];
            Arrays.fill(value, (byte) (r * 31 + c));
            put.addColumn(b(c % 2 == 0 ? "f" : "g"), Bytes.toBytes(c), value);
          }
          table.put(put);
        }
        for (boolean reversed : new boolean[] { false, true }) {
          for (long size : new long[] { 1, 600, 5_000, 110_000, 250_000, 10_000_000 }) {
            try (ResultScanner s = table.getScanner(new Scan().setMaxResultSize(size).setReversed(reversed))) {
              for (int n = 0; n < 10; n++) {
                int r = reversed ? 9 - n : n;
                Result result = s.next();
                same("row at " + size, "r" + r, Bytes.toString(result.getRow()));
                same("cells at " + size, 200, result.size());
                for (int c = 0; c < 200; c += 17) {
                  byte[] v = result.getValue(b(c % 2 == 0 ? "f" : "g"), Bytes.toBytes(c));
                  yes("value at " + size, v.length == 500 && v[499] == (byte) (r * 31 + c));
                }
              }
              same("end", null, s.next());
            }
          }
        }
        int pieces = 0;
        int cells = 0;
        int complete = 0;
        try (ResultScanner s = table.getScanner(new Scan().setAllowPartialResults(true).setMaxResultSize(5_000))) {
          for (Result r : s) {
            pieces++;
            cells += r.size();
            complete += r.mayHaveMoreCellsInRow() ? 0 : 1;
          }
        }
        same("cells in partial results", 2000, cells);
        yes("more pieces than rows: " + pieces, pieces > 10);
        yes("at most one last piece a row: " + complete, complete <= 10);
        cells = 0;
        try (ResultScanner s = table.getScanner(new Scan().setBatch(7).setMaxResultSize(5_000))) {
          for (Result r : s) {
            yes("batch kept", r.size() <= 7);
            cells += r.size();
          }
        }
        same("cells in batches", 2000, cells);
      }
    });
  }

  private static void others(Check check, Server server) {
    check.run("empty table, empty regions", () -> {
      TableName t = server.split("empty", new String[] { "a", "b", "c", "d" }, "f");
      try (Table table = server.connection.getTable(t)) {
        same("none", 0, Rows.count(table, new Scan()));
        same("none reversed", 0, Rows.count(table, new Scan().setReversed(true)));
        table.put(put("c1", "f:q=1"));
        same("one", "c1", Rows.keys(table, new Scan()));
        same("one reversed", "c1", Rows.keys(table, new Scan().setReversed(true)));
        same("limit over empty regions", "c1", Rows.keys(table, new Scan().setLimit(1)));
      }
    });
    check.run("rows written while scanning do not tear", () -> {
      TableName t = server.table("tear", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 50; i++) {
          table.put(put(row(i), "f:v=0", "g:v=0"));
        }
        java.util.concurrent.atomic.AtomicBoolean stop = new java.util.concurrent.atomic.AtomicBoolean();
        Thread writer = new Thread(() -> {
          try (Table own = server.connection.getTable(t)) {
            for (int n = 1; !stop.get(); n++) {
              own.put(put(row(n % 50), "f:v=" + n, "g:v=" + n));
            }
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        });
        writer.start();
        try {
          for (int pass = 0; pass < 40; pass++) {
            try (ResultScanner s = table.getScanner(new Scan().setCaching(9).setMaxResultSize(200))) {
              int n = 0;
              for (Result r : s) {
                same("both families of " + Rows.text(r.getRow()), r.getValue(b("f"), b("v")),
                  r.getValue(b("g"), b("v")));
                n++;
              }
              same("rows", 50, n);
            }
          }
        } finally {
          stop.set(true);
          writer.join();
        }
      }
    });
    check.run("an expired or unknown scanner is taken up again by the client", () -> {
      // a client with a tiny scanner time-out asks for more after the lease ran out on a second connection's table
      TableName t = server.table("lease", "f");
      try (Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 30; i++) {
          table.put(put(row(i), "f:q=" + i));
        }
        try (ResultScanner s = table.getScanner(new Scan().setCaching(3))) {
          same("first", row(0), Bytes.toString(s.next().getRow()));
          try (Admin admin = server.connection.getAdmin()) {
            // closing the region closes its scanners: the client must reopen after the last row it saw
            admin.disableTable(t);
            admin.enableTable(t);
          }
          for (int i = 1; i < 30; i++) {
            same("row", row(i), Bytes.toString(s.next().getRow()));
          }
          same("end", null, s.next());
        }
      }
    });
  }
}
