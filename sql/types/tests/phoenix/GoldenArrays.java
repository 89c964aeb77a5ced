import java.math.BigDecimal;
import org.apache.phoenix.schema.types.*;

/** Writes the bytes that Phoenix has for arrays: type, elements, bytes. Class path: phoenix-core-client and what it needs. */
public class GoldenArrays {
  static void show(PDataType base, String name, Object... elements) {
    PArrayDataType of = (PArrayDataType) PDataType.fromTypeId(base.getSqlType() + PDataType.ARRAY_TYPE_BASE);
    byte[] bytes = of.toBytes(PArrayDataType.instantiatePhoenixArray(base, elements));
    StringBuilder line = new StringBuilder(name).append('\t');
    for (int i = 0; i < elements.length; i++) {
      String text = elements[i] == null ? "NULL" : elements[i].toString();
      if (text.length() > 1000) text = text.charAt(0) + "*" + text.length();
      line.append(i == 0 ? "" : ",").append(text);
    }
    line.append('\t');
    if (bytes.length > 5000) {
      byte[] end = java.util.Arrays.copyOfRange(bytes, bytes.length - 40, bytes.length);
      line.append(bytes.length).append('.');
      bytes = end;
    }
    for (byte b : bytes) line.append(String.format("%02x", b));
    System.out.println(line);
  }
  public static void main(String[] args) {
    show(PInteger.INSTANCE, "integer", 1, -2, 3);
    show(PLong.INSTANCE, "bigint", 5L);
    show(PUnsignedInt.INSTANCE, "unsigned_int", 0, 7);
    show(PSmallint.INSTANCE, "smallint", (short) -1);
    show(PVarchar.INSTANCE, "varchar", "a", "b", "c");
    show(PVarchar.INSTANCE, "varchar", "a", null, "ccc");
    show(PVarchar.INSTANCE, "varchar", null, null, "x");
    show(PVarchar.INSTANCE, "varchar", "x", null, null);
    show(PVarchar.INSTANCE, "varchar", null, "y", null, null, null, "z", null);
    show(PVarchar.INSTANCE, "varchar", "only");
    show(PDecimal.INSTANCE, "decimal", new BigDecimal("1.5"), new BigDecimal("-20"), new BigDecimal("0"));
    show(PDecimal.INSTANCE, "decimal", new BigDecimal("100"), null, new BigDecimal("0.01"));
    Object[] many = new Object[600];
    many[0] = "first"; many[599] = "last";
    show(PVarchar.INSTANCE, "varchar", many);
    Object[] few = new Object[256];
    few[255] = "q";
    show(PVarchar.INSTANCE, "varchar", few);
    show(PVarchar.INSTANCE, "varchar", "a".repeat(40000), "b");
    show(PVarchar.INSTANCE, "varchar", "a".repeat(70000), "b", null, "c");
  }
}
