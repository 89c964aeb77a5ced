package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.InvalidFamilyOperationException;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotDisabledException;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/** Tables, families and namespaces made, changed, listed and dropped. */
final class DdlCases {
  private DdlCases() {
  }

  static void run(Check check, Server server) throws Exception {
    try (Admin admin = server.connection.getAdmin()) {
      tables(check, server, admin);
      families(check, server, admin);
      namespaces(check, server, admin);
      replicas(check, server, admin);
      cluster(check, server, admin);
    }
  }

  private static void replicas(Check check, Server server, Admin admin) {
    check.run("read replicas", () -> {
      TableName t = server.name("replicas");
      ColumnFamilyDescriptor family = ColumnFamilyDescriptorBuilder.of("f");
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setRegionReplication(2).setColumnFamily(family).build());
      try (Table table = server.connection.getTable(t);
        RegionLocator locator = server.connection.getRegionLocator(t)) {
        HRegionLocation replica = locator.getRegionLocation(b("r"), 1, true);
        same("id of the replica", 1, replica.getRegion().getReplicaId());
        same("locations of a row", 2, locator.getRegionLocations(b("r"), true).size());
        same("locations of the table", 2, locator.getAllRegionLocations().size());
        int open = 0;
        for (RegionInfo region : admin.getRegions(replica.getServerName())) {
          open += region.getTable().equals(t) ? 1 : 0;
        }
        same("open on the server", 2, open);
        table.put(put("r", "f:q=old"));
        admin.flush(t);
        table.put(put("r", "f:q=new"));
        Result stale = table.get(new Get(b("r")).setConsistency(Consistency.TIMELINE).setReplicaId(1));
        yes("the replica says that it is one", stale.isStale());
        same("value in files", "old", Bytes.toString(stale.value()));
        Result fresh = table.get(new Get(b("r")).setConsistency(Consistency.TIMELINE));
        yes("the primary is asked first", !fresh.isStale());
        same("value", "new", Bytes.toString(fresh.value()));
        Scan scan = new Scan().setConsistency(Consistency.TIMELINE).setReplicaId(1);
        try (ResultScanner rows = table.getScanner(scan)) {
          Result row = rows.next();
          yes("and so in a scan", row.isStale());
          same("value of a scan", "old", Bytes.toString(row.value()));
          yes("one row", rows.next() == null);
        }
        admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(t)).setRegionReplication(1).build());
        same("locations when there is one copy", 1, locator.getRegionLocations(b("r"), true).size());
      }
      admin.disableTable(t);
      admin.deleteTable(t);
    });
  }

  private static void tables(Check check, Server server, Admin admin) {
    check.run("create, exists, list, delete", () -> {
      TableName t = server.name("ddl");
      same("exists before", false, admin.tableExists(t));
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .build());
      same("exists", true, admin.tableExists(t));
      same("enabled", true, admin.isTableEnabled(t));
      same("disabled", false, admin.isTableDisabled(t));
      same("available", true, admin.isTableAvailable(t));
      yes("listTableNames has it", Arrays.asList(admin.listTableNames()).contains(t));
      yes("pattern finds it",
        Arrays.asList(admin.listTableNames(Pattern.compile("it_ddl.*"), false)).contains(t));
      boolean listed = false;
      for (TableDescriptor d : admin.listTableDescriptors()) {
        listed |= d.getTableName().equals(t);
        yes("no system table listed", !d.getTableName().isSystemTable());
      }
      yes("listTableDescriptors has it", listed);
      fails("create again", TableExistsException.class, () -> admin.createTable(admin.getDescriptor(t)));
      fails("delete while enabled", TableNotDisabledException.class, () -> admin.deleteTable(t));
      admin.disableTable(t);
      admin.deleteTable(t);
      same("exists after", false, admin.tableExists(t));
      fails("delete again", TableNotFoundException.class, () -> admin.deleteTable(t));
      fails("descriptor of a dropped table", TableNotFoundException.class, () -> admin.getDescriptor(t));
    });
    check.run("drop, create again, old rows are gone", () -> {
      TableName t = server.table("again", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=old"));
        admin.flush(t);
        table.put(put("r2", "f:q=old"));
        admin.disableTable(t);
        admin.deleteTable(t);
        admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
          .build());
        same("rows", 0, Rows.count(table, new Scan()));
        table.put(put("r", "f:q=new"));
        same("row", "f:q=new", Rows.get(table, "r"));
      }
    });
    check.run("disable, enable", () -> {
      TableName t = server.split("onoff", new String[] { "m" }, "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("a", "f:q=1"));
        table.put(put("z", "f:q=2"));
        admin.disableTable(t);
        same("disabled", true, admin.isTableDisabled(t));
        same("enabled", false, admin.isTableEnabled(t));
        fails("disable twice", TableNotEnabledException.class, () -> admin.disableTable(t));
        fails("put while disabled", DoNotRetryIOException.class, () -> table.put(put("a", "f:q=3")));
        fails("get while disabled", DoNotRetryIOException.class, () -> Rows.get(table, "a"));
        admin.enableTable(t);
        same("enabled", true, admin.isTableEnabled(t));
        fails("enable twice", TableNotDisabledException.class, () -> admin.enableTable(t));
        same("a", "f:q=1", Rows.get(table, "a"));
        same("z", "f:q=2", Rows.get(table, "z"));
        table.put(put("a", "f:q=4"));
        same("a after", "f:q=4", Rows.get(table, "a"));
      }
    });
    check.run("create with split keys", () -> {
      TableName t = server.split("pre", new String[] { "b", "m", "t" }, "f");
      List<String> starts = new ArrayList<>();
      for (RegionInfo r : admin.getRegions(t)) {
        starts.add(Rows.text(r.getStartKey()) + ".." + Rows.text(r.getEndKey()));
      }
      starts.sort(null);
      same("regions", Arrays.asList("..b", "b..m", "m..t", "t.."), starts);
      try (RegionLocator locator = server.connection.getRegionLocator(t); Table table = server.connection.getTable(t)) {
        same("all locations", 4, locator.getAllRegionLocations().size());
        same("start keys", "[, b, m, t]", keys(locator.getStartKeys()));
        same("end keys", "[b, m, t, ]", keys(locator.getEndKeys()));
        same("location of c", "b", Rows.text(locator.getRegionLocation(b("c")).getRegion().getStartKey()));
        same("location of t", "t", Rows.text(locator.getRegionLocation(b("t"), true).getRegion().getStartKey()));
        for (String row : new String[] { "a", "b", "c", "m", "s", "t", "z" }) {
          table.put(put(row, "f:q=" + row));
        }
        same("scan", "a,b,c,m,s,t,z", Rows.keys(table, new Scan()));
      }
    });
    check.run("create with start, end, number of regions", () -> {
      TableName t = server.name("uniform");
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .build(), b("a"), b("y"), 5);
      same("regions", 5, admin.getRegions(t).size());
    });
    check.run("split keys that cannot be", () -> {
      TableDescriptor d = TableDescriptorBuilder.newBuilder(server.name("bad"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build();
      fails("empty key", IllegalArgumentException.class,
        () -> admin.createTable(d, new byte[][] { b("a"), new byte[0] }));
      fails("twice the same", IllegalArgumentException.class,
        () -> admin.createTable(d, new byte[][] { b("a"), b("a") }));
      same("exists", false, admin.tableExists(d.getTableName()));
    });
    check.run("truncate", () -> {
      TableName t = server.split("trunc", new String[] { "m" }, "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("a", "f:q=1"));
        table.put(put("z", "f:q=2"));
        admin.flush(t);
        fails("truncate while enabled", TableNotDisabledException.class, () -> admin.truncateTable(t, true));
        admin.disableTable(t);
        admin.truncateTable(t, true);
        same("enabled after", true, admin.isTableEnabled(t));
        same("rows", 0, Rows.count(table, new Scan()));
        same("splits kept", 2, admin.getRegions(t).size());
        table.put(put("a", "f:q=3"));
        admin.disableTable(t);
        admin.truncateTable(t, false);
        same("rows", 0, Rows.count(table, new Scan()));
        same("splits dropped", 1, admin.getRegions(t).size());
        table.put(put("n", "f:q=4"));
        same("row", "f:q=4", Rows.get(table, "n"));
      }
    });
    check.run("modify table", () -> {
      TableName t = server.table("mod", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=1"));
        admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(t)).setMaxFileSize(1L << 33)
          .setMemStoreFlushSize(1L << 26).setDurability(Durability.ASYNC_WAL).setValue("owner", "me").build());
        TableDescriptor d = admin.getDescriptor(t);
        same("MAX_FILESIZE", 1L << 33, d.getMaxFileSize());
        same("MEMSTORE_FLUSHSIZE", 1L << 26, d.getMemStoreFlushSize());
        same("DURABILITY", Durability.ASYNC_WAL, d.getDurability());
        same("owner", "me", d.getValue("owner"));
        same("row", "f:q=1", Rows.get(table, "r"));
        table.put(put("r", "f:q=2"));
        same("row", "f:q=2", Rows.get(table, "r"));
      }
    });
    check.run("read-only table refuses writes", () -> {
      TableName t = server.name("ro");
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .setReadOnly(true).build());
      try (Table table = server.connection.getTable(t)) {
        fails("put", DoNotRetryIOException.class, () -> table.put(put("r", "f:q=1")));
        same("rows", 0, Rows.count(table, new Scan()));
      }
    });
    check.run("descriptor comes back as it was sent", () -> {
      TableName t = server.name("desc");
      ColumnFamilyDescriptor f = ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(7).setMinVersions(2)
        .setTimeToLive(86400).setBloomFilterType(BloomType.ROWCOL).setBlocksize(16384).setInMemory(true)
        .setBlockCacheEnabled(false).setDataBlockEncoding(DataBlockEncoding.FAST_DIFF)
        .setCompressionType(Compression.Algorithm.GZ).setValue("note", "hello").build();
      ColumnFamilyDescriptor g = ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setScope(1)
        .setCacheDataOnWrite(true).setEvictBlocksOnClose(true).build();
      TableDescriptor sent = TableDescriptorBuilder.newBuilder(t).setColumnFamilies(Arrays.asList(f, g))
        .setRegionReplication(1).setNormalizationEnabled(false).setValue("k", "v").build();
      admin.createTable(sent);
      TableDescriptor got = admin.getDescriptor(t);
      same("families", new TreeSet<>(Arrays.asList("f", "g")).toString(), names(got).toString());
      same("f", f.toStringCustomizedValues(), got.getColumnFamily(b("f")).toStringCustomizedValues());
      same("f equals", true, f.equals(got.getColumnFamily(b("f"))));
      same("g equals", true, g.equals(got.getColumnFamily(b("g"))));
      same("k", "v", got.getValue("k"));
      try (Table table = server.connection.getTable(t)) {
        same("descriptor through Table", got, table.getDescriptor());
        table.put(put("r", "f:q=1", "g:q=2"));
        admin.flush(t);
        same("row", "f:q=1 g:q=2", Rows.get(table, "r"));
      }
    });
    check.run("illegal names", () -> {
      // the client refuses these itself; the names the server must refuse are in the error cases
      fails("colon", IllegalArgumentException.class, () -> TableName.valueOf("a:b:c"));
      fails("family with colon", IllegalArgumentException.class, () -> ColumnFamilyDescriptorBuilder.of("a:b"));
      fails("table without family", DoNotRetryIOException.class,
        () -> admin.createTable(TableDescriptorBuilder.newBuilder(server.name("nofam")).build()));
    });
  }

  private static void families(Check check, Server server, Admin admin) {
    check.run("add, modify, delete family", () -> {
      TableName t = server.table("fam", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=1"));
        admin.addColumnFamily(t, ColumnFamilyDescriptorBuilder.of("g"));
        same("families", "[f, g]", names(admin.getDescriptor(t)).toString());
        table.put(put("r", "g:q=2"));
        same("row", "f:q=1 g:q=2", Rows.get(table, "r"));
        fails("add again", InvalidFamilyOperationException.class,
          () -> admin.addColumnFamily(t, ColumnFamilyDescriptorBuilder.of("g")));
        admin.modifyColumnFamily(t, ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setMaxVersions(4).build());
        same("versions", 4, admin.getDescriptor(t).getColumnFamily(b("g")).getMaxVersions());
        fails("modify an unknown one", InvalidFamilyOperationException.class,
          () -> admin.modifyColumnFamily(t, ColumnFamilyDescriptorBuilder.of("x")));
        table.put(put("r", "g:q=3"));
        same("two versions", 2,
          table.get(new org.apache.hadoop.hbase.client.Get(b("r")).addFamily(b("g")).readAllVersions()).size());
        admin.deleteColumnFamily(t, b("g"));
        same("families", "[f]", names(admin.getDescriptor(t)).toString());
        same("row", "f:q=1", Rows.get(table, "r"));
        fails("delete an unknown one", InvalidFamilyOperationException.class,
          () -> admin.deleteColumnFamily(t, b("g")));
        fails("delete the last one", InvalidFamilyOperationException.class,
          () -> admin.deleteColumnFamily(t, b("f")));
        admin.addColumnFamily(t, ColumnFamilyDescriptorBuilder.of("g"));
        same("the family's old cells are gone", "f:q=1", Rows.get(table, "r"));
      }
    });
    check.run("change families of a disabled table", () -> {
      TableName t = server.table("famoff", "f");
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=1"));
        admin.disableTable(t);
        admin.addColumnFamily(t, ColumnFamilyDescriptorBuilder.of("h"));
        same("still disabled", true, admin.isTableDisabled(t));
        admin.enableTable(t);
        table.put(put("r", "h:q=2"));
        same("row", "f:q=1 h:q=2", Rows.get(table, "r"));
      }
    });
  }

  private static void namespaces(Check check, Server server, Admin admin) {
    check.run("namespaces", () -> {
      String ns = "ns" + Long.toString(System.nanoTime() & 0xffffff, 36);
      admin.createNamespace(NamespaceDescriptor.create(ns).addConfiguration("who", "me").build());
      same("described", "me", admin.getNamespaceDescriptor(ns).getConfigurationValue("who"));
      yes("listed", Arrays.asList(admin.listNamespaces()).contains(ns));
      yes("default listed", Arrays.asList(admin.listNamespaces()).contains("default"));
      yes("hbase listed", Arrays.asList(admin.listNamespaces()).contains("hbase"));
      yes("descriptors listed", admin.listNamespaceDescriptors().length >= 3);
      fails("create again", NamespaceExistException.class,
        () -> admin.createNamespace(NamespaceDescriptor.create(ns).build()));
      admin.modifyNamespace(NamespaceDescriptor.create(ns).addConfiguration("who", "you").build());
      same("modified", "you", admin.getNamespaceDescriptor(ns).getConfigurationValue("who"));
      TableName t = server.adopt(TableName.valueOf(ns, "t"));
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .build());
      same("tables of the namespace", "[" + t + "]",
        Arrays.toString(admin.listTableNamesByNamespace(ns)));
      same("descriptors of the namespace", 1, admin.listTableDescriptorsByNamespace(b(ns)).size());
      try (Table table = server.connection.getTable(t)) {
        table.put(put("r", "f:q=1"));
        same("row", "f:q=1", Rows.get(table, "r"));
      }
      fails("delete while not empty", DoNotRetryIOException.class, () -> admin.deleteNamespace(ns));
      admin.disableTable(t);
      admin.deleteTable(t);
      admin.deleteNamespace(ns);
      fails("described after", NamespaceNotFoundException.class, () -> admin.getNamespaceDescriptor(ns));
      fails("table in an unknown namespace", NamespaceNotFoundException.class,
        () -> admin.createTable(TableDescriptorBuilder.newBuilder(TableName.valueOf(ns, "u"))
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build()));
    });
  }

  private static void cluster(Check check, Server server, Admin admin) {
    check.run("cluster metrics", () -> {
      ClusterMetrics m = admin.getClusterMetrics();
      yes("cluster id", m.getClusterId() != null && m.getClusterId().length() == 36);
      yes("a master", m.getMasterName() != null && m.getMasterName().getPort() > 0);
      same("live servers", true, m.getLiveServerMetrics().size() >= 1);
      same("dead servers", 0, m.getDeadServerNames().size());
      yes("version", m.getHBaseVersion() != null && !m.getHBaseVersion().isEmpty());
      yes("region count", m.getRegionCount() >= 1);
    });
    check.run("region servers and regions of a server", () -> {
      TableName t = server.split("where", new String[] { "h", "p" }, "f");
      int found = 0;
      for (org.apache.hadoop.hbase.ServerName s : admin.getRegionServers()) {
        for (RegionInfo r : admin.getRegions(s)) {
          found += r.getTable().equals(t) ? 1 : 0;
        }
      }
      same("regions found", 3, found);
    });
    check.run("balancer switch and other toggles", () -> {
      boolean before = admin.isBalancerEnabled();
      same("balancer: previous value", before, admin.balancerSwitch(false, true));
      same("balancer: now", false, admin.isBalancerEnabled());
      admin.balancerSwitch(before, true);
      same("balancer: back", before, admin.isBalancerEnabled());
    });
  }

  static String keys(byte[][] keys) {
    List<String> out = new ArrayList<>();
    for (byte[] k : keys) {
      out.add(Rows.text(k));
    }
    return out.toString();
  }

  private static TreeSet<String> names(TableDescriptor d) {
    TreeSet<String> out = new TreeSet<>();
    for (byte[] f : d.getColumnFamilyNames()) {
      out.add(Bytes.toString(f));
    }
    return out;
  }
}
