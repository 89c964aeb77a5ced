package basalt.interop;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.hbase.async.AppendRequest;
import org.hbase.async.AtomicIncrementRequest;
import org.hbase.async.BinaryComparator;
import org.hbase.async.Bytes;
import org.hbase.async.ColumnPrefixFilter;
import org.hbase.async.CompareFilter;
import org.hbase.async.DeleteRequest;
import org.hbase.async.FilterList;
import org.hbase.async.GetRequest;
import org.hbase.async.GetResultOrException;
import org.hbase.async.HBaseClient;
import org.hbase.async.KeyRegexpFilter;
import org.hbase.async.KeyValue;
import org.hbase.async.NoSuchColumnFamilyException;
import org.hbase.async.NonRecoverableException;
import org.hbase.async.PutRequest;
import org.hbase.async.RowFilter;
import org.hbase.async.ScanFilter;
import org.hbase.async.Scanner;
import com.stumbleupon.async.Deferred;
import com.stumbleupon.async.DeferredGroupException;

/**
 * asynchbase (the client of OpenTSDB), which has a protocol stack of its own: {@code --zk host:port --table T}. The
 * table must exist, with a family "f" (three versions) and a region boundary at "m": asynchbase has no table commands.
 */
public final class AsyncHBaseMain {
  private static final long TIMEOUT_MS = 30_000;

  private AsyncHBaseMain() {
  }

  private static byte[] b(String s) {
    return s.getBytes(StandardCharsets.UTF_8);
  }

  private static <T> T wait(Deferred<T> d) throws Exception {
    return d.join(TIMEOUT_MS);
  }

  private static String show(List<KeyValue> cells) {
    StringBuilder s = new StringBuilder();
    for (KeyValue kv : cells) {
      s.append(s.length() == 0 ? "" : " ").append(new String(kv.key(), StandardCharsets.UTF_8)).append('/')
        .append(new String(kv.family(), StandardCharsets.UTF_8)).append(':')
        .append(new String(kv.qualifier(), StandardCharsets.UTF_8)).append('=')
        .append(new String(kv.value(), StandardCharsets.UTF_8));
    }
    return s.toString();
  }

  private static List<ArrayList<KeyValue>> drain(Scanner scanner) throws Exception {
    List<ArrayList<KeyValue>> out = new ArrayList<>();
    for (ArrayList<ArrayList<KeyValue>> rows = wait(scanner.nextRows()); rows != null;
      rows = wait(scanner.nextRows())) {
      out.addAll(rows);
    }
    return out;
  }

  private static String keys(List<ArrayList<KeyValue>> rows) {
    StringBuilder s = new StringBuilder();
    for (ArrayList<KeyValue> row : rows) {
      s.append(s.length() == 0 ? "" : ",").append(new String(row.get(0).key(), StandardCharsets.UTF_8));
    }
    return s.toString();
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      options.put(args[i], args[i + 1]);
    }
    SmallCheck check = new SmallCheck();
    byte[] t = b(options.get("--table"));
    byte[] f = b("f");
    HBaseClient client = new HBaseClient(options.get("--zk"));
    client.setFlushInterval((short) 20);

