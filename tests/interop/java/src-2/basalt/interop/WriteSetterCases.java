package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellBuilderFactory;
import org.apache.hadoop.hbase.CellBuilderType;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.visibility.CellVisibility;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Every setter of Put, Delete, Append, Increment, CheckAndMutate and RowMutations, one case each, named exactly as the
 * inventory has it: {@code Class.method(parameters)}. The coverage page counts these names.
 */
@SuppressWarnings("deprecation")
public final class WriteSetterCases {
  /** Makes one write of the row. */
  private interface Making<T> {
    T of(byte[] row) throws Exception;
  }

  private static final byte[] F = b("f");
  private static final byte[] Q = b("q");

  private final Check check;
  private final Table table;
  private int rows;

  private WriteSetterCases(Check check, Table table) {
    this.check = check;
    this.table = table;
  }

  public static void run(Check check, Server server) throws Exception {
    TableName t = server.table("writeset", "f*5", "g*5");
    try (Table table = server.connection.getTable(t)) {
      WriteSetterCases cases = new WriteSetterCases(check, table);
      cases.puts();
      cases.deletes();
      cases.appends();
      cases.increments();
      cases.checks();
      cases.rowMutations();
    }
  }

  private byte[] newRow() {
    return b("row" + rows++);
  }

  private String all(byte[] row) throws Exception {
    return Rows.stamped(table.get(new Get(row).readAllVersions()));
  }

  /** Without the timestamps, which the server gave. */
  private String cells(byte[] row) throws Exception {
    return Rows.cells(table.get(new Get(row)));
  }

  private static Permission read() {
    return Permission.newBuilder().withActions(Permission.Action.READ).build();
  }

  private static Cell cell(byte[] row, long timestamp, Cell.Type type, byte[] value) {
    return CellBuilderFactory.create(CellBuilderType.DEEP_COPY).setRow(row).setFamily(F).setQualifier(Q)
      .setTimestamp(timestamp).setType(type).setValue(value).build();
  }

  private static NavigableMap<byte[], List<Cell>> map(Cell cell) {
    NavigableMap<byte[], List<Cell>> map = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    map.put(F, List.of(cell));
    return map;
  }

