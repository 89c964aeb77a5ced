package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Put, get, delete in four kinds, exists, large cells; each through the memstore and again after a flush. */
final class DataCases {
  private DataCases() {
  }

  static void run(Check check, Server server) throws Exception {
    try (Admin admin = server.connection.getAdmin()) {
      gets(check, server, admin);
      deletes(check, server, admin);
      sizes(check, server, admin);
      lists(check, server);
    }
  }

  private static void gets(Check check, Server server, Admin admin) {
    check.run("put and get", () -> {
      TableName t = server.table("pg", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        same("absent", "", Rows.get(table, "r"));
        table.put(put("r", "f:b=2", "f:a=1", "g:z=", "g:=empty qualifier"));
        for (int pass = 0; pass < 2; pass++) {
          same("row", "f:a=1 f:b=2 g:=empty qualifier g:z=", Rows.get(table, "r"));
          same("family", "f:a=1 f:b=2", Rows.cells(table.get(new Get(b("r")).addFamily(b("f")))));
          same("column", "f:b=2", Rows.cells(table.get(new Get(b("r")).addColumn(b("f"), b("b")))));
          same("column and family", "f:b=2 g:=empty qualifier g:z=",
            Rows.cells(table.get(new Get(b("r")).addColumn(b("f"), b("b")).addFamily(b("g")))));
          same("absent column", "", Rows.cells(table.get(new Get(b("r")).addColumn(b("f"), b("x")))));
          same("value", b("1"), table.get(new Get(b("r"))).getValue(b("f"), b("a")));
          same("exists", true, table.exists(new Get(b("r"))));
          same("exists column", false, table.exists(new Get(b("r")).addColumn(b("f"), b("x"))));
          same("exists absent row", false, table.exists(new Get(b("q"))));
          same("exist-only get", true, table.get(new Get(b("r")).setCheckExistenceOnly(true)).getExists());
          admin.flush(t);
        }
        table.put(put("r", "f:a=new"));
        same("memstore over file", "f:a=new f:b=2", Rows.cells(table.get(new Get(b("r")).addFamily(b("f")))));
      }
    });
    check.run("versions, time ranges, explicit timestamps", () -> {
      TableName t = server.table("ver", "f*3", "g");
      try (Table table = server.connection.getTable(t)) {
        for (int ts = 10; ts <= 50; ts += 10) {
          table.put(put("r", "f:q@" + ts + "=v" + ts, "g:q@" + ts + "=w" + ts));
        }
        for (int pass = 0; pass < 3; pass++) {
          same("newest", "f:q@50=v50 g:q@50=w50", Rows.stamped(table.get(new Get(b("r")))));
          same("two versions", "f:q@50=v50 f:q@40=v40 g:q@50=w50",
            Rows.stamped(table.get(new Get(b("r")).readVersions(2))));
          same("all versions", "f:q@50=v50 f:q@40=v40 f:q@30=v30 g:q@50=w50",
            Rows.stamped(table.get(new Get(b("r")).readAllVersions())));
          same("time range", "f:q@40=v40 f:q@30=v30",
            Rows.stamped(table.get(new Get(b("r")).addFamily(b("f")).setTimeRange(30, 50).readAllVersions())));
          same("timestamp", "f:q@40=v40",
            Rows.stamped(table.get(new Get(b("r")).addFamily(b("f")).setTimestamp(40))));
          same("per-family time range", "f:q@30=v30 g:q@50=w50", Rows.stamped(
            table.get(new Get(b("r")).setColumnFamilyTimeRange(b("f"), 0, 31))));
          if (pass == 0) {
            admin.flush(t);
          } else if (pass == 1) {
            Maintenance.compact(admin, t);
          }
        }
        table.put(put("r", "f:q@45=between"));
        same("a late arrival in the middle", "f:q@50=v50 f:q@45=between f:q@40=v40",
          Rows.stamped(table.get(new Get(b("r")).addFamily(b("f")).readAllVersions())));
        table.put(put("r", "f:q@50=again"));
        same("same timestamp: last one wins", "f:q@50=again",
          Rows.stamped(table.get(new Get(b("r")).addFamily(b("f")))));
        table.put(put("r", "f:q@" + (Long.MAX_VALUE - 1) + "=far"));
        same("far future", "f:q@" + (Long.MAX_VALUE - 1) + "=far",
          Rows.stamped(table.get(new Get(b("r")).addFamily(b("f")))));
      }
    });
    check.run("server timestamps are now, and grow", () -> {
      TableName t = server.table("now", "f");
      try (Table table = server.connection.getTable(t)) {
        long before = System.currentTimeMillis();
        long last = 0;
        for (int i = 0; i < 50; i++) {
          table.put(put("r", "f:q=" + i));
          Result r = table.get(new Get(b("r")));
          same("value", "" + i, Bytes.toString(r.value()));
          yes("timestamp not going back", r.rawCells()[0].getTimestamp() >= last);
          last = r.rawCells()[0].getTimestamp();
        }
        yes("near now", Math.abs(last - before) < 60_000);
      }
    });
    check.run("store limit and offset", () -> {
      TableName t = server.table("lim", "f", "g");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:a=1", "f:b=2", "f:c=3", "g:a=4", "g:b=5"));
        same("limit 2", "f:a=1 f:b=2 g:a=4 g:b=5",
          Rows.cells(table.get(new Get(b("r")).setMaxResultsPerColumnFamily(2))));
        same("offset 1 limit 1", "f:b=2 g:b=5", Rows.cells(
          table.get(new Get(b("r")).setMaxResultsPerColumnFamily(1).setRowOffsetPerColumnFamily(1))));
      }
    });
    check.run("durabilities", () -> {
      TableName t = server.table("dur", "f");
      try (Table table = server.connection.getTable(t)) {
        for (Durability d : Durability.values()) {
          table.put(put(d.name(), "f:q=" + d).setDurability(d));
          same("row", "f:q=" + d, Rows.get(table, d.name()));
        }
        same("rows", 5, Rows.count(table, new Scan()));
      }
    });
    check.run("binary rows, qualifiers, values", () -> {
      TableName t = server.table("bin", "f");
      try (Table table = server.connection.getTable(t)) {
        Random random = new Random(7);
        List<byte[]> rows = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
          byte[] row = new byte[1 + random.nextInt(40)];
          random.nextBytes(row);
          rows.add(row);
          byte[] qualifier = new byte[random.nextInt(20)];
          random.nextBytes(qualifier);
          table.put(new Put(row).addColumn(b("f"), qualifier, row));
        }
        rows.sort(Bytes.BYTES_COMPARATOR);
        List<byte[]> seen = new ArrayList<>();
        try (var scanner = table.getScanner(new Scan())) {
          for (Result r : scanner) {
            same("value", r.getRow(), r.value());
            seen.add(r.getRow());
          }
        }
        List<String> want = new ArrayList<>();
        for (byte[] r : rows) {
          if (want.isEmpty() || !want.get(want.size() - 1).equals(Rows.text(r))) {
            want.add(Rows.text(r));
          }
        }
        List<String> got = new ArrayList<>();
        seen.forEach(r -> got.add(Rows.text(r)));
        same("rows in order", want, got);
      }
    });
    check.run("time to live", () -> {
      TableName t = server.table("ttl", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("long", "f:q=1").setTTL(1_000_000));
        table.put(put("short", "f:q=2").setTTL(1));
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (!Rows.get(table, "short").isEmpty() && System.nanoTime() < deadline) {
          Thread.onSpinWait();
        }
        same("expired cell", "", Rows.get(table, "short"));
        same("living cell", "f:q=1", Rows.get(table, "long"));
      }
    });
  }

  private static void deletes(Check check, Server server, Admin admin) {
    for (boolean flushed : new boolean[] { false, true }) {
      check.run("delete in four kinds" + (flushed ? ", from files" : ""), () -> {
        TableName t = server.table("del", "f*10", "g*10");
        try (Table table = server.connection.getTable(t)) {
          Check.Body settle = () -> {
            if (flushed) {
              admin.flush(t);
            }
          };
          for (String row : new String[] { "version", "column", "family", "famver", "row", "at", "latest" }) {
            for (int ts = 10; ts <= 30; ts += 10) {
              table.put(put(row, "f:a@" + ts + "=" + ts, "f:b@" + ts + "=" + ts, "g:a@" + ts + "=" + ts));
            }
          }
          settle.run();
          table.delete(new Delete(b("version")).addColumn(b("f"), b("a"), 20));
          table.delete(new Delete(b("latest")).addColumn(b("f"), b("a")));
          table.delete(new Delete(b("column")).addColumns(b("f"), b("a"), 20));
          table.delete(new Delete(b("family")).addFamily(b("f"), 20));
          table.delete(new Delete(b("famver")).addFamilyVersion(b("f"), 20));
          table.delete(new Delete(b("row")));
          table.delete(new Delete(b("at"), 20));
          settle.run();
          String g = " g:a@30=30 g:a@20=20 g:a@10=10";
          same("one version", "f:a@30=30 f:a@10=10 f:b@30=30 f:b@20=20 f:b@10=10" + g, all(table, "version"));
          same("latest version", "f:a@20=20 f:a@10=10 f:b@30=30 f:b@20=20 f:b@10=10" + g, all(table, "latest"));
          same("column up to 20", "f:a@30=30 f:b@30=30 f:b@20=20 f:b@10=10" + g, all(table, "column"));
          same("family up to 20", "f:a@30=30 f:b@30=30" + g, all(table, "family"));
          same("family at 20", "f:a@30=30 f:a@10=10 f:b@30=30 f:b@10=10" + g, all(table, "famver"));
          same("row", "", all(table, "row"));
          same("row up to 20", "f:a@30=30 f:b@30=30 g:a@30=30", all(table, "at"));
          // a put under a marker stays hidden; over it, it shows
          table.put(put("column", "f:a@15=hidden"));
          same("put below the marker", "f:a@30=30 f:b@30=30 f:b@20=20 f:b@10=10" + g, all(table, "column"));
          table.put(put("row", "f:a=new"));
          same("put after deleting the row", "f:a=new", Rows.get(table, "row"));
          same("raw scan shows markers", true, Rows.count(table, new Scan().setRaw(true).readAllVersions()
            .withStartRow(b("row")).withStopRow(b("row"), true)) == 1);
          Result raw = table.getScanner(new Scan().setRaw(true).readAllVersions().withStartRow(b("famver"))
            .setLimit(1).addFamily(b("f"))).next();
          yes("raw: " + Rows.stamped(raw), Rows.stamped(raw).contains("/DeleteFamilyVersion"));
          if (flushed) {
            Maintenance.compact(admin, t);
            same("after major compaction", "f:a@30=30 f:b@30=30" + g, all(table, "family"));
            raw = table.getScanner(new Scan().setRaw(true).readAllVersions().withStartRow(b("famver"))
              .setLimit(1).addFamily(b("f"))).next();
            yes("raw after major compaction: " + Rows.stamped(raw), !Rows.stamped(raw).contains("/Delete"));
          }
        }
      });
    }
    check.run("delete what is not there", () -> {
      TableName t = server.table("del0", "f");
      try (Table table = server.connection.getTable(t)) {
        table.delete(new Delete(b("none")));
        table.delete(new Delete(b("none")).addColumn(b("f"), b("q")));
        same("rows", 0, Rows.count(table, new Scan()));
        table.put(put("none", "f:q=1"));
        same("row", "f:q=1", Rows.get(table, "none"));
      }
    });
  }

  private static void sizes(Check check, Server server, Admin admin) {
    check.run("large cells", () -> {
      TableName t = server.table("big", "f");
      try (Table table = server.connection.getTable(t)) {
        Random random = new Random(3);
        int[] sizes = { 0, 1, 4095, 65_536, 1_000_003, 5_000_000, 10_000_000 };
        for (int pass = 0; pass < 2; pass++) {
          for (int size : sizes) {
            byte[] value = new byte[size];
            random.setSeed(size);
            random.nextBytes(value);
            if (pass == 0) {
              table.put(new Put(b("r" + size)).addColumn(b("f"), b("q"), value));
            }
            byte[] got = table.get(new Get(b("r" + size))).getValue(b("f"), b("q"));
            yes("value of " + size + " bytes", Arrays.equals(value, got));
          }
          admin.flush(t);
        }
        same("scan of large cells", sizes.length, Rows.count(table, new Scan()));
      }
    });
    check.run("longest row and a long qualifier", () -> {
      TableName t = server.table("long", "f");
      try (Table table = server.connection.getTable(t)) {
        // the client looks rows up in the catalog as "table,row,id", which must itself be a legal row
        byte[] row = new byte[HConstants.MAX_ROW_LENGTH - 100];
        Arrays.fill(row, (byte) 'r');
        byte[] qualifier = new byte[100_000];
        table.put(new Put(row).addColumn(b("f"), qualifier, b("v")));
        same("value", b("v"), table.get(new Get(row)).getValue(b("f"), qualifier));
        admin.flush(t);
        same("value", b("v"), table.get(new Get(row)).getValue(b("f"), qualifier));
        same("scan", 1, Rows.count(table, new Scan()));
      }
    });
    check.run("a wide row", () -> {
      TableName t = server.table("wide", "f");
      try (Table table = server.connection.getTable(t)) {
        Put put = new Put(b("r"));
        for (int i = 0; i < 20_000; i++) {
          put.addColumn(b("f"), Bytes.toBytes(i), Bytes.toBytes(i * 3));
        }
        table.put(put);
        Result r = table.get(new Get(b("r")));
        same("cells", 20_000, r.size());
        for (int i = 0; i < 20_000; i += 777) {
          same("cell " + i, Bytes.toBytes(i * 3), r.getValue(b("f"), Bytes.toBytes(i)));
        }
      }
    });
  }

  private static void lists(Check check, Server server) {
    check.run("lists of puts, gets, deletes over regions", () -> {
      TableName t = server.split("list", new String[] { "r3", "r6" }, "f");
      try (Table table = server.connection.getTable(t)) {
        List<Put> puts = new ArrayList<>();
        List<Get> gets = new ArrayList<>();
        List<Delete> deletes = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
          puts.add(put("r" + i, "f:q=" + i));
          gets.add(new Get(b("r" + i)));
          if (i % 3 == 0) {
            deletes.add(new Delete(b("r" + i)));
          }
        }
        gets.add(new Get(b("absent")));
        table.put(puts);
        Result[] got = table.get(gets);
        for (int i = 0; i < 100; i++) {
          same("get " + i, "f:q=" + i, Rows.cells(got[i]));
        }
        same("absent", true, got[100].isEmpty());
        table.delete(deletes);
        same("left", 66, Rows.count(table, new Scan()));
        boolean[] exists = table.exists(gets);
        for (int i = 0; i < 100; i++) {
          same("exists " + i, i % 3 != 0, exists[i]);
        }
      }
    });
    check.run("buffered mutator", () -> {
      TableName t = server.split("bm", new String[] { "3", "6" }, "f");
      try (BufferedMutator m = server.connection.getBufferedMutator(t);
        Table table = server.connection.getTable(t)) {
        for (int i = 0; i < 5_000; i++) {
          m.mutate(new Put(b(String.format("%04d", i))).addColumn(b("f"), b("q"), new byte[100]));
        }
        m.flush();
        m.mutate(new Delete(b("0007")));
        m.flush();
        same("rows", 4_999, Rows.count(table, new Scan().setCaching(1000)));
      }
    });
    check.run("wrong family in a list: the others are done", () -> {
      TableName t = server.table("mix", "f");
      try (Table table = server.connection.getTable(t)) {
        fails("put list", org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException.class,
          () -> table.put(new ArrayList<>(List.of(put("a", "f:q=1"), put("b", "nope:q=2"), put("c", "f:q=3")))));
        same("rows", "a,c", Rows.keys(table, new Scan()));
      }
    });
  }

  private static String all(Table table, String row) throws Exception {
    return Rows.stamped(table.get(new Get(b(row)).readAllVersions()));
  }
}
