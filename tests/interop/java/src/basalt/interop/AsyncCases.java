package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import org.apache.hadoop.hbase.util.Bytes;

/** The asynchronous client, which in 2.x is a second implementation beside the one the other cases use. */
final class AsyncCases {
  private AsyncCases() {
  }

  static <T> T wait(CompletableFuture<T> f) throws Exception {
    return f.get(60, TimeUnit.SECONDS);
  }

  static void run(Check check, Server server) throws Exception {
    try (AsyncConnection c = wait(ConnectionFactory.createAsyncConnection(server.configuration()))) {
      cases(check, server, c);
    }
  }

  private static void cases(Check check, Server server, AsyncConnection c) {
    AsyncAdmin admin = c.getAdmin();
    TableName t = server.name("async");
    AsyncTable<AdvancedScanResultConsumer> table = c.getTable(t);
    check.run("create, describe", () -> {
      wait(admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .build(), new byte[][] { b("r3"), b("r6") }));
      same("exists", true, wait(admin.tableExists(t)));
      same("regions", 3, wait(admin.getRegions(t)).size());
      same("name", t, wait(table.getDescriptor()).getTableName());
      yes("listed", wait(admin.listTableNames(false)).contains(t));
      same("locations", 3, wait(c.getRegionLocator(t).getAllRegionLocations()).size());
    });
    check.run("put, get, exists, delete", () -> {
      wait(table.put(put("r1", "f:q=1")));
      same("get", "f:q=1", Rows.cells(wait(table.get(new Get(b("r1"))))));
      same("exists", true, wait(table.exists(new Get(b("r1")))));
      wait(table.delete(new Delete(b("r1"))));
      same("exists", false, wait(table.exists(new Get(b("r1")))));
      fails("unknown family", NoSuchColumnFamilyException.class, () -> wait(table.put(put("r1", "x:q=1"))));
    });
    check.run("a thousand puts in flight", () -> {
      List<CompletableFuture<Void>> all = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        all.add(table.put(put(String.format("r%03d", i), "f:q=" + i)));
      }
      for (CompletableFuture<Void> f : all) {
        wait(f);
      }
      List<CompletableFuture<Result>> gets = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        gets.add(table.get(new Get(b(String.format("r%03d", i)))));
      }
      for (int i = 0; i < 1000; i++) {
        same("get", "f:q=" + i, Rows.cells(wait(gets.get(i))));
      }
    });
    check.run("scan", () -> {
      same("scanAll", 1000, wait(table.scanAll(new Scan().setCaching(70))).size());
      same("limited", 10, wait(table.scanAll(new Scan().setLimit(10))).size());
      same("reversed", "r999", Bytes.toString(wait(table.scanAll(new Scan().setReversed(true).setLimit(1))).get(0)
        .getRow()));
      try (var scanner = table.getScanner(new Scan().setMaxResultSize(1000))) {
        int n = 0;
        for (Result r : scanner) {
          same("row", String.format("r%03d", n++), Bytes.toString(r.getRow()));
        }
        same("rows", 1000, n);
      }
    });
    check.run("lists and batches", () -> {
      List<Put> puts = new ArrayList<>();
      List<Get> gets = new ArrayList<>();
      for (int i = 0; i < 90; i++) {
        puts.add(put("r" + i / 10 + "-" + i % 10, "f:q=" + i));
        gets.add(new Get(b("r" + i / 10 + "-" + i % 10)));
      }
      wait(table.putAll(puts));
      List<Result> got = wait(table.getAll(gets));
      for (int i = 0; i < 90; i++) {
        same("get", "f:q=" + i, Rows.cells(got.get(i)));
      }
      List<Delete> deletes = new ArrayList<>();
      gets.forEach(g -> deletes.add(new Delete(g.getRow())));
      wait(table.deleteAll(deletes));
      for (boolean e : wait(table.existsAll(gets))) {
        same("exists", false, e);
      }
    });
    check.run("increment, append, checkAndMutate, RowMutations", () -> {
      same("increment", 5L,
        Bytes.toLong(wait(table.increment(new Increment(b("a")).addColumn(b("f"), b("n"), 5))).value()));
      same("append", "f:s=xy", Rows.cells(wait(table.append(new Append(b("a")).addColumn(b("f"), b("s"), b("xy"))))));
      same("check", true, wait(table.checkAndMutate(
        CheckAndMutate.newBuilder(b("a")).ifEquals(b("f"), b("s"), b("xy")).build(put("a", "f:s=z")))).isSuccess());
      wait(table.mutateRow(Rows.mutations(put("a", "f:k=1"), new Delete(b("a")).addColumns(b("f"), b("s")))));
      same("row", "f:k=1 f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05", Rows.cells(wait(table.get(new Get(b("a"))))));
    });
    check.run("buffered mutator", () -> {
      try (var m = c.getBufferedMutator(t)) {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
          all.add(m.mutate(put("m" + i, "f:q=" + i)));
        }
        m.flush();
        for (CompletableFuture<Void> f : all) {
          wait(f);
        }
      }
      same("rows", 2000, wait(table.scanAll(new Scan().setStartStopRowForPrefixScan(b("m")))).size());
    });
    check.run("flush, disable, delete", () -> {
      wait(admin.flush(t));
      wait(admin.disableTable(t));
      same("disabled", true, wait(admin.isTableDisabled(t)));
      wait(admin.deleteTable(t));
      same("exists", false, wait(admin.tableExists(t)));
    });
    check.run("cluster metrics", () -> yes("a server", !wait(admin.getRegionServers()).isEmpty()));
  }
}