  /** The put is in the row as {@code expected}. */
  private void put(String setter, String expected, Making<Put> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(making.of(row));
      same("row", expected, all(row));
    });
  }

  private static Put at7(byte[] row) {
    return new Put(row).addColumn(F, Q, 7, b("v"));
  }

  private void puts() {
    String v = "f:q@7=v";
    put("Put.add(Cell)", v, r -> new Put(r).add(cell(r, 7, Cell.Type.Put, b("v"))));
    put("Put.addColumn(byte[], ByteBuffer, long, ByteBuffer)", v,
      r -> new Put(r).addColumn(F, ByteBuffer.wrap(Q), 7, ByteBuffer.wrap(b("v"))));
    put("Put.addColumn(byte[], byte[], byte[])", v, r -> new Put(r, 7).addColumn(F, Q, b("v")));
    put("Put.addColumn(byte[], byte[], long, byte[])", v, r -> new Put(r).addColumn(F, Q, 7, b("v")));
    put("Put.addImmutable(byte[], ByteBuffer, long, ByteBuffer)", v,
      r -> new Put(r).addImmutable(F, ByteBuffer.wrap(Q), 7, ByteBuffer.wrap(b("v"))));
    put("Put.addImmutable(byte[], byte[], byte[])", v, r -> new Put(r, 7).addImmutable(F, Q, b("v")));
    put("Put.addImmutable(byte[], byte[], long, byte[])", v, r -> new Put(r).addImmutable(F, Q, 7, b("v")));
    put("Put.setACL(Map<String, Permission>)", v, r -> at7(r).setACL(Map.of("u", read())));
    put("Put.setACL(String, Permission)", v, r -> at7(r).setACL("u", read()));
    put("Put.setAttribute(String, byte[])", v, r -> at7(r).setAttribute("mine", b("1")));
    put("Put.setCellVisibility(CellVisibility)", v, r -> at7(r).setCellVisibility(new CellVisibility("secret")));
    put("Put.setClusterIds(List<UUID>)", v, r -> at7(r).setClusterIds(List.of(new UUID(1, 2))));
    for (Durability durability : Durability.values()) {
      String name = "Put.setDurability(Durability)";
      put(durability == Durability.USE_DEFAULT ? name : name + " " + durability, v,
        r -> at7(r).setDurability(durability));
    }
    put("Put.setFamilyCellMap(NavigableMap<byte[], List<Cell>>)", v,
      r -> new Put(r).setFamilyCellMap(map(cell(r, 7, Cell.Type.Put, b("v")))));
    put("Put.setId(String)", v, r -> at7(r).setId("me"));
    put("Put.setPriority(int)", v, r -> at7(r).setPriority(10));
    check.run("Put.setTTL(long)", () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, b("short")).setTTL(700));
      table.put(new Put(row).addColumn(F, b("l"), b("long")).setTTL(700_000));
      same("at first", "f:l=long f:q=short", cells(row));
      Maintenance.await("the short one is gone", () -> cells(row).equals("f:l=long"));
    });
    put("Put.setTimestamp(long)", v, r -> new Put(r).setTimestamp(7).addColumn(F, Q, b("v")));
  }

  /** The delete leaves {@code expected} of f:q at 10 and 20 and g:q at 10. */
  private void delete(String setter, String expected, Making<Delete> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, 10, b("1")).addColumn(F, Q, 20, b("2")).addColumn(b("g"), Q, 10, b("3")));
      table.delete(making.of(row));
      same("row", expected, all(row));
    });
  }

  private static Delete newest(byte[] row) {
    return new Delete(row).addColumn(F, Q, 20);
  }

  private void deletes() {
    String without20 = "f:q@10=1 g:q@10=3";
    delete("Delete.add(Cell)", without20, r -> new Delete(r).add(cell(r, 20, Cell.Type.Delete, new byte[0])));
    delete("Delete.addColumn(byte[], byte[])", without20, r -> new Delete(r).addColumn(F, Q));
    delete("Delete.addColumn(byte[], byte[], long)", "f:q@20=2 g:q@10=3", r -> new Delete(r).addColumn(F, Q, 10));
    delete("Delete.addColumns(byte[], byte[])", "g:q@10=3", r -> new Delete(r).addColumns(F, Q));
    delete("Delete.addColumns(byte[], byte[], long)", "f:q@20=2 g:q@10=3", r -> new Delete(r).addColumns(F, Q, 15));
    delete("Delete.addDeleteMarker(Cell)", without20,
      r -> new Delete(r).addDeleteMarker(cell(r, 20, Cell.Type.Delete, new byte[0])));
    delete("Delete.addFamily(byte[])", "g:q@10=3", r -> new Delete(r).addFamily(F));
    delete("Delete.addFamily(byte[], long)", "f:q@20=2 g:q@10=3", r -> new Delete(r).addFamily(F, 15));
    delete("Delete.addFamilyVersion(byte[], long)", "f:q@20=2 g:q@10=3", r -> new Delete(r).addFamilyVersion(F, 10));
    delete("Delete.setACL(Map<String, Permission>)", without20, r -> newest(r).setACL(Map.of("u", read())));
    delete("Delete.setACL(String, Permission)", without20, r -> newest(r).setACL("u", read()));
    delete("Delete.setAttribute(String, byte[])", without20, r -> newest(r).setAttribute("mine", b("1")));
    delete("Delete.setCellVisibility(CellVisibility)", without20,
      r -> newest(r).setCellVisibility(new CellVisibility("secret")));
    delete("Delete.setClusterIds(List<UUID>)", without20, r -> newest(r).setClusterIds(List.of(new UUID(1, 2))));
    delete("Delete.setDurability(Durability)", without20, r -> newest(r).setDurability(Durability.SKIP_WAL));
    delete("Delete.setFamilyCellMap(NavigableMap<byte[], List<Cell>>)", without20,
      r -> new Delete(r).setFamilyCellMap(map(cell(r, 20, Cell.Type.Delete, new byte[0]))));
    delete("Delete.setId(String)", without20, r -> newest(r).setId("me"));
    delete("Delete.setPriority(int)", without20, r -> newest(r).setPriority(10));
    check.run("Delete.setTTL(long)", () -> fails("a delete lives for ever", UnsupportedOperationException.class,
      () -> newest(b("r")).setTTL(1000)));
    delete("Delete.setTimestamp(long)", "f:q@20=2", r -> new Delete(r).setTimestamp(15));
  }

  /** After "a" the append makes "ab". */
  private void append(String setter, Making<Append> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, b("a")));
      same("result", "f:q=ab", Rows.cells(table.append(making.of(row))));
      same("row", "f:q=ab", cells(row));
    });
  }

  private static Append more(byte[] row) {
    return new Append(row).addColumn(F, Q, b("b"));
  }

  private void appends() {
    append("Append.add(Cell)", r -> new Append(r).add(cell(r, Long.MAX_VALUE, Cell.Type.Put, b("b"))));
    append("Append.add(byte[], byte[], byte[])", r -> new Append(r).add(F, Q, b("b")));
    append("Append.addColumn(byte[], byte[], byte[])", r -> more(r));
    append("Append.setACL(Map<String, Permission>)", r -> more(r).setACL(Map.of("u", read())));
    append("Append.setACL(String, Permission)", r -> more(r).setACL("u", read()));
    append("Append.setAttribute(String, byte[])", r -> more(r).setAttribute("mine", b("1")));
    append("Append.setCellVisibility(CellVisibility)", r -> more(r).setCellVisibility(new CellVisibility("secret")));
    append("Append.setClusterIds(List<UUID>)", r -> more(r).setClusterIds(List.of(new UUID(1, 2))));
    append("Append.setDurability(Durability)", r -> more(r).setDurability(Durability.ASYNC_WAL));
    append("Append.setFamilyCellMap(NavigableMap<byte[], List<Cell>>)",
      r -> new Append(r).setFamilyCellMap(map(cell(r, Long.MAX_VALUE, Cell.Type.Put, b("b")))));
    append("Append.setId(String)", r -> more(r).setId("me"));
    append("Append.setPriority(int)", r -> more(r).setPriority(10));
    check.run("Append.setReturnResults(boolean)", () -> {
      byte[] row = newRow();
      Result nothing = table.append(more(row).setReturnResults(false));
      same("no result", true, nothing == null || nothing.isEmpty());
      same("row", "f:q=b", cells(row));
    });
    check.run("Append.setTTL(long)", () -> {
      byte[] row = newRow();
      table.append(more(row).setTTL(700));
      Maintenance.await("it is gone", () -> cells(row).isEmpty());
    });
    check.run("Append.setTimeRange(long, long)", () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, 10, b("old")).addColumn(F, Q, 20, b("new")));
      same("what was in the range", "f:q=oldb", Rows.cells(table.append(more(row).setTimeRange(0, 15))));
    });
    check.run("Append.setTimestamp(long)", () -> {
      byte[] row = newRow();
      table.append(new Append(row).setTimestamp(50).addColumn(F, Q, b("b")));
      same("row", "f:q@50=b", all(row));
    });
  }

  /** After 5 the increment makes 7. */
  private void increment(String setter, Making<Increment> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, Bytes.toBytes(5L)));
      same("result", 7L, Bytes.toLong(table.increment(making.of(row)).getValue(F, Q)));
      same("row", 7L, Bytes.toLong(table.get(new Get(row)).getValue(F, Q)));
    });
  }

  private static Increment two(byte[] row) {
    return new Increment(row).addColumn(F, Q, 2);
  }

  private void increments() {
    byte[] two = Bytes.toBytes(2L);
    increment("Increment.add(Cell)", r -> new Increment(r).add(cell(r, Long.MAX_VALUE, Cell.Type.Put, two)));
    increment("Increment.addColumn(byte[], byte[], long)", r -> two(r));
    increment("Increment.setACL(Map<String, Permission>)", r -> two(r).setACL(Map.of("u", read())));
    increment("Increment.setACL(String, Permission)", r -> two(r).setACL("u", read()));
    increment("Increment.setAttribute(String, byte[])", r -> two(r).setAttribute("mine", b("1")));
    increment("Increment.setCellVisibility(CellVisibility)",
      r -> two(r).setCellVisibility(new CellVisibility("secret")));
    increment("Increment.setClusterIds(List<UUID>)", r -> two(r).setClusterIds(List.of(new UUID(1, 2))));
    increment("Increment.setDurability(Durability)", r -> two(r).setDurability(Durability.FSYNC_WAL));
    increment("Increment.setFamilyCellMap(NavigableMap<byte[], List<Cell>>)",
      r -> new Increment(r).setFamilyCellMap(map(cell(r, Long.MAX_VALUE, Cell.Type.Put, two))));
    increment("Increment.setId(String)", r -> two(r).setId("me"));
    increment("Increment.setPriority(int)", r -> two(r).setPriority(10));
    check.run("Increment.setReturnResults(boolean)", () -> {
      byte[] row = newRow();
      Result nothing = table.increment(two(row).setReturnResults(false));
      same("no result", true, nothing == null || nothing.isEmpty());
      same("row", 2L, Bytes.toLong(table.get(new Get(row)).getValue(F, Q)));
    });
    check.run("Increment.setTTL(long)", () -> {
      byte[] row = newRow();
      table.increment(two(row).setTTL(700));
      Maintenance.await("it is gone", () -> cells(row).isEmpty());
    });
    check.run("Increment.setTimeRange(long, long)", () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, 10, Bytes.toBytes(5L)).addColumn(F, Q, 20, Bytes.toBytes(50L)));
      Result result = table.increment(two(row).setTimeRange(0, 15));
      same("what was in the range", 7L, Bytes.toLong(result.getValue(F, Q)));
    });
    check.run("Increment.setTimestamp(long)", () -> {
      byte[] row = newRow();
      table.increment(new Increment(row).setTimestamp(50).addColumn(F, Q, 2));
      same("timestamp", 50L, table.get(new Get(row)).rawCells()[0].getTimestamp());
    });
  }

  /** The condition holds at f:q@10=v, and {@code not} does not. */
  private void condition(String setter, Making<CheckAndMutate.Builder> holds, Making<CheckAndMutate.Builder> not) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, 10, b("v")));
      Put put = new Put(row).addColumn(b("g"), Q, 10, b("done"));
      same("does not hold", false, table.checkAndMutate(not.of(row).build(put)).isSuccess());
      same("row", "f:q@10=v", all(row));
      same("holds", true, table.checkAndMutate(holds.of(row).build(put)).isSuccess());
      same("row", "f:q@10=v g:q@10=done", all(row));
    });
  }

  private static CheckAndMutate.Builder ifV(byte[] row) {
    return CheckAndMutate.newBuilder(row).ifEquals(F, Q, b("v"));
  }

  /** After the condition f:q=v held, the row is {@code expected}. */
  private void build(String setter, String expected, Making<CheckAndMutate> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      same("nothing there", false, table.checkAndMutate(making.of(row)).isSuccess());
      table.put(new Put(row).addColumn(F, Q, 10, b("v")));
      same("holds", true, table.checkAndMutate(making.of(row)).isSuccess());
      same("row", expected, cells(row));
    });
  }

  private void checks() {
    build("CheckAndMutate.Builder.build(Append)", "f:q=vb", r -> ifV(r).build(more(r)));
    build("CheckAndMutate.Builder.build(Delete)", "", r -> ifV(r).build(new Delete(r)));
    build("CheckAndMutate.Builder.build(Increment)", "f:n=" + Bytes.toStringBinary(Bytes.toBytes(2L)) + " f:q=v",
      r -> ifV(r).build(new Increment(r).addColumn(F, b("n"), 2)));
    build("CheckAndMutate.Builder.build(Put)", "f:q=w", r -> ifV(r).build(new Put(r).addColumn(F, Q, b("w"))));
    build("CheckAndMutate.Builder.build(RowMutations)", "g:q=w",
      r -> ifV(r).build(
        Rows.mutations(new Put(r).addColumn(b("g"), Q, b("w")), new Delete(r).addColumns(F, Q))));
    condition("CheckAndMutate.Builder.ifEquals(byte[], byte[], byte[])", r -> ifV(r),
      r -> CheckAndMutate.newBuilder(r).ifEquals(F, Q, b("other")));
    condition("CheckAndMutate.Builder.ifMatches(Filter)",
      r -> CheckAndMutate.newBuilder(r)
        .ifMatches(new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("v")))),
      r -> CheckAndMutate.newBuilder(r)
        .ifMatches(new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("other")))));
    condition("CheckAndMutate.Builder.ifMatches(byte[], byte[], CompareOperator, byte[])",
      r -> CheckAndMutate.newBuilder(r).ifMatches(F, Q, CompareOperator.GREATER, b("w")),
      r -> CheckAndMutate.newBuilder(r).ifMatches(F, Q, CompareOperator.GREATER, b("u")));
    condition("CheckAndMutate.Builder.ifNotExists(byte[], byte[])",
      r -> CheckAndMutate.newBuilder(r).ifNotExists(F, b("none")),
      r -> CheckAndMutate.newBuilder(r).ifNotExists(F, Q));
    condition("CheckAndMutate.Builder.timeRange(TimeRange)", r -> ifV(r).timeRange(TimeRange.between(5, 15)),
      r -> ifV(r).timeRange(TimeRange.between(15, 25)));
  }

  /** The mutations put f:a and take f:q away. */
  private void mutations(String setter, Making<RowMutations> making) {
    check.run(setter, () -> {
      byte[] row = newRow();
      table.put(new Put(row).addColumn(F, Q, 10, b("old")));
      table.mutateRow(making.of(row));
      same("row", "f:a@10=new", all(row));
    });
  }

  private void rowMutations() {
    Making<Put> put = r -> new Put(r).addColumn(F, b("a"), 10, b("new"));
    Making<Delete> delete = r -> new Delete(r).addColumns(F, Q);
    mutations("RowMutations.add(Delete)", r -> {
      RowMutations m = new RowMutations(r);
      m.add((Mutation) put.of(r));
      m.add(delete.of(r));
      return m;
    });
    mutations("RowMutations.add(List<? extends Mutation>)",
      r -> new RowMutations(r).add(List.of(put.of(r), delete.of(r))));
    mutations("RowMutations.add(Mutation)",
      r -> new RowMutations(r).add((Mutation) put.of(r)).add((Mutation) delete.of(r)));
    mutations("RowMutations.add(Put)", r -> {
      RowMutations m = new RowMutations(r);
      m.add(put.of(r));
      m.add((Mutation) delete.of(r));
      return m;
    });
  }
}
