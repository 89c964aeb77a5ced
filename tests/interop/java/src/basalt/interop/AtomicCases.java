package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import org.apache.hadoop.hbase.util.Bytes;

/** What reads and writes a row in one step: increment, append, checkAndMutate, RowMutations, and mixed batches. */
final class AtomicCases {
  private AtomicCases() {
  }

  static void run(Check check, Server server) throws Exception {
    increments(check, server);
    conditions(check, server);
    rowMutations(check, server);
    batches(check, server);
    concurrent(check, server);
  }

  private static long number(Table t, String row, String qualifier) throws Exception {
    byte[] v = t.get(new Get(b(row))).getValue(b("f"), b(qualifier));
    return v == null ? Long.MIN_VALUE : Bytes.toLong(v);
  }

  private static void increments(Check check, Server server) {
    check.run("increment", () -> {
      TableName t = server.table("inc", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        same("from nothing", 5L, table.incrementColumnValue(b("r"), b("f"), b("n"), 5));
        same("more", 3L, table.incrementColumnValue(b("r"), b("f"), b("n"), -2));
        same("by zero", 3L, table.incrementColumnValue(b("r"), b("f"), b("n"), 0));
        Result r = table.increment(new Increment(b("r")).addColumn(b("f"), b("n"), 10).addColumn(b("f"), b("m"), 1)
          .addColumn(b("g"), b("k"), 7));
        same("three columns", 3, r.size());
        same("n", 13L, Bytes.toLong(r.getValue(b("f"), b("n"))));
        same("m", 1L, Bytes.toLong(r.getValue(b("f"), b("m"))));
        same("k", 7L, Bytes.toLong(r.getValue(b("g"), b("k"))));
        same("read back", 13L, number(table, "r", "n"));
        Result none = table.increment(new Increment(b("r")).addColumn(b("f"), b("n"), 1).setReturnResults(false));
        yes("no results wanted", none == null || none.isEmpty());
        same("still done", 14L, number(table, "r", "n"));
        table.put(new org.apache.hadoop.hbase.client.Put(b("r")).addColumn(b("f"), b("max"),
          Bytes.toBytes(Long.MAX_VALUE)));
        same("wraps", Long.MIN_VALUE, table.incrementColumnValue(b("r"), b("f"), b("max"), 1));
        table.put(put("r", "f:s=no"));
        fails("not a number", DoNotRetryIOException.class,
          () -> table.incrementColumnValue(b("r"), b("f"), b("s"), 1));
        fails("unknown family", NoSuchColumnFamilyException.class,
          () -> table.incrementColumnValue(b("r"), b("x"), b("s"), 1));
        same("only one version is kept", 1,
          table.get(new Get(b("r")).addColumn(b("f"), b("n")).readAllVersions()).size());
      }
    });
    check.run("increment with a time range", () -> {
      TableName t = server.table("inctr", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(new org.apache.hadoop.hbase.client.Put(b("r")).addColumn(b("f"), b("n"), 10, Bytes.toBytes(100L)));
        Result r = table.increment(new Increment(b("r")).addColumn(b("f"), b("n"), 1).setTimeRange(20, 30));
        same("outside the range counts as nothing", 1L, Bytes.toLong(r.value()));
      }
    });
    check.run("append", () -> {
      TableName t = server.table("app", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        Result r = table.append(new Append(b("r")).addColumn(b("f"), b("s"), b("ab")));
        same("from nothing", "f:s=ab", Rows.cells(r));
        r = table.append(
          new Append(b("r")).addColumn(b("f"), b("s"), b("cd")).addColumn(b("g"), b("t"), b("x")));
        same("more", "f:s=abcd g:t=x", Rows.cells(r));
        Result none = table.append(new Append(b("r")).addColumn(b("f"), b("s"), b("!")).setReturnResults(false));
        yes("no results wanted", none == null || none.isEmpty());
        same("read back", "f:s=abcd! g:t=x", Rows.get(table, "r"));
        fails("unknown family", NoSuchColumnFamilyException.class,
          () -> table.append(new Append(b("r")).addColumn(b("x"), b("s"), b("y"))));
      }
    });
  }

  private static CheckAndMutate.Builder on(String row) {
    return CheckAndMutate.newBuilder(b(row));
  }

