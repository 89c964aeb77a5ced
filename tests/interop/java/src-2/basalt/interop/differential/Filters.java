package basalt.interop.differential;

import static basalt.interop.Rows.b;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryComponentComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.ColumnValueFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.NullComparator;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueExcludeFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/** Random filters over a world's pools. */
final class Filters {
  private Filters() {
  }

  static Filter any(Rng d, World w) {
    return any(d, w, 2);
  }

  private static Filter any(Rng d, World w, int depth) {
    if (depth > 0 && d.chance(30)) {
      List<Filter> parts = new ArrayList<>();
      int count = d.between(1, 3);
      for (int i = 0; i < count; i++) {
        parts.add(any(d, w, depth - 1));
      }
      return new FilterList(d.pick(FilterList.Operator.MUST_PASS_ALL, FilterList.Operator.MUST_PASS_ONE), parts);
    }
    if (depth > 0 && d.chance(8)) {
      Filter inner = any(d, w, depth - 1);
      // HBase does not tell a range filter inside a skip filter about rows, and falls over it or not
      boolean skip = d.chance(50) && !inner.toString().contains("MultiRowRangeFilter");
      return skip ? new SkipFilter(inner) : new WhileMatchFilter(inner);
    }
    return leaf(d, w);
  }

  private static CompareOperator operator(Rng d) {
    return d.pick(CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL, CompareOperator.EQUAL, CompareOperator.EQUAL,
      CompareOperator.NOT_EQUAL, CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER);
  }

  private static ByteArrayComparable comparator(Rng d, byte[] sample) {
    return comparator(d, sample, -1);
  }

  /** {@code sample}: something that may be there; of its first {@code lead} bytes all have the same if it is a row. */
  private static ByteArrayComparable comparator(Rng d, byte[] sample, int lead) {
    String text = new String(sample, java.nio.charset.StandardCharsets.ISO_8859_1);
    String part = text.isEmpty() ? "" : text.substring(text.length() - 1);
    return switch (d.below(10)) {
      case 0 -> new BinaryPrefixComparator(text.isEmpty() ? sample : b(text.substring(0, Math.max(0, lead) + 1)));
      case 1 -> new SubstringComparator(part);
      case 2 -> new RegexStringComparator(d.pick("^v[0-2]$", "[ab]+", ".*1", "r[1-4]", "^$"));
      // only inside of what every row has: HBase reads on behind the end of what is too short
      case 3 -> lead < 0 ? new BinaryComparator(sample) : new BinaryComponentComparator(b(d.pick("r", "q", "s")), lead);
      default -> new BinaryComparator(sample);
    };
  }

  private static ByteArrayComparable valueComparator(Rng d, World w) {
    byte[] sample = w.value(d, w.qualifier(d));
    return switch (d.below(12)) {
      // no LongComparator: of a value shorter than a number HBase reads on behind its end in the memstore
      // (LongComparator#compareTo of a ByteBuffer), and falls over it in a file
      case 0 -> new BinaryComparator(Bytes.toBytes((long) d.between(-3, 9)));
      case 1 -> new NullComparator();
      case 2 -> new BitComparator(sample, d.pick(BitComparator.BitwiseOp.AND, BitComparator.BitwiseOp.OR,
        BitComparator.BitwiseOp.XOR));
      default -> comparator(d, sample);
    };
  }

  private static Filter leaf(Rng d, World w) {
    switch (d.below(25)) {
      case 0:
        return new PrefixFilter(d.pick(b(w.lead + "r"), b(w.lead + "r1"), w.row(d)));
      case 1:
        return new RowFilter(operator(d), comparator(d, w.row(d), w.lead.length()));
      case 2:
        return new FamilyFilter(operator(d), comparator(d, w.family(d)));
      case 3:
      case 4:
        return new QualifierFilter(operator(d), comparator(d, w.qualifier(d)));
      case 5:
      case 6: {
        ByteArrayComparable c = valueComparator(d, w);
        // the client refuses any other operator with these
        boolean equality = c instanceof NullComparator || c instanceof BitComparator;
        return new ValueFilter(equality ? d.pick(CompareOperator.EQUAL, CompareOperator.NOT_EQUAL) : operator(d), c);
      }
      case 7:
      case 8:
      case 9: {
        byte[] f = w.family(d);
        byte[] q = w.qualifier(d);
        ByteArrayComparable c = comparator(d, w.value(d, q));
        SingleColumnValueFilter s = d.chance(60) ? new SingleColumnValueFilter(f, q, operator(d), c)
          : new SingleColumnValueExcludeFilter(f, q, operator(d), c);
        s.setFilterIfMissing(d.chance(50));
        s.setLatestVersionOnly(d.chance(70));
        return s;
      }
      case 10: {
        byte[] q = w.qualifier(d);
        return new ColumnValueFilter(w.family(d), q, operator(d), comparator(d, w.value(d, q)));
      }
      case 11:
        return new ColumnPrefixFilter(w.qualifier(d));
      case 12:
        return new MultipleColumnPrefixFilter(new byte[][] { d.pick(b(""), b("a"), b("aa")), d.pick(b("b"), b("n")) });
      case 13:
        return new ColumnRangeFilter(d.chance(15) ? null : w.qualifier(d), d.chance(50),
          d.chance(15) ? null : w.qualifier(d), d.chance(50));
      case 14:
        return new ColumnCountGetFilter(d.between(1, 4));
      case 15:
        return d.chance(60) ? new ColumnPaginationFilter(d.between(1, 3), d.below(4))
          : new ColumnPaginationFilter(d.between(1, 3), w.qualifier(d));
      case 16:
        return new PageFilter(d.between(1, 4));
      case 17:
        return new FirstKeyOnlyFilter();
      case 18:
        return new KeyOnlyFilter(d.chance(50));
      case 19:
        return new InclusiveStopFilter(w.row(d));
      case 20: {
        TreeSet<Long> stamps = new TreeSet<>();
        int count = d.between(1, 4);
        for (int i = 0; i < count; i++) {
          stamps.add(w.timestamp(d));
        }
        return new TimestampsFilter(new ArrayList<>(stamps), d.chance(40));
      }
      case 21: {
        List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
        int count = d.between(1, 3);
        for (int i = 0; i < count; i++) {
          int from = d.below(7);
          int to = d.between(from, 8);
          ranges.add(new MultiRowRangeFilter.RowRange(b(w.lead + "r" + from), d.chance(60) || from == to, b(w.lead + "r" + to),
            d.chance(40) || from == to));
        }
        return new MultiRowRangeFilter(ranges);
      }
      case 22: {
        List<Pair<byte[], byte[]>> keys = new ArrayList<>();
        int count = d.between(1, 2);
        for (int i = 0; i < count; i++) {
          byte[] mask = new byte[w.lead.length() + 2];
          mask[mask.length - 2] = (byte) d.below(2);
          mask[mask.length - 1] = (byte) d.below(2);
          keys.add(new Pair<>(b(w.lead + d.pick("r", "q", "s") + d.below(9)), mask));
        }
        return new FuzzyRowFilter(keys);
      }
      case 23:
        return d.chance(40) ? new DependentColumnFilter(w.family(d), w.qualifier(d), d.chance(50))
          : new DependentColumnFilter(w.family(d), w.qualifier(d), d.chance(50), operator(d),
            comparator(d, b("v" + d.below(6))));
      default:
        return new PrefixFilter(b(w.lead + "r" + d.below(8)));
    }
  }
}
