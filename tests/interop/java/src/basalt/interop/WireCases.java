package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.VersionInfo;

/** The same round of everyday calls over each way to find the cluster and each way to carry cells. */
final class WireCases {
  private static final String CODEC = "hbase.client.rpc.codec";
  private static final String PACKAGE = "org.apache.hadoop.hbase.codec.";

  private WireCases() {
  }

  static void run(Check check, Server server) {
    String rpcRegistry = "org.apache.hadoop.hbase.client.RpcConnectionRegistry";
    check.run("registry: RPC", () -> everyday(server, "hbase.client.registry.impl", rpcRegistry));
    check.run("registry: ZooKeeper", () -> everyday(server, "hbase.client.registry.impl",
      "org.apache.hadoop.hbase.client.ZKConnectionRegistry"));
    check.run("codec: KeyValueCodec", () -> everyday(server, CODEC, PACKAGE + "KeyValueCodec"));
    check.run("codec: KeyValueCodecWithTags", () -> everyday(server, CODEC, PACKAGE + "KeyValueCodecWithTags"));
    if (VersionInfo.getVersion().startsWith("2.")) {
      // without a codec, 3.0.0-beta-1 fails in the client itself (CellScannerButNoCodecException)
      check.run("codec: none, cells in messages", () -> everyday(server, "hbase.client.default.rpc.codec", ""));
    }
    for (String compressor : new String[] { "GzipCodec", "DefaultCodec", "BZip2Codec" }) {
      check.run("compressor: " + compressor, () -> everyday(server, "hbase.client.rpc.compressor",
        "org.apache.hadoop.io.compress." + compressor));
    }
    check.run("compressor with tags codec over the RPC registry",
      () -> everyday(server, "hbase.client.rpc.compressor", "org.apache.hadoop.io.compress.GzipCodec", CODEC,
        PACKAGE + "KeyValueCodecWithTags", "hbase.client.registry.impl", rpcRegistry));
    check.run("blocking RPC client", () -> everyday(server, "hbase.rpc.client.impl",
      "org.apache.hadoop.hbase.ipc.BlockingRpcClient"));
    check.run("many connections at once", () -> {
      TableName t = server.table("conns", "f");
      List<Connection> all = new ArrayList<>();
      try {
        for (int i = 0; i < 20; i++) {
          Connection c = server.connect("hbase.client.ipc.pool.size", "3");
          all.add(c);
          try (Table table = c.getTable(t)) {
            table.put(put("r" + i, "f:q=" + i));
          }
        }
        for (int i = 0; i < 20; i++) {
          try (Table table = all.get(i).getTable(t)) {
            same("rows", 20, Rows.count(table, new Scan()));
          }
        }
      } finally {
        for (Connection c : all) {
          c.close();
        }
      }
    });
  }

  /** One of each call, over a connection of its own. */
  private static void everyday(Server server, String... settings) throws Exception {
    try (Connection c = server.connect(settings); Admin admin = c.getAdmin()) {
      TableName t = server.name("wire");
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(
        ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build()).build(),
        new byte[][] { b("m") });
      try (Table table = c.getTable(t)) {
        table.put(put("a", "f:q=1", "f:r="));
        same("get", "f:q=1 f:r=", Rows.get(table, "a"));
        same("get of nothing", "", Rows.get(table, "zz"));
        same("exists", true, table.exists(new Get(b("a"))));
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
          puts.add(put("m" + i, "f:q=" + i, "f:r=" + "x".repeat(i % 50)));
        }
        table.put(puts);
        same("count", 301, Rows.count(table, new Scan().setCaching(23)));
        same("count in small pieces", 301, Rows.count(table, new Scan().setMaxResultSize(500)));
        same("reversed", "m99,m98", Rows.keys(table, new Scan().setReversed(true).setLimit(2)));
        same("increment", 9L, table.incrementColumnValue(b("a"), b("f"), b("n"), 9));
        same("append", "f:q=12",
          Rows.cells(table.append(new Append(b("a")).addColumn(b("f"), b("q"), b("2")))));
        same("check", true, table.checkAndMutate(CheckAndMutate.newBuilder(b("a"))
          .ifEquals(b("f"), b("q"), b("12")).build(new Delete(b("a")).addColumns(b("f"), b("r")))).isSuccess());
        table.mutateRow(Rows.mutations(put("a", "f:z=1"), new Delete(b("a")).addColumns(b("f"),
          b("n"))));
        same("row", "f:q=12 f:z=1", Rows.get(table, "a"));
        List<Row> mixed = new ArrayList<>(Arrays.asList(new Get(b("a")), put("b", "f:q=b"), new Delete(b("m1")),
          new Increment(b("n")).addColumn(b("f"), b("n"), 2), new Get(b("m2")), new Get(b("m1"))));
        Object[] results = new Object[mixed.size()];
        table.batch(mixed, results);
        same("batch: get", "f:q=12 f:z=1", Rows.cells((Result) results[0]));
        same("batch: increment", 2L, Bytes.toLong(((Result) results[3]).value()));
        same("batch: other region", "f:q=2 f:r=xx", Rows.cells((Result) results[4]));
        byte[] large = new byte[3_000_000];
        new java.util.Random(5).nextBytes(large);
        table.put(new Put(b("big")).addColumn(b("f"), b("q"), large));
        Check.yes("large value", Arrays.equals(large, table.get(new Get(b("big"))).value()));
        table.delete(new Delete(b("big")));
        same("deleted", "", Rows.get(table, "big"));
        Check.fails("an error comes over as itself",
          org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException.class,
          () -> table.put(put("r", "x:q=1")));
      }
    }
  }
}