  private static void conditions(Check check, Server server) {
    check.run("checkAndMutate: operators", () -> {
      TableName t = server.table("cam", "f");
      try (Table table = server.connection.getTable(t)) {
        // the value given stands on the left: value OP cell
        Object[][] rows = { { CompareOperator.EQUAL, false, true, false },
          { CompareOperator.NOT_EQUAL, true, false, true }, { CompareOperator.LESS, true, false, false },
          { CompareOperator.LESS_OR_EQUAL, true, true, false }, { CompareOperator.GREATER, false, false, true },
          { CompareOperator.GREATER_OR_EQUAL, false, true, true } };
        for (Object[] row : rows) {
          for (int i = 0; i < 3; i++) {
            table.put(put("r", "f:q=5", "f:done="));
            String value = new String[] { "4", "5", "6" }[i];
            boolean ok = table.checkAndMutate(on("r").ifMatches(b("f"), b("q"), (CompareOperator) row[0], b(value))
              .build(put("r", "f:done=yes"))).isSuccess();
            same(value + " " + row[0] + " 5", row[i + 1], ok);
            same("done", ok ? "f:done=yes f:q=5" : "f:done= f:q=5", Rows.get(table, "r"));
          }
        }
      }
    });
    check.run("checkAndMutate: absent, empty, other row", () -> {
      TableName t = server.table("cam0", "f");
      try (Table table = server.connection.getTable(t)) {
        same("absent", true,
          table.checkAndMutate(on("r").ifNotExists(b("f"), b("q")).build(put("r", "f:q=1"))).isSuccess());
        same("present", false,
          table.checkAndMutate(on("r").ifNotExists(b("f"), b("q")).build(put("r", "f:q=2"))).isSuccess());
        same("row", "f:q=1", Rows.get(table, "r"));
        same("equals", true,
          table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("1")).build(put("r", "f:q=3"))).isSuccess());
        same("not equal to an absent cell", false, table.checkAndMutate(
          on("none").ifMatches(b("f"), b("q"), CompareOperator.NOT_EQUAL, b("x")).build(put("none", "f:q=1")))
          .isSuccess());
        table.put(put("e", "f:q="));
        same("an empty value counts as absent", true,
          table.checkAndMutate(on("e").ifNotExists(b("f"), b("q")).build(put("e", "f:q=1"))).isSuccess());
        same("delete when equal", true, table
          .checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("3")).build(new Delete(b("r")))).isSuccess());
        same("gone", "", Rows.get(table, "r"));
        fails("unknown family", NoSuchColumnFamilyException.class,
          () -> table.checkAndMutate(on("r").ifEquals(b("x"), b("q"), b("3")).build(put("r", "f:q=1"))));
      }
    });
    check.run("checkAndMutate: time range, filter", () -> {
      TableName t = server.table("camf", "f*3");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q@10=old", "f:n@10=7"));
        table.put(put("r", "f:q@20=new"));
        same("in the range", true, table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("old"))
          .timeRange(TimeRange.between(0, 15)).build(put("r", "f:a=1"))).isSuccess());
        same("out of it", false, table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("new"))
          .timeRange(TimeRange.between(0, 15)).build(put("r", "f:a=2"))).isSuccess());
        FilterList both = new FilterList(
          new SingleColumnValueFilter(b("f"), b("q"), CompareOperator.EQUAL, b("new")),
          new SingleColumnValueFilter(b("f"), b("n"), CompareOperator.EQUAL, b("7")));
        same("filter holds", true,
          table.checkAndMutate(on("r").ifMatches(both).build(put("r", "f:a=3"))).isSuccess());
        same("a", b("3"), table.get(new Get(b("r"))).getValue(b("f"), b("a")));
        FilterList not = new FilterList(
          new SingleColumnValueFilter(b("f"), b("q"), CompareOperator.EQUAL, b("other")));
        same("filter does not", false,
          table.checkAndMutate(on("r").ifMatches(not).build(new Delete(b("r")))).isSuccess());
      }
    });
    check.run("checkAndMutate: increment, append, RowMutations", () -> {
      TableName t = server.table("camx", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=1"));
        CheckAndMutateResult r = table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("1"))
          .build(new Increment(b("r")).addColumn(b("f"), b("n"), 4)));
        same("increment", true, r.isSuccess());
        same("its result", 4L, Bytes.toLong(r.getResult().getValue(b("f"), b("n"))));
        r = table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("1"))
          .build(new Append(b("r")).addColumn(b("f"), b("s"), b("x"))));
        same("append", "f:s=x", Rows.cells(r.getResult()));
        r = table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("2"))
          .build(new Increment(b("r")).addColumn(b("f"), b("n"), 4)));
        same("not when the check fails", false, r.isSuccess());
        yes("no result", r.getResult() == null || r.getResult().isEmpty());
        RowMutations m = Rows.mutations(put("r", "f:q=2"), new Delete(b("r")).addColumns(b("f"), b("s")));
        same("RowMutations", true,
          table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("1")).build(m)).isSuccess());
        same("row", "f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x04 f:q=2", Rows.get(table, "r"));
        same("RowMutations, check fails", false,
          table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("1")).build(m)).isSuccess());
        RowMutations mixed = RowMutations.of(Arrays.asList(new Increment(b("r")).addColumn(b("f"), b("n"), 6),
            new Append(b("r")).addColumn(b("f"), b("t"), b("y")), put("r", "f:q=3")));
        r = table.checkAndMutate(on("r").ifEquals(b("f"), b("q"), b("2")).build(mixed));
        same("mixed", true, r.isSuccess());
        same("n in the result", 10L, Bytes.toLong(r.getResult().getValue(b("f"), b("n"))));
        same("t in the result", b("y"), r.getResult().getValue(b("f"), b("t")));
        same("q", b("3"), table.get(new Get(b("r"))).getValue(b("f"), b("q")));
      }
    });
    check.run("checkAndMutate: a list over rows and regions", () -> {
      TableName t = server.split("camlist", new String[] { "m" }, "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("a", "f:q=1"));
        table.put(put("z", "f:q=1"));
        List<CheckAndMutateResult> r = table.checkAndMutate(Arrays.asList(
          on("a").ifEquals(b("f"), b("q"), b("1")).build(put("a", "f:q=2")),
          on("z").ifEquals(b("f"), b("q"), b("9")).build(put("z", "f:q=2")),
          on("n").ifNotExists(b("f"), b("q")).build(new Increment(b("n")).addColumn(b("f"), b("q"), 3))));
        same("first", true, r.get(0).isSuccess());
        same("second", false, r.get(1).isSuccess());
        same("third", true, r.get(2).isSuccess());
        same("third's result", 3L, Bytes.toLong(r.get(2).getResult().value()));
        same("a", "f:q=2", Rows.get(table, "a"));
        same("z", "f:q=1", Rows.get(table, "z"));
      }
    });
  }

  private static void rowMutations(Check check, Server server) {
    check.run("RowMutations", () -> {
      TableName t = server.table("rm", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:a=1", "f:b=2", "g:c=3"));
        table.mutateRow(Rows.mutations(put("r", "f:a=9", "g:d=4"), new Delete(b("r")).addColumns(b("f"), b("b")), new Delete(b("r")).addColumns(b("g"), b("c"))));
        same("row", "f:a=9 g:d=4", Rows.get(table, "r"));
        Result r = table.mutateRow(RowMutations.of(Arrays.asList(new Increment(b("r")).addColumn(b("f"), b("n"), 2),
            new Append(b("r")).addColumn(b("g"), b("d"), b("5")))));
        same("n", 2L, Bytes.toLong(r.getValue(b("f"), b("n"))));
        same("d", b("45"), r.getValue(b("g"), b("d")));
        fails("one bad member: nothing is done", NoSuchColumnFamilyException.class, () -> table.mutateRow(
          Rows.mutations(put("r", "f:a=bad"), put("r", "nope:a=bad"))));
        same("a", b("9"), table.get(new Get(b("r"))).getValue(b("f"), b("a")));
      }
    });
  }

  private static void batches(Check check, Server server) {
    check.run("a mixed batch over regions", () -> {
      TableName t = server.split("batch", new String[] { "h", "p" }, "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("b", "f:q=1"));
        table.put(put("x", "f:q=2", "f:n=12345678"));
        table.put(put("k", "f:q=3"));
        List<Row> actions = new ArrayList<>();
        actions.add(new Get(b("b")));
        actions.add(put("c", "f:q=4"));
        actions.add(new Delete(b("k")));
        actions.add(new Increment(b("i")).addColumn(b("f"), b("n"), 3));
        actions.add(new Append(b("z")).addColumn(b("f"), b("s"), b("tail")));
        actions.add(new Get(b("absent")));
        actions.add(Rows.mutations(put("m", "f:a=1"), put("m", "f:b=2")));
        actions.add(new Get(b("x")).addColumn(b("f"), b("q")));
        Object[] results = new Object[actions.size()];
        table.batch(actions, results);
        same("get", "f:q=1", Rows.cells((Result) results[0]));
        same("put", true, ((Result) results[1]).isEmpty());
        same("delete", true, ((Result) results[2]).isEmpty());
        same("increment", 3L, Bytes.toLong(((Result) results[3]).value()));
        same("append", "f:s=tail", Rows.cells((Result) results[4]));
        same("absent", true, ((Result) results[5]).isEmpty());
        same("get of a column", "f:q=2", Rows.cells((Result) results[7]));
        same("k is gone", "", Rows.get(table, "k"));
        same("m", "f:a=1 f:b=2", Rows.get(table, "m"));
        same("c", "f:q=4", Rows.get(table, "c"));
      }
    });
    check.run("a batch with one wrong action", () -> {
      TableName t = server.split("batcherr", new String[] { "m" }, "f");
      try (Table table = server.connection.getTable(t)) {
        List<Row> actions = new ArrayList<>();
        actions.add(put("a", "f:q=1"));
        actions.add(put("b", "nope:q=1"));
        actions.add(new Get(b("a")).addFamily(b("nope")));
        actions.add(put("z", "f:q=1"));
        Object[] results = new Object[4];
        fails("batch", NoSuchColumnFamilyException.class, () -> table.batch(actions, results));
        yes("first done", results[0] instanceof Result);
        yes("second failed: " + results[1], results[1] instanceof Throwable || results[1] == null);
        yes("third failed: " + results[2], results[2] instanceof Throwable || results[2] == null);
        yes("fourth done", results[3] instanceof Result);
        same("rows", "a,z", Rows.keys(table, new Scan()));
      }
    });
    check.run("a batch whose answer is larger than the limit", () -> {
      TableName t = server.table("batchbig", "f");
      try (Table table = server.connection.getTable(t)) {
        List<Get> gets = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
          byte[] v = new byte[1 << 20];
          Arrays.fill(v, (byte) i);
          table.put(new org.apache.hadoop.hbase.client.Put(b("r" + i)).addColumn(b("f"), b("q"), v));
          gets.add(new Get(b("r" + i)));
        }
        for (int pass = 0; pass < 3; pass++) {
          gets.addAll(new ArrayList<>(gets.subList(0, 20)));
        }
        Result[] got = table.get(gets);
        for (int i = 0; i < got.length; i++) {
          byte[] v = got[i].value();
          yes("value " + i, v != null && v.length == 1 << 20 && v[77] == (byte) (i < 60 ? i : (i - 60) % 20));
        }
      }
    });
  }

  private static void concurrent(Check check, Server server) {
    check.run("one counter, many threads: nothing lost, nothing doubled", () -> {
      TableName t = server.table("race", "f");
      int threads = 8;
      int each = 150;
      ExecutorService pool = Executors.newFixedThreadPool(threads);
      try (Table table = server.connection.getTable(t)) {
        List<Future<?>> all = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
          int me = n;
          all.add(pool.submit(() -> {
            try (Table own = server.connection.getTable(t)) {
              for (int i = 0; i < each; i++) {
                own.incrementColumnValue(b("r"), b("f"), b("n"), 1);
                own.append(new Append(b("r")).addColumn(b("f"), b("s"), b("" + me)));
                for (;;) {
                  byte[] old = own.get(new Get(b("cas"))).getValue(b("f"), b("n"));
                  long next = old == null ? 1 : Bytes.toLong(old) + 1;
                  CheckAndMutate.Builder c = CheckAndMutate.newBuilder(b("cas"));
                  c = old == null ? c.ifNotExists(b("f"), b("n")) : c.ifEquals(b("f"), b("n"), old);
                  if (own.checkAndMutate(c.build(new org.apache.hadoop.hbase.client.Put(b("cas")).addColumn(b("f"),
                    b("n"), Bytes.toBytes(next)))).isSuccess()) {
                    break;
                  }
                }
              }
            }
            return null;
          }));
        }
        for (Future<?> f : all) {
          f.get(120, TimeUnit.SECONDS);
        }
        same("increments", (long) threads * each, number(table, "r", "n"));
        same("compare-and-sets", (long) threads * each, number(table, "cas", "n"));
        same("appends", threads * each, table.get(new Get(b("r"))).getValue(b("f"), b("s")).length);
      } finally {
        pool.shutdownNow();
      }
    });
  }
}
