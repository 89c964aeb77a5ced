package basalt.interop.differential;

import static basalt.interop.Rows.b;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;

/**
 * Random descriptors, and values in them that a master is to refuse, or not. Left out is what HBase's master lets through though its region
 * server, opening a region, dies of it (a durability that is none), and that the checks may be turned off, with which many more are.
 */
final class AdminTables {
  /** Key and value of a family's attribute that are not as they should be, or only look so. */
  private static final String[][] ODD_FAMILY = { { "BLOCKSIZE", "1" }, { "BLOCKSIZE", "100000000" }, { "VERSIONS", "0" },
    { "VERSIONS", "-2" }, { "TTL", "-5" }, { "TTL", "0" }, { "MIN_VERSIONS", "-1" }, { "MIN_VERSIONS", "9" },
    { "REPLICATION_SCOPE", "7" }, { "REPLICATION_SCOPE", "-1" }, { "BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH" },
    { "COMPRESSION", "GZ" }, { "DFS_REPLICATION", "-3" }, { "DFS_REPLICATION", "0" }, { "IN_MEMORY_COMPACTION", "BASIC" },
    { "hbase.hstore.engine.class", "nowhere.Engine" },
    { "hbase.hstore.defaultengine.compactionpolicy.class",
      "org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy" },
    { "hbase.hstore.blockingStoreFiles", "2" }, { "hbase.hstore.blockingStoreFiles", "many" },
    { "hbase.store.file-tracker.impl", "FILE" }, { "hbase.store.file-tracker.impl", "nothing" },
    { "STORAGE_POLICY", "WARM" }, { "hbase.hstore.compaction.min", "1" }, { "ENCRYPTION", "AES" },
    { "MOB_THRESHOLD", "-1" }, { "NEW_VERSION_BEHAVIOR", "perhaps" }, { "note", "of no meaning" } };

  private static final String[][] ODD_TABLE = { { "MAX_FILESIZE", "1" }, { "MEMSTORE_FLUSHSIZE", "1" },
    { "REGION_REPLICATION", "0" }, { "REGION_REPLICATION", "-1" },
    { "SPLIT_POLICY", "nowhere.Policy" },
    { "SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy" },
    { "SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.KeyPrefixRegionSplitPolicy" }, { "SPLIT_ENABLED", "false" },
    { "MERGE_ENABLED", "false" }, { "COMPACTION_ENABLED", "false" }, { "NORMALIZATION_ENABLED", "true" },
    { "NORMALIZER_TARGET_REGION_COUNT", "3" }, { "PRIORITY", "7" }, { "DURABILITY", "SKIP_WAL" },
    { "hbase.store.file-tracker.impl", "FILE" }, { "hbase.store.file-tracker.impl", "MIGRATION" },
    { "hbase.store.file-tracker.impl", "nothing" }, { "coprocessor$1", "|nowhere.Observer|1001|" },
    { "coprocessor$1", "rubbish" }, { "FLUSH_POLICY", "nowhere.Policy" }, { "hbase.hstore.blockingStoreFiles", "0" },
    { "hbase.hstore.compaction.min", "few" }, { "REGION_MEMSTORE_REPLICATION", "false" }, { "READONLY", "perhaps" },
    { "IS_META", "true" }, { "note", "of no meaning" } };

  private AdminTables() {
  }

  /** {@code odd}: with something in it that may be refused. */
  static ColumnFamilyDescriptor family(Rng d, String name, boolean odd) {
    ColumnFamilyDescriptorBuilder f = ColumnFamilyDescriptorBuilder.newBuilder(b(name));
    if (d.chance(40)) {
      f.setMaxVersions(d.pick(1, 2, 3, 5));
    }
    if (d.chance(20)) {
      f.setTimeToLive(d.pick(86_400, 600_000, HConstants.FOREVER));
    }
    if (d.chance(15)) {
      f.setMinVersions(d.between(0, 2));
    }
    if (d.chance(15)) {
      f.setKeepDeletedCells(d.pick(KeepDeletedCells.TRUE, KeepDeletedCells.FALSE, KeepDeletedCells.TTL));
    }
    if (d.chance(25)) {
      f.setDataBlockEncoding(d.pick(DataBlockEncoding.values()));
    }
    if (d.chance(25)) {
      f.setCompressionType(d.pick(Compression.Algorithm.NONE, Compression.Algorithm.GZ, Compression.Algorithm.SNAPPY));
    }
    if (d.chance(25)) {
      f.setBloomFilterType(d.pick(BloomType.NONE, BloomType.ROW, BloomType.ROWCOL));
    }
    if (d.chance(20)) {
      f.setBlocksize(d.pick(2048, 16_384, 65_536));
    }
    if (d.chance(15)) {
      f.setScope(d.between(0, 1));
    }
    if (d.chance(15)) {
      f.setInMemory(true);
    }
    if (d.chance(10)) {
      f.setBlockCacheEnabled(false);
    }
    if (d.chance(8)) {
      f.setMobEnabled(true).setMobThreshold(d.between(0, 1000));
    }
    if (odd) {
      String[] pair = d.pick(ODD_FAMILY);
      f.setValue(pair[0], pair[1]);
    }
    return f.build();
  }

  static TableDescriptor table(Rng d, TableName name, boolean odd) {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    int families = odd && d.chance(10) ? 0 : d.between(1, 3);
    boolean oddFamily = odd && d.chance(50);
    for (int i = 0; i < families; i++) {
      table.setColumnFamily(family(d, "fgh".substring(i, i + 1), oddFamily && i == 0));
    }
    attribute(d, table);
    if (odd && !oddFamily) {
      odd(d, table);
    }
    return table.build();
  }

  /** An attribute that may be set, or none. */
  static void attribute(Rng d, TableDescriptorBuilder table) {
    switch (d.below(8)) {
      case 0 -> table.setDurability(d.pick(Durability.SYNC_WAL, Durability.ASYNC_WAL, Durability.USE_DEFAULT));
      case 1 -> table.setPriority(d.pick(5, 20));
      case 2 -> table.setMaxFileSize(d.pick(1L << 30, 10L << 30));
      case 3 -> table.setMemStoreFlushSize(d.pick(8L << 20, 64L << 20));
      case 4 -> table.setValue("note", "n" + d.below(4));
      default -> {
      }
    }
  }

  static void odd(Rng d, TableDescriptorBuilder table) {
    String[] pair = d.pick(ODD_TABLE);
    table.setValue(pair[0], pair[1]);
  }

  static void oddFamily(Rng d, ColumnFamilyDescriptorBuilder family) {
    String[] pair = d.pick(ODD_FAMILY);
    family.setValue(pair[0], pair[1]);
  }

  /** Where a table is cut, mostly sensible; null: nowhere. */
  static byte[][] splits(Rng d) {
    List<String> keys = new ArrayList<>();
    switch (d.below(10)) {
      case 0, 1, 2 -> {
        return null;
      }
      case 3 -> keys.add("r5");
      case 4 -> keys.addAll(List.of("r3", "r3"));
      case 5 -> keys.addAll(List.of("", "r3"));
      case 6 -> keys.addAll(List.of("r6", "r3"));
      default -> keys.addAll(List.of("r2", "r4", "r6"));
    }
    return keys.stream().map(k -> b(k)).toArray(byte[][]::new);
  }
}
