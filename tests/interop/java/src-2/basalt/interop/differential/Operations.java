package basalt.interop.differential;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.util.Bytes;

/** Random requests over a world's pools. */
final class Operations {
  private final Rng d;
  private final World w;
  /** May the server choose a timestamp? Two choices in one request could fall into one millisecond, or not. */
  private boolean stamps = true;

  Operations(Rng d, World w) {
    this.d = d;
    this.w = w;
  }

  private boolean serverStamps(int percent) {
    return stamps && d.chance(percent);
  }

  private void durability(Mutation m) {
    if (d.chance(20)) {
      m.setDurability(d.pick(Durability.SKIP_WAL, Durability.ASYNC_WAL, Durability.SYNC_WAL, Durability.FSYNC_WAL));
    }
  }

  Put put(byte[] row) {
    boolean now = serverStamps(12);
    Put put = now || d.chance(70) ? new Put(row) : new Put(row, w.timestamp(d));
    boolean ownStamps = !now && put.getTimestamp() == Long.MAX_VALUE;
    int cells = d.chance(90) ? d.between(1, 4) : d.between(5, 20);
    for (int i = 0; i < cells; i++) {
      byte[] q = w.qualifier(d);
      if (ownStamps || !now && d.chance(20)) {
        put.addColumn(w.perhapsFamily(d), q, w.timestamp(d), w.value(d, q));
      } else {
        put.addColumn(w.perhapsFamily(d), q, w.value(d, q));
      }
    }
    if (d.chance(4)) {
      // either long over or not yet, at any time this runs
      long ttl = d.pick(1L, 3_000_000_000_000L);
      put.setTTL(now || w.compactsSmall ? 3_000_000_000_000L : ttl);
    }
    durability(put);
    return put;
  }

  Delete delete(byte[] row) {
    boolean now = serverStamps(15);
    if (d.chance(15)) {
      Delete whole = now ? new Delete(row) : new Delete(row, w.timestamp(d));
      durability(whole);
      return whole;
    }
    Delete delete = new Delete(row);
    int parts = d.between(1, 3);
    for (int i = 0; i < parts; i++) {
      byte[] f = w.perhapsFamily(d);
      byte[] q = w.qualifier(d);
      switch (d.below(8)) {
        case 0 -> {
          if (now) {
            delete.addFamily(f);
          } else {
            delete.addFamily(f, w.timestamp(d));
          }
        }
        case 1 -> delete.addFamilyVersion(f, w.timestamp(d));
        case 2, 3, 4 -> {
          if (now) {
            delete.addColumns(f, q);
          } else {
            delete.addColumns(f, q, w.timestamp(d));
          }
        }
        default -> {
          // without a timestamp: the newest version, whichever it is
          if (d.chance(40)) {
            delete.addColumn(f, q);
          } else {
            delete.addColumn(f, q, w.timestamp(d));
          }
        }
      }
    }
    durability(delete);
    return delete;
  }

  Increment increment(byte[] row) throws IOException {
    Increment increment = new Increment(row);
    int columns = d.between(1, 3);
    for (int i = 0; i < columns; i++) {
      increment.addColumn(w.perhapsFamily(d), w.counter(d), d.pick(0L, 1L, 1L, (long) d.between(-3, 9), Long.MAX_VALUE));
    }
    if (d.chance(15) && !w.newVersions) {
      long from = w.timestamp(d);
      increment.setTimeRange(from, from + d.pick(1L, 5L, 4_000_000_000_000L));
    }
    increment.setReturnResults(d.chance(85));
    durability(increment);
    return increment;
  }

  Append append(byte[] row) throws IOException {
    Append append = new Append(row);
    int columns = d.between(1, 3);
    for (int i = 0; i < columns; i++) {
      byte[] q = w.qualifier(d);
      append.addColumn(w.perhapsFamily(d), q, w.value(d, d.chance(50) ? new byte[0] : q));
    }
    if (d.chance(15) && !w.newVersions) {
      long from = w.timestamp(d);
      append.setTimeRange(from, from + d.pick(1L, 5L, 4_000_000_000_000L));
    }
    append.setReturnResults(d.chance(85));
    durability(append);
    return append;
  }

  RowMutations mutations(byte[] row) throws IOException {
    return mutations(row, false);
  }

  /**
   * {@code checked}: after a condition, where HBase stamps puts when it has looked and counters when it writes
   * (HRegion#checkAndMutateInternal): one or the other, since now and then the clock steps between.
   */
  private RowMutations mutations(byte[] row, boolean checked) throws IOException {
    List<Mutation> all = new ArrayList<>();
    int count = d.between(1, 4);
    int least = checked && d.chance(40) ? 5 : 0;
    for (int i = 0; i < count; i++) {
      int kind = d.between(least, checked && least == 0 ? 7 : 9);
      all.add(kind < 5 ? put(row) : kind < 8 ? delete(row) : kind < 9 ? increment(row) : append(row));
    }
    return RowMutations.of(all);
  }

