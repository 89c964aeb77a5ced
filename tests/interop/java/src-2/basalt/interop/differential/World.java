package basalt.interop.differential;

import static basalt.interop.Rows.b;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * What one program plays with: a table's settings, and small pools of rows, columns, timestamps and values.
 *
 * <p>{@link #SLOTS} neighbouring seeds share their settings, so that they can share a table: each has rows with a lead
 * of its own, in regions of its own. Every eighth such group is played on tables of their own, without a lead; only
 * there a scan has no start or no end.
 *
 * <p>Left out is what HBase itself falls over. Where a file has several blocks, a read that leaves a column passes over
 * the family's delete markers behind a put of the empty qualifier, or not, as the blocks lie; and a read of columns by
 * the order of arrival goes round for ever where a Bloom filter of columns says that a file has none.
 */
final class World {
  /** Far after any clock: such cells never expire, those of {@link #timestamp} near zero always do. */
  private static final long FUTURE = 3_000_000_000_000L;
  /** Programs to one table. */
  static final int SLOTS = 20;
  private static final String[] QUALIFIERS = { "", "a", "aa", "ab", "b", "c", "n", "m" };

  /** Of the settings. */
  private final long seed;
  /** Of this program's splits. */
  private final long own;
  private final int slot;
  /** Has a table to itself. */
  final boolean alone;
  /** What each of the program's rows begins with. */
  final String lead;
  private final int families;
  /** Cells expire. */
  final boolean expires;
  /**
   * Families follow NEW_VERSION_BEHAVIOR. Then no time range is asked for: HBase passes over files and memstores that hold
   * nothing in the range, so that newer versions there push older ones out or not, as flushes came; in Basalt always.
   */
  final boolean newVersions;
  /**
   * A qualifier may be empty. Never under NEW_VERSION_BEHAVIOR: HBase's family markers miss such columns. Nor where HBase
   * may leave such a column at a delete marker: where cells expire, where deleted cells are kept, in a raw scan of few
   * versions. The key that it seeks then (ScanQueryMatcher#getKeyForNextColumn) has the marker's timestamp, the next type
   * and no sequence id. If a file holds just that, a put under a delete of one timestamp, StoreFileScanner#reseek stays
   * there, but by its sequence id it comes before the key, so that KeyValueHeap#generalizedSeek seeks again, for ever.
   */
  final boolean empties;
  /**
   * Three files are enough to compact; if not, every compaction is a major one. Not where cells expire: of what has all
   * expired HBase flushes an empty file, which counts.
   */
  final boolean compactsSmall;
  /**
   * A family keeps deleted cells: they count as versions when files are written and not when they are read, so that what a
   * scan finds behind a flush is less.
   */
  final boolean keepsDeleted;

  World(long program) {
    long group = Math.floorDiv(program, SLOTS);
    slot = Math.floorMod(program, SLOTS);
    alone = Math.floorMod(group, 8) == 7;
    lead = alone ? "" : lead(slot);
    seed = new Rng(group ^ 0x6a0b5L).seed();
    own = new Rng(program ^ 0x0e3L).seed();
    Rng d = new Rng(seed);
    families = d.between(1, 3);
    expires = d.chance(25);
    newVersions = d.chance(20);
    boolean mayCompactSmall = d.chance(60);
    compactsSmall = mayCompactSmall && !expires;
    empties = !newVersions && !expires && d.chance(50);
    keepsDeleted = Arrays.stream(descriptor(TableName.valueOf("t")).getColumnFamilies())
      .anyMatch(f -> f.getKeepDeletedCells() != KeepDeletedCells.FALSE);
  }

  private static String lead(int slot) {
    return "k" + (char) ('a' + slot);
  }

  TableDescriptor descriptor(TableName name) {
    Rng d = new Rng(seed ^ 0x7ab1e);
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    // blocks smaller than anybody would want, so that even these few cells fill several
    table.setValue("hbase.table.sanity.checks", "false");
    for (int i = 0; i < families; i++) {
      ColumnFamilyDescriptorBuilder f = ColumnFamilyDescriptorBuilder.newBuilder(b("fgh".substring(i, i + 1)));
      f.setMaxVersions(d.pick(1, 1, 2, 3, 5, Integer.MAX_VALUE));
      if (expires) {
        f.setTimeToLive(d.pick(3600, 86_400, Integer.MAX_VALUE));
        if (d.chance(50)) {
          f.setMinVersions(d.between(1, 3));
          // no more versions kept for their number than there may be at all
          f.setMaxVersions(d.pick(3, 4, Integer.MAX_VALUE));
        }
      }
      boolean keeps = d.chance(35);
      f.setKeepDeletedCells(keeps && !empties ? KeepDeletedCells.TRUE : KeepDeletedCells.FALSE);
      if (keeps && expires && d.chance(40)) {
        f.setKeepDeletedCells(KeepDeletedCells.TTL);
        f.setMinVersions(Math.max(1, d.between(1, 3)));
        f.setMaxVersions(d.pick(3, 4));
      }
      f.setNewVersionBehavior(newVersions && d.chance(70));
      if (f.build().isNewVersionBehavior() && f.build().getTimeToLive() != Integer.MAX_VALUE) {
        // with more, HBase returns the last of them whatever versions were asked for, if it lies in the memstore or in a
        // file's last block: there it goes through all versions of a named column (see Operations#staysInColumn)
        f.setMinVersions(Math.min(f.build().getMinVersions(), 1));
      }
      f.setDataBlockEncoding(d.pick(DataBlockEncoding.NONE, DataBlockEncoding.NONE, DataBlockEncoding.PREFIX,
        DataBlockEncoding.DIFF, DataBlockEncoding.FAST_DIFF, DataBlockEncoding.ROW_INDEX_V1));
      f.setCompressionType(d.pick(Compression.Algorithm.NONE, Compression.Algorithm.NONE, Compression.Algorithm.GZ,
        Compression.Algorithm.SNAPPY));
      f.setBloomFilterType(d.pick(BloomType.NONE, BloomType.ROW, BloomType.ROW, BloomType.ROWCOL,
        BloomType.ROWPREFIX_FIXED_LENGTH));
      if (f.build().getBloomFilterType() == BloomType.ROWPREFIX_FIXED_LENGTH) {
        f.setConfiguration("RowPrefixBloomFilter.prefix_length", alone ? "2" : "4");
      }
      if (f.build().isNewVersionBehavior() && f.build().getBloomFilterType() == BloomType.ROWCOL) {
        f.setBloomFilterType(BloomType.ROW);
      }
      int blockSize = d.pick(64, 256, 1024, 65_536);
      f.setBlocksize(empties ? 65_536 : blockSize);
      if (!compactsSmall) {
        f.setConfiguration("hbase.hstore.compaction.min", "100");
      }
      table.setColumnFamily(f.build());
    }
    return table.build();
  }

  /** A scan may be a raw one. {@code whole}: it wants all versions at all times. */
  boolean raw(boolean whole) {
    return !empties || whole;
  }

  /** Where this program's rows are cut into regions from the beginning; null: nowhere. */
  byte[][] splits() {
    List<String> keys = new ArrayList<>();
    if (!alone) {
      keys.add(lead);
      keys.add(lead(slot + 1));
    }
    switch (new Rng(own).below(4)) {
      case 0 -> keys.add(lead + "r3");
      case 1 -> keys.addAll(List.of(lead + "r2", lead + "r5"));
      default -> {
      }
    }
    return keys.isEmpty() ? null : keys.stream().map(Bytes::toBytes).toArray(byte[][]::new);
  }

  /** First row that may be this program's. */
  byte[] first() {
    return b(lead);
  }

  /** First row after all that may be; empty: there is no end. */
  byte[] end() {
    return alone ? new byte[0] : b(lead(slot + 1));
  }

  byte[] family(Rng d) {
    return b("fgh".substring(0, families).substring(d.below(families)).substring(0, 1));
  }

  /** Now and then one that is not there. */
  byte[] perhapsFamily(Rng d) {
    return d.below(150) == 0 ? b("x") : family(d);
  }

  byte[] row(Rng d) {
    return b(lead + (d.chance(92) ? "r" + d.below(8) : d.pick("r", "r11", "r3\0", "q", "s9", "r7z")));
  }

  byte[] qualifier(Rng d) {
    int at = d.below(QUALIFIERS.length);
    return b(at == 0 && !empties ? "d" : QUALIFIERS[at]);
  }

  /** The columns that hold numbers, mostly. */
  byte[] counter(Rng d) {
    return d.chance(85) ? b(d.pick("n", "m")) : qualifier(d);
  }

  long timestamp(Rng d) {
    long near = d.between(1, 12);
    return d.chance(expires ? 60 : 4) ? FUTURE + near : near;
  }

  byte[] value(Rng d, byte[] qualifier) {
    String q = Bytes.toString(qualifier);
    int counters = q.equals("n") || q.equals("m") ? 85 : 8;
    if (d.chance(counters)) {
      return Bytes.toBytes((long) d.between(-3, 9));
    }
    return switch (d.below(12)) {
      case 0 -> new byte[0];
      case 1 -> b("v" + "x".repeat(d.between(20, 400)));
      case 2 -> new byte[] { (byte) d.below(256) };
      default -> b("v" + d.below(6));
    };
  }
}
