// Writes the bytes of Phoenix's own PDataType, one value a line: type TAB value TAB hex ascending TAB hex descending.
// Run once with phoenix-core-client 5.2.1 on the class path; its output is ../golden.tsv.
import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Time;
import java.sql.Timestamp;
import java.util.Random;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.phoenix.schema.SortOrder;
import org.apache.phoenix.schema.types.*;

public class Golden {
  static void line(String name, PDataType<?> type, Object value, String text, Integer width) {
    byte[] ascending = value == null ? new byte[0] : type.toBytes(value);
    if (value != null && width != null && ascending.length < width) {
      byte[] padded = java.util.Arrays.copyOf(ascending, width);
      if (type instanceof PChar) java.util.Arrays.fill(padded, ascending.length, width, (byte) ' ');
      ascending = padded;
    }
    byte[] descending = SortOrder.invert(ascending, 0, new byte[ascending.length], 0, ascending.length);
    if (value != null && width == null) {
      byte[] own = type.toBytes(value, SortOrder.DESC);
      // The other of two bytes, not all bits turned round.
      if (type instanceof PBoolean) descending = own;
      if (!java.util.Arrays.equals(own, descending)) throw new AssertionError(name + " " + text);
    }
    System.out.println(name + "\t" + text + "\t" + Bytes.toHex(ascending) + "\t" + Bytes.toHex(descending));
  }

  public static void main(String[] args) {
    Random random = new Random(24);
    long[] longs = {0, 1, -1, 2, 63, 127, -128, 255, 32767, -32768, 65535, 2147483647L, -2147483648L, 4294967295L,
        Long.MAX_VALUE, Long.MIN_VALUE, 1609459200000L};
    for (long v : longs) {
      if (v == (byte) v) line("tinyint", PTinyint.INSTANCE, (byte) v, "" + v, null);
      if (v == (short) v) line("smallint", PSmallint.INSTANCE, (short) v, "" + v, null);
      if (v == (int) v) line("integer", PInteger.INSTANCE, (int) v, "" + v, null);
      line("bigint", PLong.INSTANCE, v, "" + v, null);
      if (v >= 0) {
        if (v == (byte) v) line("unsigned_tinyint", PUnsignedTinyint.INSTANCE, (byte) v, "" + v, null);
        if (v == (short) v) line("unsigned_smallint", PUnsignedSmallint.INSTANCE, (short) v, "" + v, null);
        if (v == (int) v) line("unsigned_int", PUnsignedInt.INSTANCE, (int) v, "" + v, null);
        line("unsigned_long", PUnsignedLong.INSTANCE, v, "" + v, null);
      }
    }
    double[] doubles = {0.0, -0.0, 1, -1, 1.5, -1.5, 3.14159, 1e30, -1e30, 1e-30, -1e-30, Float.MAX_VALUE,
        Float.MIN_VALUE, Double.MAX_VALUE, Double.MIN_VALUE, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.NaN};
    for (double v : doubles) {
      line("double", PDouble.INSTANCE, v, Long.toHexString(Double.doubleToLongBits(v)), null);
      float f = (float) v;
      line("float", PFloat.INSTANCE, f, Integer.toHexString(Float.floatToIntBits(f)), null);
      if (v >= 0 && !Double.isNaN(v) && Double.doubleToLongBits(v) >= 0) {
        line("unsigned_double", PUnsignedDouble.INSTANCE, v, Long.toHexString(Double.doubleToLongBits(v)), null);
        line("unsigned_float", PUnsignedFloat.INSTANCE, f, Integer.toHexString(Float.floatToIntBits(f)), null);
      }
    }
    String[] decimals = {"0", "0.00", "1", "-1", "10", "100", "1000", "-10", "-100", "0.1", "0.01", "0.001", "-0.001",
        "123.456", "-123.456", "99", "-99", "99.99", "1E+5", "1E+20", "12345678901234567890123456789012345678",
        "-12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678",
        "1234567890123456789.0123456789012345678", "-1234567890123456789.012345678901234567", "5E-20", "9.9E+10",
        "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"};
    for (String v : decimals) line("decimal", PDecimal.INSTANCE, new BigDecimal(v), new BigDecimal(v).toPlainString(), null);
    for (int i = 0; i < 200; i++) {
      BigDecimal v = new BigDecimal(new java.math.BigInteger(1 + random.nextInt(120), random), random.nextInt(40) - 5);
      if (random.nextBoolean()) v = v.negate();
      if (v.precision() <= 38) line("decimal", PDecimal.INSTANCE, v, v.toPlainString(), null);
    }
    for (String v : new String[] {"a", "ab", "zz", "h\u00e4user", "\u65e5\u672c", "with space"})
      line("varchar", PVarchar.INSTANCE, v, v, null);
    for (String v : new String[] {"a", "ab", "abcd", "a b"}) line("char(4)", PChar.INSTANCE, v, v, 4);
    for (byte[] v : new byte[][] {{0}, {1, 2}, {-1, 0, 127}}) {
      line("varbinary", PVarbinary.INSTANCE, v, Bytes.toHex(v), null);
      line("binary(3)", PBinary.INSTANCE, v, Bytes.toHex(v), 3);
    }
    line("boolean", PBoolean.INSTANCE, true, "true", null);
    line("boolean", PBoolean.INSTANCE, false, "false", null);
    for (long v : new long[] {0, 1, -1, 1609459200000L, -62135596800000L, 253402300799999L}) {
      line("date", PDate.INSTANCE, new Date(v), "" + v, null);
      line("time", PTime.INSTANCE, new Time(v), "" + v, null);
      Timestamp t = new Timestamp(v);
      t.setNanos(t.getNanos() + 123456);
      line("timestamp", PTimestamp.INSTANCE, t, v + " 123456", null);
      if (v >= 0) {
        line("unsigned_date", PUnsignedDate.INSTANCE, new Date(v), "" + v, null);
        line("unsigned_time", PUnsignedTime.INSTANCE, new Time(v), "" + v, null);
        line("unsigned_timestamp", PUnsignedTimestamp.INSTANCE, t, v + " 123456", null);
      }
    }
    for (String name : new String[] {"integer", "decimal", "varchar", "timestamp"})
      line(name, PVarchar.INSTANCE, null, "NULL", null);
  }
}