  CheckAndMutate check() throws IOException {
    byte[] row = w.row(d);
    byte[] f = w.perhapsFamily(d);
    byte[] q = w.qualifier(d);
    CheckAndMutate.Builder builder = CheckAndMutate.newBuilder(row);
    switch (d.below(6)) {
      case 0 -> builder.ifNotExists(f, q);
      case 1 -> builder.ifMatches(Filters.any(d, w));
      case 2 -> builder.ifEquals(f, q, w.value(d, q));
      default -> builder.ifMatches(f, q, d.pick(CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL,
        CompareOperator.EQUAL, CompareOperator.NOT_EQUAL, CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER), d.chance(10) ? null : w.value(d, q));
    }
    if (d.chance(15) && !w.newVersions) {
      long from = w.timestamp(d);
      builder.timeRange(org.apache.hadoop.hbase.io.TimeRange.between(from, from + d.between(1, 8)));
    }
    return switch (d.below(6)) {
      case 0, 1 -> builder.build(put(row));
      case 2 -> builder.build(delete(row));
      case 3 -> builder.build(increment(row));
      case 4 -> builder.build(append(row));
      default -> builder.build(mutations(row, true));
    };
  }

  Get get() throws IOException {
    Get get = new Get(w.row(d));
    columns((f, q) -> {
      if (q == null) {
        get.addFamily(f);
      } else {
        get.addColumn(f, q);
      }
    });
    if (d.chance(50)) {
      get.readVersions(d.pick(1, 2, 3, Integer.MAX_VALUE));
    }
    long from = w.timestamp(d);
    switch (w.newVersions ? 7 : d.below(8)) {
      case 0 -> get.setTimeRange(from, from + d.between(1, 8));
      case 1 -> get.setTimestamp(from);
      case 2 -> {
        byte[] f = w.family(d);
        get.setColumnFamilyTimeRange(f, from, from + d.between(1, 8));
      }
      default -> {
      }
    }
    if (d.chance(35)) {
      Filter filter;
      do {
        filter = Filters.any(d, w);
      } while (staysInColumn(filter, get.getFamilyMap()));
      get.setFilter(filter);
    }
    if (d.chance(10)) {
      get.setMaxResultsPerColumnFamily(d.between(1, 4));
    }
    if (d.chance(10)) {
      get.setRowOffsetPerColumnFamily(d.between(0, 3));
    }
    if (d.chance(10)) {
      get.setCheckExistenceOnly(true);
    }
    get.setCacheBlocks(d.chance(80));
    return get;
  }

  /**
   * {@code plain}: it sees the same before and after a flush, which drops versions too many: they can be seen only where
   * a time range, a filter or the raw view passes over newer ones, and where a named column has more than the minimum that
   * is kept of what expires (ExplicitColumnTracker#checkVersions still returns the first of them).
   */
  Scan scan(boolean plain) throws IOException {
    Scan scan = new Scan();
    columns((f, q) -> {
      if (q == null || plain && w.expires) {
        scan.addFamily(f);
      } else {
        scan.addColumn(f, q);
      }
    });
    boolean reversed = d.chance(25);
    scan.setReversed(reversed);
    byte[] a = w.row(d);
    byte[] z = w.row(d);
    boolean swap = Bytes.compareTo(a, z) > 0 != reversed && d.chance(95);
    if (d.chance(50)) {
      scan.withStartRow(swap ? z : a, d.chance(70));
    } else if (!w.alone) {
      scan.withStartRow(reversed ? w.end() : w.first(), !reversed);
    }
    if (d.chance(50)) {
      scan.withStopRow(swap ? a : z, d.chance(40));
    } else if (!w.alone) {
      scan.withStopRow(reversed ? w.first() : w.end(), reversed);
    }
    if (d.chance(60)) {
      scan.readVersions(d.pick(1, 2, 3, Integer.MAX_VALUE));
    }
    long from = w.timestamp(d);
    switch (plain || w.newVersions ? 7 : d.below(8)) {
      case 0 -> scan.setTimeRange(from, from + d.between(1, 8));
      case 1 -> scan.setTimestamp(from);
      case 2 -> scan.setColumnFamilyTimeRange(w.family(d), from, from + d.between(1, 8));
      default -> {
      }
    }
    if (!plain && d.chance(15)) {
      scan.setRaw(w.raw(false));
    }
    if (!plain && d.chance(45)) {
      Filter filter;
      do {
        filter = Filters.any(d, w);
        // HBase seeks for ever where a fuzzy filter's hint lies behind a scan that goes backwards
        // nor, of a raw row, one that leaves a column: behind a family's marker HBase goes on to the next marker, or, where
        // it skips to the next column within a block, passes over it (StoreScanner#trySkipToNextColumn)
      } while (reversed && filter.toString().contains("FuzzyRowFilter")
        || scan.isRaw() && countsColumns(filter)
        || staysInColumn(filter, scan.getFamilyMap()));
      scan.setFilter(filter);
    }
    if (d.chance(30)) {
      scan.setCaching(d.between(1, 5));
    }
    if (d.chance(20) && (scan.getFilter() == null || !scan.getFilter().hasFilterRow())) {
      scan.setBatch(d.between(1, 5));
    }
    if (d.chance(20)) {
      scan.setLimit(d.between(1, 6));
    }
    if (d.chance(20)) {
      scan.setMaxResultSize(d.pick(1, 50, 200, 1000));
    }
    if (d.chance(12)) {
      scan.setAllowPartialResults(true);
    }
    if ((scan.getBatch() > 0 || scan.getAllowPartialResults()) && scan.getMaxResultSize() > 0) {
      // The client's BatchScanResultCache#addAndGet counts a row twice whose last piece is shorter than the batch, once its
      // next row comes in the same reply (and AllowPartialScanResultCache misses rows): how many rows make the limit then
      // depends on where replies end, and that on the heap size of HBase's cells
      scan.setLimit(-1);
    }
    if (scan.getMaxResultSize() > 0 && scan.getFilter() != null && endsScans(scan.getFilter())) {
      // a filter that has had enough ends the region in a reply with rows, and all of the scan in an empty one
      scan.setMaxResultSize(-1);
    }
    if (d.chance(12)) {
      scan.setMaxResultsPerColumnFamily(d.between(1, 4));
    }
    if (d.chance(10)) {
      scan.setRowOffsetPerColumnFamily(d.between(0, 3));
    }
    if (reversed) {
      // HBase refuses what would be read late; Basalt answers
      scan.setLoadColumnFamiliesOnDemand(false);
    } else if (d.chance(30)) {
      scan.setLoadColumnFamiliesOnDemand(d.chance(50));
    }
    if (d.chance(10)) {
      scan.setReadType(d.pick(Scan.ReadType.PREAD, Scan.ReadType.STREAM));
    }
    if (d.chance(5)) {
      scan.setIsolationLevel(IsolationLevel.READ_UNCOMMITTED);
    }
    if (d.chance(5)) {
      scan.setConsistency(Consistency.STRONG).setAsyncPrefetch(d.chance(50));
    }
    scan.setCacheBlocks(d.chance(80));
    return scan;
  }

