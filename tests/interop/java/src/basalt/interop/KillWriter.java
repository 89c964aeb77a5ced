package basalt.interop;

import static basalt.interop.Rows.b;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The writer of the kill test. It lives through every death of the server and keeps the journal: what was acknowledged,
 * and what was tried without an answer (which may or may not be there).
 *
 * <p>Arguments: {@code ZOOKEEPER TABLE SEED}. It then obeys lines on its standard input: {@code go} starts the threads,
 * {@code verify N} stops them (the server must be up again, after N further deaths while it recovered), reads everything
 * and compares, {@code quit} ends. It answers
 * with one line each: {@code ready}, {@code going}, {@code verified A acknowledged, U unknown, L lost}, after one line
 * {@code LOST ...} per violation.
 */
public final class KillWriter {
  private static final int KEYS = 100;
  private static final byte[] F = b("f");
  private static final byte[] G = b("g");
  private static final byte[] Q = b("q");

  private final TableName name;
  private final Server retrying;
  private final Connection once;
  private final long seed;
  private final List<Writer> writers = new ArrayList<>();
  private volatile boolean stop;
  private int round;

  private KillWriter(String zk, String table, long seed) throws Exception {
    this.seed = seed;
    name = TableName.valueOf(table);
    Map<String, String> patient = new HashMap<>();
    patient.put("hbase.client.pause", "20");
    patient.put("hbase.client.retries.number", "100");
    patient.put("hbase.client.operation.timeout", "20000");
    patient.put("hbase.client.meta.operation.timeout", "20000");
    patient.put("hbase.rpc.timeout", "5000");
    patient.put("hbase.ipc.client.failed.servers.expiry", "20");
    patient.put("hbase.ipc.client.socket.timeout.connect", "2000");
    patient.put("zookeeper.recovery.retry", "200");
    patient.put("zookeeper.recovery.retry.intervalmill", "50");
    retrying = new Server(zk, zk, patient);
    // one attempt only: a second one could count twice
    once = retrying.connect("hbase.client.retries.number", "0");
    try (Admin admin = retrying.connection.getAdmin()) {
      if (!admin.tableExists(name)) {
        admin.createTable(TableDescriptorBuilder.newBuilder(name)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(2).build())
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of(G)).build(), new byte[][] { b("d"), b("m") });
      }
    }
    for (int i = 0; i < 3; i++) {
      writers.add(new Puts("put" + i));
    }
    writers.add(new Batches("bat"));
    writers.add(new Mutations("mut"));
    writers.add(new Deletes("del"));
    AtomicCounter shared = new AtomicCounter("cas");
    for (int i = 0; i < 3; i++) {
      writers.add(new Casers(shared, i == 0));
    }
    writers.add(new Increments("inc0", once, false));
    writers.add(new Increments("inc1", once, false));
    writers.add(new Increments("nonce", retrying.connection, true));
    writers.add(new Appends("app"));
  }

  public static void main(String[] args) throws Exception {
    KillWriter k = new KillWriter(args[0], args[1], Long.parseLong(args[2]));
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    List<Thread> threads = new ArrayList<>();
    for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
      if (line.equals("go")) {
        k.stop = false;
        k.round++;
        for (Writer w : k.writers) {
          threads.add(new Thread(w, w.prefix));
        }
        threads.add(new Thread(k::maintain, "maintenance"));
        threads.forEach(Thread::start);
        System.out.println("going");
      } else if (line.startsWith("verify ")) {
        k.stop = true;
        for (Thread t : threads) {
          t.join();
        }
        threads.clear();
        k.verify();
      }
    }
    System.exit(0);
  }

  /** Flushes and compactions at random moments, so that a kill may fall into any of them. */
  private void maintain() {
    Random random = new Random(seed * 31 + round);
    while (!stop) {
      try (Admin admin = once.getAdmin()) {
        Thread.sleep(50 + random.nextInt(400));
        switch (random.nextInt(4)) {
          case 0:
            admin.majorCompact(name);
            break;
          case 1:
            admin.compact(name);
            break;
          default:
            admin.flush(name);
        }
      } catch (Exception e) {
        pause();
      }
    }
  }

  /** After a refused call: not to spin while there is no server. */
  private static void pause() {
    try {
      Thread.sleep(5);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void verify() throws Exception {
    Map<String, Result> seen = new HashMap<>();
    List<String> lost = new ArrayList<>();
    try (Table table = retrying.connection.getTable(name)) {
      String last = "";
      try (ResultScanner scanner = table.getScanner(new Scan().setCaching(500))) {
        for (Result r : scanner) {
          String row = Bytes.toString(r.getRow());
          if (row.compareTo(last) <= 0) {
            lost.add("scan out of order or twice: " + row + " after " + last);
          }
          last = row;
          seen.put(row, r);
        }
      }
      // gets must say what the scan said
      int n = 0;
      for (Map.Entry<String, Result> e : seen.entrySet()) {
        if (n++ % 10 == 0) {
          String got = Rows.cells(table.get(new Get(b(e.getKey()))));
          if (!got.equals(Rows.cells(e.getValue()))) {
            lost.add("get and scan differ on " + e.getKey() + ": " + got + " / " + Rows.cells(e.getValue()));
          }
        }
      }
    }
    Set<String> known = new HashSet<>();
    long acknowledged = 0;
    long unknown = 0;
    for (Writer w : writers) {
      w.verify(seen, known, lost);
      acknowledged += w.acknowledged.getAndSet(0);
      unknown += w.unknown.getAndSet(0);
    }
    for (String row : seen.keySet()) {
      if (!known.contains(row)) {
        lost.add("a row nobody wrote: " + row);
      }
    }
    for (String l : lost.subList(0, Math.min(20, lost.size()))) {
      System.out.println("LOST " + l);
    }
    System.out.println("verified " + acknowledged + " acknowledged, " + unknown + " unknown, " + lost.size() + " lost");
  }

  private abstract class Writer implements Runnable {
    final String prefix;
    final AtomicLong acknowledged = new AtomicLong();
    final AtomicLong unknown = new AtomicLong();

    Writer(String prefix) {
      this.prefix = prefix;
    }

    @Override
    public void run() {
      Random random = new Random(seed ^ (prefix.hashCode() * 1_000_003L + round));
      while (!stop) {
        try (Table table = connection().getTable(name)) {
          while (!stop) {
            step(table, random);
          }
        } catch (Exception e) {
          awaitAnswers();
        }
      }
    }

    /** Reads until a read is answered: what is tried against a dead server would only blur the journal. */
    private void awaitAnswers() {
      while (!stop) {
        try (Table table = once.getTable(name)) {
          table.get(new Get(b(prefix)));
          return;
        } catch (Exception e) {
          pause();
        }
      }
    }

    Connection connection() {
      return retrying.connection;
    }

    /** One operation: journal the attempt first, the acknowledgement after. Throws when there was no answer. */
    abstract void step(Table table, Random random) throws Exception;

    abstract void verify(Map<String, Result> seen, Set<String> known, List<String> lost);

    final void count(boolean answered, int operations) {
      (answered ? acknowledged : unknown).addAndGet(operations);
    }
  }

  /** Rows whose value is a number that only grows; what is read must lie between the last answered and the last tried. */
  private abstract class Versions extends Writer {
    final long[] answered = new long[KEYS];
    final long[] tried = new long[KEYS];

    Versions(String prefix) {
      super(prefix);
    }

    /** Spread over all three regions of the table. */
    String row(int k) {
      return "afr".charAt(k % 3) + prefix + String.format("-%03d", k);
    }

    abstract long value(Result r, int k, List<String> lost);

    @Override
    void verify(Map<String, Result> seen, Set<String> known, List<String> lost) {
      for (int k = 0; k < KEYS; k++) {
        known.add(row(k));
        long v = value(seen.get(row(k)), k, lost);
        if (v < answered[k] || v > tried[k]) {
          lost.add(row(k) + ": read " + v + ", acknowledged " + answered[k] + ", tried " + tried[k]);
        }
        answered[k] = v;
        // what was tried in vain must not come back later: numbers are never used again
        tried[k] = Math.max(v, tried[k]);
        used[k] = Math.max(used[k], tried[k]);
        tried[k] = v;
      }
    }

    final long[] used = new long[KEYS];

    long next(int k) {
      used[k] = Math.max(used[k], tried[k]) + 1;
      tried[k] = used[k];
      return used[k];
    }
  }

  private static byte[] filler(long n) {
    byte[] v = new byte[8 + (int) (n * 37 % 400)];
    Arrays.fill(v, (byte) n);
    System.arraycopy(Bytes.toBytes(n), 0, v, 0, 8);
    return v;
  }

  private static long unfill(byte[] v, String row, List<String> lost) {
    if (v == null) {
      return 0;
    }
    long n = Bytes.toLong(v, 0, 8);
    if (!Arrays.equals(v, filler(n))) {
      lost.add(row + ": damaged value of " + n);
    }
    return n;
  }

  /** Single puts into two families at once: both or neither. */
  private class Puts extends Versions {
    Puts(String prefix) {
      super(prefix);
    }

    Put put(int k, long n) {
      return new Put(b(row(k))).addColumn(F, Q, filler(n)).addColumn(G, Q, filler(n))
        .setDurability(Durability.SYNC_WAL);
    }

    @Override
    void step(Table table, Random random) throws Exception {
      int k = random.nextInt(KEYS);
      long n = next(k);
      boolean done = false;
      try {
        table.put(put(k, n));
        answered[k] = n;
        done = true;
      } finally {
        count(done, 1);
      }
    }

    @Override
    long value(Result r, int k, List<String> lost) {
      if (r == null) {
        return 0;
      }
      long f = unfill(r.getValue(F, Q), row(k), lost);
      long g = unfill(r.getValue(G, Q), row(k), lost);
      if (f != g) {
        lost.add(row(k) + ": half a put: " + f + " and " + g);
      }
      return f;
    }
  }

  /** Lists of puts over all regions; each row stands for itself. */
  private final class Batches extends Puts {
    Batches(String prefix) {
      super(prefix);
    }

    @Override
    void step(Table table, Random random) throws Exception {
      List<Put> puts = new ArrayList<>();
      Map<Integer, Long> batch = new HashMap<>();
      for (int i = 0; i < 20; i++) {
        int k = random.nextInt(KEYS);
        if (!batch.containsKey(k)) {
          long n = next(k);
          batch.put(k, n);
          puts.add(put(k, n));
        }
      }
      boolean done = false;
      try {
        table.put(puts);
        batch.forEach((k, n) -> answered[k] = n);
        done = true;
      } finally {
        count(done, batch.size());
      }
    }
  }

  /** RowMutations: f:q holds the number; g:q is put with even numbers and deleted with odd ones. */
  private final class Mutations extends Versions {
    Mutations(String prefix) {
      super(prefix);
    }

    @Override
    void step(Table table, Random random) throws Exception {
      int k = random.nextInt(KEYS);
      long n = next(k);
      byte[] row = b(row(k));
      // explicit timestamps: a delete hides what has its own timestamp, whichever came first
      RowMutations m = Rows.mutations(new Put(row).addColumn(F, Q, n, filler(n)),
        n % 2 == 0 ? new Put(row).addColumn(G, Q, n, filler(n)) : new Delete(row).addColumns(G, Q, n));
      boolean done = false;
      try {
        table.mutateRow(m);
        answered[k] = n;
        done = true;
      } finally {
        count(done, 1);
      }
    }

    @Override
    long value(Result r, int k, List<String> lost) {
      if (r == null) {
        return 0;
      }
      long f = unfill(r.getValue(F, Q), row(k), lost);
      long g = unfill(r.getValue(G, Q), row(k), lost);
      if (g != (f % 2 == 0 ? f : 0)) {
        lost.add(row(k) + ": half of RowMutations: " + f + " and " + g);
      }
      return f;
    }
  }

  /** A put with odd numbers, a delete with even ones. */
  private final class Deletes extends Versions {
    Deletes(String prefix) {
      super(prefix);
    }

    @Override
    void step(Table table, Random random) throws Exception {
      int k = random.nextInt(KEYS);
      long n = next(k);
      boolean done = false;
      try {
        if (n % 2 == 1) {
          table.put(new Put(b(row(k))).addColumn(F, Q, n, filler(n)));
        } else {
          table.delete(new Delete(b(row(k))).addColumns(F, Q, n));
        }
        answered[k] = n;
        done = true;
      } finally {
        count(done, 1);
      }
    }

    @Override
    long value(Result r, int k, List<String> lost) {
      // an absent row is the newest delete that explains it
      if (r == null) {
        return tried[k] % 2 == 0 ? tried[k] : Math.max(answered[k] % 2 == 0 ? answered[k] : 0, tried[k] - 1);
      }
      return unfill(r.getValue(F, Q), row(k), lost);
    }
  }

  /** Counters; "once" clients count an unanswered call as a perhaps, "exact" ones retry under a nonce. */
  private final class Increments extends Writer {
    private static final int COUNTERS = 10;
    private final Connection connection;
    private final boolean exact;
    private final long[] sure = new long[COUNTERS];
    private final long[] perhaps = new long[COUNTERS];

    Increments(String prefix, Connection connection, boolean exact) {
      super(prefix);
      this.connection = connection;
      this.exact = exact;
    }

    @Override
    Connection connection() {
      return connection;
    }

    private String row(int k) {
      return "cgz".charAt(k % 3) + prefix + "-" + k;
    }

    @Override
    void step(Table table, Random random) throws Exception {
      int k = random.nextInt(COUNTERS);
      boolean done = false;
      try {
        table.incrementColumnValue(b(row(k)), F, Q, 1);
        sure[k]++;
        done = true;
      } finally {
        perhaps[k] += done ? 0 : 1;
        count(done, 1);
      }
    }

    @Override
    void verify(Map<String, Result> seen, Set<String> known, List<String> lost) {
      for (int k = 0; k < COUNTERS; k++) {
        known.add(row(k));
        Result r = seen.get(row(k));
        long v = r == null ? 0 : Bytes.toLong(r.getValue(F, Q));
        if (v < sure[k] || v > sure[k] + perhaps[k]) {
          lost.add(row(k) + (exact ? " (retried under a nonce)" : "") + ": read " + v + ", acknowledged " + sure[k]
            + ", unknown " + perhaps[k]);
        }
        sure[k] = v;
        perhaps[k] = 0;
      }
    }
  }

  /** The journal that the compare-and-set threads share. */
  private static final class AtomicCounter {
    final String row;
    final AtomicLong sure = new AtomicLong();
    final AtomicLong perhaps = new AtomicLong();

    AtomicCounter(String row) {
      this.row = row;
    }
  }

  /** Several threads moving one number up by compare-and-set: each answered success is one step. */
  private final class Casers extends Writer {
    private final AtomicCounter counter;
    private final boolean verifies;

    Casers(AtomicCounter counter, boolean verifies) {
      super("cas");
      this.counter = counter;
      this.verifies = verifies;
    }

    @Override
    Connection connection() {
      return once;
    }

    @Override
    void step(Table table, Random random) throws Exception {
      byte[] row = b(counter.row);
      byte[] old = table.get(new Get(row)).getValue(F, Q);
      long v = old == null ? 0 : Bytes.toLong(old);
      CheckAndMutate.Builder c = CheckAndMutate.newBuilder(row);
      c = old == null ? c.ifNotExists(F, Q) : c.ifEquals(F, Q, old);
      boolean done = false;
      try {
        if (table.checkAndMutate(c.build(new Put(row).addColumn(F, Q, Bytes.toBytes(v + 1)))).isSuccess()) {
          counter.sure.incrementAndGet();
        }
        done = true;
      } finally {
        if (!done) {
          counter.perhaps.incrementAndGet();
        }
        count(done, 1);
      }
    }

    @Override
    void verify(Map<String, Result> seen, Set<String> known, List<String> lost) {
      if (!verifies) {
        return;
      }
      known.add(counter.row);
      Result r = seen.get(counter.row);
      long v = r == null ? 0 : Bytes.toLong(r.getValue(F, Q));
      if (v < counter.sure.get() || v > counter.sure.get() + counter.perhaps.get()) {
        lost.add(counter.row + ": read " + v + ", acknowledged " + counter.sure + ", unknown " + counter.perhaps);
      }
      counter.sure.set(v);
      counter.perhaps.set(0);
    }
  }

  /** A row that grows by numbered pieces: all answered ones are there, in order, none twice. */
  private final class Appends extends Writer {
    private final List<Integer> sure = new ArrayList<>();
    private final Set<Integer> perhaps = new HashSet<>();
    private final List<String> old = new ArrayList<>();
    private int row;
    private int piece;

    Appends(String prefix) {
      super(prefix);
    }

    @Override
    Connection connection() {
      return once;
    }

    private String key(int n) {
      return "h" + prefix + "-" + n;
    }

    @Override
    void step(Table table, Random random) throws Exception {
      int n = ++piece;
      boolean done = false;
      try {
        table.append(new Append(b(key(row))).addColumn(F, Q, Bytes.toBytes(n)).setReturnResults(n % 2 == 0));
        sure.add(n);
        done = true;
      } finally {
        if (!done) {
          perhaps.add(n);
        }
        count(done, 1);
      }
    }

    @Override
    void verify(Map<String, Result> seen, Set<String> known, List<String> lost) {
      for (int i = 0; i <= row; i++) {
        known.add(key(i));
      }
      Result r = seen.get(key(row));
      byte[] v = r == null ? new byte[0] : r.getValue(F, Q);
      List<Integer> found = new ArrayList<>();
      for (int at = 0; at + 4 <= v.length; at += 4) {
        found.add(Bytes.toInt(v, at));
      }
      List<Integer> rest = new ArrayList<>(found);
      rest.removeIf(perhaps::contains);
      if (!rest.equals(sure) || new HashSet<>(found).size() != found.size()) {
        lost.add(key(row) + ": read " + found.size() + " pieces, acknowledged " + sure.size() + ", unknown "
          + perhaps.size());
      }
      for (int i = 0; i < old.size(); i++) {
        if (!old.get(i).equals(Rows.cells(seen.get(key(i))))) {
          lost.add(key(i) + ": an older row changed");
        }
      }
      old.add(Rows.cells(r));
      row++;
      sure.clear();
      perhaps.clear();
    }
  }
}