    check.run("table and family exist", () -> wait(client.ensureTableFamilyExists(t, f)));
    check.run("put, get", () -> {
      wait(client.put(new PutRequest(t, b("a"), f, b("q"), b("1"))));
      wait(client.put(new PutRequest(t, b("a"), f, new byte[][] { b("x"), b("y") }, new byte[][] { b("2"), b("") })));
      check.same("row", "a/f:q=1 a/f:x=2 a/f:y=", show(wait(client.get(new GetRequest(t, b("a"))))));
      check.same("column", "a/f:x=2", show(wait(client.get(new GetRequest(t, b("a"), f, b("x"))))));
      check.same("absent", "", show(wait(client.get(new GetRequest(t, b("none"))))));
    });
    check.run("put with a timestamp, versions", () -> {
      for (int ts = 10; ts <= 40; ts += 10) {
        wait(client.put(new PutRequest(t, b("v"), f, b("q"), b("v" + ts), ts)));
      }
      check.same("newest", "v/f:q=v40", show(wait(client.get(new GetRequest(t, b("v"))))));
      check.same("three", "v/f:q=v40 v/f:q=v30 v/f:q=v20",
        show(wait(client.get(new GetRequest(t, b("v"), f, b("q")).maxVersions(10)))));
    });
    check.run("delete", () -> {
      wait(client.put(new PutRequest(t, b("d"), f, new byte[][] { b("x"), b("y") }, new byte[][] { b("1"), b("2") })));
      wait(client.delete(new DeleteRequest(t, b("d"), f, b("x"))));
      check.same("a column gone", "d/f:y=2", show(wait(client.get(new GetRequest(t, b("d"))))));
      wait(client.delete(new DeleteRequest(t, b("d"))));
      check.same("row gone", "", show(wait(client.get(new GetRequest(t, b("d"))))));
    });
    check.run("increment", () -> {
      check.same("first", 5L, wait(client.atomicIncrement(new AtomicIncrementRequest(t, b("i"), f, b("n"), 5))));
      check.same("more", 3L, wait(client.atomicIncrement(new AtomicIncrementRequest(t, b("i"), f, b("n"), -2))));
    });
    check.run("buffered increment", () -> {
      List<Deferred<Long>> all = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        all.add(client.bufferAtomicIncrement(new AtomicIncrementRequest(t, b("i"), f, b("b"), 1)));
      }
      wait(client.flush());
      for (Deferred<Long> d : all) {
        wait(d);
      }
      check.same("sum", 100L,
        ByteBuffer.wrap(wait(client.get(new GetRequest(t, b("i"), f, b("b")))).get(0).value()).getLong());
    });
    check.run("append", () -> {
      wait(client.append(new AppendRequest(t, b("s"), f, b("q"), b("ab"))));
      wait(client.append(new AppendRequest(t, b("s"), f, b("q"), b("cd"))));
      check.same("value", "s/f:q=abcd", show(wait(client.get(new GetRequest(t, b("s"))))));
    });
    check.run("compareAndSet, atomicCreate", () -> {
      check.same("create", true, wait(client.atomicCreate(new PutRequest(t, b("c"), f, b("q"), b("1")))));
      check.same("create again", false, wait(client.atomicCreate(new PutRequest(t, b("c"), f, b("q"), b("2")))));
      check.same("set", true, wait(client.compareAndSet(new PutRequest(t, b("c"), f, b("q"), b("3")), b("1"))));
      check.same("stale", false, wait(client.compareAndSet(new PutRequest(t, b("c"), f, b("q"), b("4")), b("1"))));
      check.same("value", "c/f:q=3", show(wait(client.get(new GetRequest(t, b("c"))))));
    });
    check.run("batched puts over two regions, scan", () -> {
      List<Deferred<Object>> all = new ArrayList<>();
      for (int i = 0; i < 2000; i++) {
        PutRequest put = new PutRequest(t, b(String.format("%s%04d", i < 1000 ? "k" : "p", i)), f, b("q"), b("" + i));
        put.setBufferable(true);
        all.add(client.put(put));
      }
      wait(client.flush());
      for (Deferred<Object> d : all) {
        wait(d);
      }
      Scanner scanner = client.newScanner(t);
      scanner.setStartKey(b("k"));
      scanner.setStopKey(b("q"));
      scanner.setFamily(f);
      scanner.setMaxNumRows(77);
      List<ArrayList<KeyValue>> rows = drain(scanner);
      check.same("rows", 2000, rows.size());
      for (int i = 0; i < 2000; i++) {
        check.same("row", String.format("%s%04d/f:q=%d", i < 1000 ? "k" : "p", i, i), show(rows.get(i)));
      }
    });
    check.run("multi-get", () -> {
      List<GetRequest> gets = new ArrayList<>();
      for (int i = 990; i < 1010; i++) {
        gets.add(new GetRequest(t, b(String.format("%s%04d", i < 1000 ? "k" : "p", i)), f, b("q")));
      }
      List<GetResultOrException> got = wait(client.get(gets));
      for (int i = 0; i < 20; i++) {
        check.same("get", "" + (990 + i), new String(got.get(i).getCells().get(0).value(), StandardCharsets.UTF_8));
      }
    });
    check.run("scan: filters, key expression, reversed", () -> {
      Scanner s = client.newScanner(t);
      s.setStartKey(b("k"));
      s.setStopKey(b("q"));
      s.setFilter(new KeyRegexpFilter("^[kp]\\d\\d77$"));
      check.same("regexp", 20, drain(s).size());
      s = client.newScanner(t);
      s.setFilter(new FilterList(Arrays.<ScanFilter>asList(
        new RowFilter(CompareFilter.CompareOp.LESS, new BinaryComparator(b("b"))), new ColumnPrefixFilter("x"))));
      check.same("list", "a", keys(drain(s)));
      s = client.newScanner(t);
      s.setStartKey(b("k0003"));
      s.setStopKey(b("k0000"));
      s.setReversed(true);
      check.same("reversed", "k0003,k0002,k0001", keys(drain(s)));
    });
    check.run("scanner closed early", () -> {
      Scanner s = client.newScanner(t);
      s.setMaxNumRows(5);
      check.same("rows", 5, wait(s.nextRows()).size());
      wait(s.close());
    });
    check.run("errors come as their own classes", () -> {
      check.fails("family", NoSuchColumnFamilyException.class,
        () -> wait(client.put(new PutRequest(t, b("a"), b("nope"), b("q"), b("1")))));
      check.fails("table (too many attempts, from the real server too)", NonRecoverableException.class,
        () -> wait(client.get(new GetRequest(b("it_no_such_table"), b("a")))));
    });
    check.run("locations", () -> check.same("regions", 2, wait(client.locateRegions(t)).size()));
    wait(client.shutdown());
    System.exit(check.finish());
  }

  /** As {@code Check}, without any class of the HBase client, which is not on this class path. */
  private static final class SmallCheck {
    interface Body {
      void run() throws Exception;
    }

    private int passed;
    private int failed;

    void run(String name, Body body) {
      try {
        body.run();
        passed++;
        System.out.println("ok asynchbase " + name);
      } catch (Exception | AssertionError e) {
        failed++;
        Throwable cause = e instanceof DeferredGroupException ? e.getCause() : e;
        System.out.println("FAILED asynchbase " + name + ": " + String.valueOf(cause).split("\n")[0]);
        if (!(e instanceof AssertionError)) {
          e.printStackTrace();
        }
      }
    }

    void same(String what, Object expected, Object got) {
      if (!expected.equals(got)) {
        throw new AssertionError(what + ": expected " + expected + ", got " + got);
      }
    }

    void fails(String what, Class<? extends Exception> wanted, Body body) {
      try {
        body.run();
      } catch (Exception e) {
        if (wanted.isInstance(e)) {
          return;
        }
        throw new AssertionError(what + ": expected " + wanted.getSimpleName() + ", got " + e);
      }
      throw new AssertionError(what + ": expected " + wanted.getSimpleName() + ", but it went through");
    }

    int finish() {
      System.out.println(passed + " passed, " + failed + " failed");
      return failed == 0 ? 0 : 1;
    }
  }
}