  /**
   * Under NEW_VERSION_BEHAVIOR HBase takes the named column that it is in for the next one (NewVersionBehaviorTracker
   * #getColumnHint): where a filter is done with a column after a cell, its older versions come too if the cell lies in
   * the memstore or in a file's last block, but not in other blocks (StoreScanner#trySkipToNextColumn).
   */
  private boolean staysInColumn(Filter filter, Map<byte[], ? extends Collection<byte[]>> columns) {
    return w.newVersions && columns.values().stream().anyMatch(c -> c != null) && countsColumns(filter);
  }

  private static boolean endsScans(Filter filter) {
    String all = filter.toString();
    return all.contains("PageFilter") || all.contains("WhileMatchFilter") || all.contains("InclusiveStopFilter");
  }

  private static boolean countsColumns(Filter filter) {
    String all = filter.toString();
    return all.contains("ColumnCountGetFilter") || all.contains("ColumnPaginationFilter");
  }

  private interface ColumnSink {
    void add(byte[] family, byte[] qualifier);
  }

  private void columns(ColumnSink sink) {
    switch (d.below(4)) {
      case 0 -> sink.add(w.perhapsFamily(d), null);
      case 1 -> {
        int count = d.between(1, 4);
        for (int i = 0; i < count; i++) {
          sink.add(w.perhapsFamily(d), d.chance(15) ? null : w.qualifier(d));
        }
      }
      default -> {
      }
    }
  }

  /** At most one action on which the server's clock has a say. */
  List<Row> batch() throws IOException {
    List<Row> out = new ArrayList<>();
    int count = d.between(1, 8);
    boolean stamped = false;
    for (int i = 0; i < count; i++) {
      stamps = !stamped && d.chance(20);
      int kind = d.below(stamps ? 14 : 9);
      if (kind < 4) {
        out.add(put(w.row(d)));
      } else if (kind < 7) {
        out.add(delete(w.row(d)));
      } else if (kind < 9) {
        out.add(get());
      } else if (kind < 10) {
        out.add(increment(w.row(d)));
      } else if (kind < 11) {
        out.add(append(w.row(d)));
      } else if (kind < 12) {
        out.add(mutations(w.row(d)));
      } else {
        out.add(check());
      }
      stamped |= stamps;
    }
    stamps = true;
    return out;
  }

  List<Put> puts() {
    List<Put> out = new ArrayList<>();
    stamps = false;
    int count = d.between(2, 8);
    for (int i = 0; i < count; i++) {
      out.add(put(w.row(d)));
    }
    stamps = true;
    return out;
  }

  List<Get> gets() throws IOException {
    return new ArrayList<>(Arrays.asList(get(), get(), get()));
  }
}
