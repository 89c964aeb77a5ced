package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Rows.b;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.ipc.HBaseRpcController;
import org.apache.hadoop.hbase.ipc.HBaseRpcControllerImpl;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.GetRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.GetResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.MultiRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.MultiResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.MutateRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.MutateResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.RegionActionResult;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ResultOrException;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ScanRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ScanResponse;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.apache.hbase.thirdparty.com.google.protobuf.Message;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;
import org.apache.hbase.thirdparty.com.google.protobuf.TextFormat;

/**
 * Requests that no client library lets through, sent as they are: contradictory, incomplete, out of range. The verdict is
 * the exception's class, and a "!" where the server says that it is not to be tried again; what the other actions of a
 * batch came to; and that nothing was written which should not be.
 */
final class BadInputCases {
  private static final String TRUE_FILTER = "filter { name: 'org.apache.hadoop.hbase.filter.";
  private static final String LONG_ROW = "x".repeat(32_768);

  private final Check check;
  private final Table table;
  private final ClientService.BlockingInterface stub;
  /** Names of the regions before and after "m", as text of a message. */
  private final String[] regions = new String[2];
  private long nonce = System.nanoTime();

  private BadInputCases(Check check, Server server, TableName name, Table table) throws Exception {
    this.check = check;
    this.table = table;
    ServerName where;
    try (RegionLocator locator = server.connection.getRegionLocator(name)) {
      where = locator.getRegionLocation(b("a")).getServerName();
      for (int i = 0; i < 2; i++) {
        byte[] region = locator.getRegionLocation(b(i == 0 ? "a" : "z")).getRegion().getRegionName();
        regions[i] = "region { type: REGION_NAME value: \"" + TextFormat.escapeBytes(ByteString.copyFrom(region)) + "\" }";
      }
    }
    stub = ((ClusterConnection) server.connection).getClient(where);
  }

  static void run(Check check, Server server) throws Exception {
    TableName name = server.split("bad", new String[] { "m" }, "f*3", "g");
    try (Table table = server.connection.getTable(name)) {
      BadInputCases cases = new BadInputCases(check, server, name, table);
      cases.gets();
      cases.mutations();
      cases.conditions();
      cases.batches();
      cases.scans();
      cases.endpoints();
    }
  }

  private interface Ask {
    String reply() throws Exception;
  }

  /** Before each there are "a" with f:q=1 and a number in f:n, and "z" with f:q=2; {@code after}: what is there then. */
  private void bad(String name, String expected, String after, Ask ask) {
    check.run(name, () -> {
      fill();
      same("verdict", expected, reply(ask));
      same("rows afterwards", after, String.join(" ", Rows.scan(table, new Scan())));
    });
  }

  private void bad(String name, String expected, Ask ask) {
    bad(name, expected, "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} z{f:q=2}", ask);
  }

  private void fill() throws Exception {
    List<org.apache.hadoop.hbase.client.Delete> all = new ArrayList<>();
    try (var scanner = table.getScanner(new Scan())) {
      scanner.forEach(r -> all.add(new org.apache.hadoop.hbase.client.Delete(r.getRow())));
    }
    // later than what was put in the same millisecond
    long now = System.currentTimeMillis();
    while (System.currentTimeMillis() == now) {
      Thread.onSpinWait();
    }
    table.delete(all);
    now = System.currentTimeMillis();
    while (System.currentTimeMillis() == now) {
      Thread.onSpinWait();
    }
    table.put(Rows.put("a", "f:q=1").addColumn(b("f"), b("n"), Bytes.toBytes(5L)));
    table.put(Rows.put("z", "f:q=2"));
  }

  private static String reply(Ask ask) throws Exception {
    try {
      return ask.reply();
    } catch (ServiceException e) {
      if (e.getCause() instanceof RemoteWithExtrasException r) {
        return shortly(r.getClassName()) + (r.isDoNotRetry() ? "!" : "");
      }
      throw e;
    }
  }

  private static String shortly(String className) {
    return className.substring(className.lastIndexOf('.') + 1);
  }

  /** {@code @0} and {@code @1} in the text: the regions before and after "m". */
  private <B extends Message.Builder> B message(B builder, String text) throws Exception {
    TextFormat.merge(text.replace("@0", regions[0]).replace("@1", regions[1]), builder);
    return builder;
  }

  private static HBaseRpcController controller(Cell... cells) {
    return cells.length == 0 ? new HBaseRpcControllerImpl()
      : new HBaseRpcControllerImpl(CellUtil.createCellScanner(cells));
  }

  private String get(String get) throws Exception {
    return getIn("@0", get);
  }

  private String getIn(String region, String get) throws Exception {
    GetResponse r = stub.get(controller(), message(GetRequest.newBuilder(), region + " get { " + get + " }").build());
    return r.getResult().hasExists() ? "exists=" + r.getResult().getExists() : Math.max(r.getResult().getCellCount(), r.getResult().getAssociatedCellCount()) + " cells";
  }

  private String mutate(String mutation, Cell... cells) throws Exception {
    return request("@0 mutation { " + mutation + " }", cells);
  }

  private String request(String request, Cell... cells) throws Exception {
    MutateResponse r = stub.mutate(controller(cells), message(MutateRequest.newBuilder(), request).build());
    return r.hasProcessed() ? "processed=" + r.getProcessed() : "done";
  }

  private String multi(String multi, Cell... cells) throws Exception {
    MultiResponse response = stub.multi(controller(cells), message(MultiRequest.newBuilder(), multi).build());
    List<String> out = new ArrayList<>();
    for (RegionActionResult region : response.getRegionActionResultList()) {
      if (region.hasException()) {
        out.add("all " + shortly(region.getException().getName()));
      }
      List<ResultOrException> results = new ArrayList<>(region.getResultOrExceptionList());
      results.sort(Comparator.comparingInt(ResultOrException::getIndex));
      for (ResultOrException r : results) {
        out.add(r.getIndex() + " " + (r.hasException() ? shortly(r.getException().getName()) : "ok"));
      }
      if (region.hasProcessed()) {
        out.add("processed=" + region.getProcessed());
      }
    }
    if (response.hasProcessed()) {
      out.add("processed=" + response.getProcessed());
    }
    return String.join(", ", out);
  }

  private ScanResponse scanner(String scan) throws Exception {
    return stub.scan(controller(), message(ScanRequest.newBuilder(), scan).build());
  }

  private static String said(ScanResponse r) {
    return Math.max(r.getResultsCount(), r.getCellsPerResultCount()) + " rows"
      + (r.getMoreResultsInRegion() ? ", more" : "") + (r.getMoreResults() ? "" : ", end");
  }

  /** Opened, read and closed in one call. */
  private String scan(String scan) throws Exception {
    return said(scanner("@0 number_of_rows: 10 close_scanner: true client_handles_partials: true"
      + " client_handles_heartbeats: true scan { " + scan + " }"));
  }

  private static Cell cell(String row, String family, String value) {
    return new KeyValue(b(row), b(family), b("q"), 7, b(value));
  }

  private static String q(String s) {
    return "'" + s + "'";
  }

  private static String row(String row) {
    return "row: " + q(row) + " ";
  }

  private static String filter(String name, String serialized) {
    return TRUE_FILTER + name + "' serialized_filter: '" + serialized + "' } ";
  }

  private void gets() {
    bad("get: an empty row", "IOException", () -> get(row("")));
    bad("get: a row too long", "IOException", () -> get(row(LONG_ROW)));
    bad("get: a row of another region", "WrongRegionException", () -> get(row("z")));
    bad("get: an unknown region", "NotServingRegionException",
      () -> getIn("region { type: REGION_NAME value: 'no,such,1.0123456789abcdef0123456789abcdef.' }", row("a")));
    bad("get: a region's name that is none", "NotServingRegionException",
      () -> getIn("region { type: REGION_NAME value: 'nonsense' }", row("a")));
    bad("get: an unknown encoded name", "NotServingRegionException",
      () -> getIn("region { type: ENCODED_REGION_NAME value: '0123456789abcdef0123456789abcdef' }", row("a")));
    bad("get: an empty region's name", "NotServingRegionException", () -> getIn("region { type: REGION_NAME value: '' }", row("a")));
    bad("get: an unknown family", "NoSuchColumnFamilyException!", () -> get(row("a") + "column { family: 'x' }"));
    bad("get: one unknown family of two", "NoSuchColumnFamilyException!",
      () -> get(row("a") + "column { family: 'f' } column { family: 'x' qualifier: 'q' }"));
    bad("get: an empty family", "NoSuchColumnFamilyException!", () -> get(row("a") + "column { family: '' }"));
    bad("get: no versions", "IOException", () -> get(row("a") + "max_versions: 0"));
    bad("get: minus one version", "IOException", () -> get(row("a") + "max_versions: 4294967295"));
    bad("get: an inverted time range", "IOException", () -> get(row("a") + "time_range { from: 9 to: 2 }"));
    bad("get: a negative time", "IOException", () -> get(row("a") + "time_range { from: 18446744073709551615 to: 5 }"));
    bad("get: an inverted time range of a family", "IOException",
      () -> get(row("a") + "cf_time_range { column_family: 'f' time_range { from: 9 to: 2 } }"));
    bad("get: a time range of an unknown family", "2 cells",
      () -> get(row("a") + "cf_time_range { column_family: 'x' time_range { from: 2 to: 9 } }"));
    bad("get: minus one cell to a family", "2 cells", () -> get(row("a") + "store_limit: 4294967295"));
    bad("get: no cell to a family", "1 cells", () -> get(row("a") + "store_limit: 0"));
    bad("get: a negative offset in a family", "2 cells", () -> get(row("a") + "store_offset: 4294967295"));
    bad("get: the row before", "UnknownProtocolException!", () -> get(row("a") + "closest_row_before: true"));
    bad("get: an unknown filter", "DoNotRetryIOException!", () -> get(row("a") + "filter { name: 'com.example.NoFilter' }"));
    bad("get: a filter without a name", "DoNotRetryIOException!", () -> get(row("a") + "filter { name: '' }"));
    bad("get: a class that is no filter", "DoNotRetryIOException!", () -> get(row("a") + "filter { name: 'java.lang.String' }"));
    bad("get: a filter of the wrong bytes", "DoNotRetryIOException!",
      () -> get(row("a") + filter("PageFilter", "\\xff\\xff\\xff")));
    bad("get: a filter without its bytes", "DoNotRetryIOException!", () -> get(row("a") + filter("SingleColumnValueFilter", "")));
    bad("get: a filter without its comparator", "IOException",
      // CompareFilter { compare_op: EQUAL }
      () -> get(row("a") + filter("ValueFilter", "\\x0a\\x02\\x08\\x02")));
    bad("get: an unknown comparator", "DoNotRetryIOException!",
      // ValueFilter { CompareFilter { EQUAL, Comparator { name: "none" } } }
      () -> get(row("a") + filter("ValueFilter", "\\x0a\\x0a\\x08\\x02\\x12\\x06\\x0a\\x04none")));
    bad("get: an unknown filter in a list", "DoNotRetryIOException!",
      // FilterList { MUST_PASS_ALL, Filter { name: "none" } }
      () -> get(row("a") + filter("FilterList", "\\x08\\x01\\x12\\x06\\x0a\\x04none")));
    bad("get: a page of no rows", "0 cells", () -> get(row("a") + filter("PageFilter", "\\x08\\x00")));
    bad("get: a page of minus one row", "DoNotRetryIOException!",
      () -> get(row("a") + filter("PageFilter", "\\x08\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01")));
    bad("get: minus one column", "DoNotRetryIOException!",
      () -> get(row("a") + filter("ColumnCountGetFilter", "\\x08\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01")));
    bad("get: minus one column of a page", "DoNotRetryIOException!",
      () -> get(row("a") + filter("ColumnPaginationFilter", "\\x08\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01")));
    bad("get: an unknown family but existence only", "NoSuchColumnFamilyException!",
      () -> get(row("a") + "existence_only: true column { family: 'x' }"));
  }

  private static String value(String family, String rest) {
    return "column_value { family: " + q(family) + " qualifier_value { " + rest + " } } ";
  }

  private static String putTo(String row) {
    return row(row) + "mutate_type: PUT " + value("f", "qualifier: 'q' value: 'new'");
  }

  private void mutations() {
    bad("put: no cells", "processed=true", () -> mutate(row("a") + "mutate_type: PUT"));
    bad("put: no row", "IOException", () -> mutate("mutate_type: PUT " + value("f", "qualifier: 'q' value: 'v'")));
    bad("put: an empty row", "IOException", () -> mutate(putTo("")));
    bad("put: a row too long", "IOException", () -> mutate(putTo(LONG_ROW)));
    bad("put: a row of another region", "FailedSanityCheckException!", () -> mutate(putTo("z")));
    bad("put: an unknown family", "NoSuchColumnFamilyException!",
      () -> mutate(row("a") + "mutate_type: PUT " + value("x", "qualifier: 'q' value: 'v'")));
    bad("put: one unknown family of two", "NoSuchColumnFamilyException!", () -> mutate(putTo("a") + value("x", "qualifier: 'q' value: 'v'")));
    bad("put: a negative time", "IOException",
      () -> mutate(row("a") + "mutate_type: PUT timestamp: 18446744073709551615 " + value("f", "qualifier: 'q' value: 'v'")));
    bad("put: a cell's negative time", "IOException",
      () -> mutate(row("a") + "mutate_type: PUT "
        + value("f", "qualifier: 'q' value: 'v' timestamp: 18446744073709551611")));
    bad("put: a cell without qualifier and value", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: PUT " + value("f", "timestamp: 5")));
    bad("put: cells announced, none sent", "DoNotRetryIOException!", () -> mutate(row("a") + "mutate_type: PUT associated_cell_count: 1"));
    bad("put: fewer cells than announced", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: PUT associated_cell_count: 3", cell("a", "f", "v")));
    bad("put: minus one cell", "processed=true",
      () -> mutate(row("a") + "mutate_type: PUT associated_cell_count: -1", cell("a", "f", "v")));
    bad("put: a cell of another row", "WrongRowIOException",
      () -> mutate(row("a") + "mutate_type: PUT associated_cell_count: 1", cell("b", "f", "v")));
    bad("put: a cell of another region's row, no row", "FailedSanityCheckException!",
      () -> mutate("mutate_type: PUT associated_cell_count: 1", cell("z", "f", "v")));
    bad("put: a time to live that is no number", "IOException",
      () -> mutate(putTo("a") + "attribute { name: '_ttl' value: 'soon' }"));
    bad("mutation: no type", "done", "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1v} z{f:q=2}", () -> mutate(row("a") + value("f", "qualifier: 'q' value: 'v'")));
    bad("delete: an unknown family", "NoSuchColumnFamilyException!",
      () -> mutate(row("a") + "mutate_type: DELETE " + value("x", "qualifier: 'q' delete_type: DELETE_ONE_VERSION")));
    bad("delete: a negative time", "IOException",
      () -> mutate(row("a") + "mutate_type: DELETE timestamp: 18446744073709551615"));
    bad("delete: an empty row", "IOException", () -> mutate(row("") + "mutate_type: DELETE"));
    bad("delete: a row too long", "IOException", () -> mutate(row(LONG_ROW) + "mutate_type: DELETE"));
    bad("delete: a row of another region", "FailedSanityCheckException!", () -> mutate(row("z") + "mutate_type: DELETE"));
    bad("increment: no columns", "done", () -> mutate(row("a") + "mutate_type: INCREMENT"));
    bad("increment: by four bytes", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'n' value: '1234'")));
    bad("increment: by no bytes", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'n' value: ''")));
    bad("increment: no value", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'n'")));
    bad("increment: of one byte", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")));
    bad("increment: of a number and of one byte", "DoNotRetryIOException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'n' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")
        + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")));
    bad("increment: an unknown family", "NoSuchColumnFamilyException!",
      () -> mutate(row("a") + "mutate_type: INCREMENT " + value("x", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")));
    bad("increment: an inverted time range", "IOException",
      () -> mutate(row("a") + "mutate_type: INCREMENT time_range { from: 9 to: 2 } "
        + value("f", "qualifier: 'n' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")));
    bad("append: no columns", "done", () -> mutate(row("a") + "mutate_type: APPEND"));
    bad("append: an unknown family", "NoSuchColumnFamilyException!",
      () -> mutate(row("a") + "mutate_type: APPEND " + value("x", "qualifier: 'q' value: 'v'")));
    bad("append: a row of another region", "WrongRegionException",
      () -> mutate(row("z") + "mutate_type: APPEND " + value("f", "qualifier: 'q' value: 'v'")));
    bad("append: an inverted time range", "IOException",
      () -> mutate(row("a") + "mutate_type: APPEND time_range { from: 9 to: 2 } " + value("f", "qualifier: 'q' value: 'v'")));
    bad("nonce: the same again counts once", "done done", "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x06 f:q=1} z{f:q=2}",
      () -> {
        String increment = "@0 nonce_group: 77 mutation { " + row("a") + "mutate_type: INCREMENT nonce: " + (++nonce) + " "
          + value("f", "qualifier: 'n' value: '\\0\\0\\0\\0\\0\\0\\0\\1'") + "}";
        return request(increment) + " " + request(increment);
      });
    bad("nonce: of an increment, for an append", "done done", "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x06 f:q=1} z{f:q=2}",
      () -> {
        String rest = " nonce: " + (++nonce) + " ";
        return request("@0 nonce_group: 77 mutation { " + row("a") + "mutate_type: INCREMENT" + rest
          + value("f", "qualifier: 'n' value: '\\0\\0\\0\\0\\0\\0\\0\\1'") + "}") + " "
          + request("@0 nonce_group: 77 mutation { " + row("a") + "mutate_type: APPEND" + rest
            + value("f", "qualifier: 'q' value: 'more'") + "}");
      });
    bad("nonce: of what failed, may be used", "DoNotRetryIOException! done",
      "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x06 f:q=1} z{f:q=2}", () -> {
        String start = "@0 nonce_group: 77 mutation { " + row("a") + "mutate_type: INCREMENT nonce: " + (++nonce) + " ";
        return reply(() -> request(start + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'") + "}")) + " "
          + reply(() -> request(start + value("f", "qualifier: 'n' value: '\\0\\0\\0\\0\\0\\0\\0\\1'") + "}"));
      });
  }

  private static final String EQUAL_ONE = "compare_type: EQUAL comparator {"
    + " name: 'org.apache.hadoop.hbase.filter.BinaryComparator' serialized_comparator: '\\x0a\\x03\\x0a\\x011' } ";

  private String checked(String condition, String mutation) throws Exception {
    return request("@0 condition { " + condition + " } mutation { " + mutation + " }");
  }

  private void conditions() {
    String column = "family: 'f' qualifier: 'q' ";
    bad("check: another row", "DoNotRetryIOException!", () -> checked(row("b") + column + EQUAL_ONE, putTo("a")));
    bad("check: a row of another region", "WrongRegionException", () -> checked(row("z") + column + EQUAL_ONE, putTo("z")));
    bad("check: a row of another region, for one of this", "DoNotRetryIOException!", () -> checked(row("z") + column + EQUAL_ONE, putTo("a")));
    bad("check: an empty row", "DoNotRetryIOException!", () -> checked(row("") + column + EQUAL_ONE, putTo("a")));
    bad("check: an empty row, of an empty row", "DoNotRetryIOException!", () -> checked(row("") + column + EQUAL_ONE, putTo("")));
    bad("check: no comparator", "IOException", () -> checked(row("a") + column + "compare_type: EQUAL", putTo("a")));
    bad("check: no comparison", "processed=false",
      () -> checked(row("a") + column + EQUAL_ONE.replace("compare_type: EQUAL", ""), putTo("a")));
    bad("check: nothing but a row", "IOException", () -> checked(row("a"), putTo("a")));
    bad("check: no family", "NoSuchColumnFamilyException!", () -> checked(row("a") + EQUAL_ONE, putTo("a")));
    bad("check: an unknown family", "NoSuchColumnFamilyException!",
      () -> checked(row("a") + column.replace("'f'", "'x'") + EQUAL_ONE, putTo("a")));
    bad("check: an unknown comparator", "IOException",
      () -> checked(row("a") + column + "compare_type: EQUAL comparator { name: 'com.example.NoComparator' }", putTo("a")));
    bad("check: a comparator of the wrong bytes", "IOException",
      () -> checked(row("a") + column + EQUAL_ONE.replaceAll("serialized_comparator: '[^']*'",
        "serialized_comparator: '\\\\xff\\\\xff'"), putTo("a")));
    bad("check: a regular expression that is none", "IOException",
      () -> checked(row("a") + column + "compare_type: EQUAL comparator {"
        + " name: 'org.apache.hadoop.hbase.filter.RegexStringComparator'"
        + " serialized_comparator: '\\x0a\\x01(\\x10\\x00\\x1a\\x05UTF-8\\x22\\x04JAVA' }", putTo("a")));
    bad("check: an unknown filter", "DoNotRetryIOException!", () -> checked(row("a") + "filter { name: 'com.example.NoFilter' }", putTo("a")));
    bad("check: a filter of the wrong bytes", "DoNotRetryIOException!",
      () -> checked(row("a") + filter("PageFilter", "\\xff\\xff\\xff"), putTo("a")));
    bad("check: an inverted time range", "IOException",
      () -> checked(row("a") + column + EQUAL_ONE + "time_range { from: 9 to: 2 }", putTo("a")));
    bad("check: an unknown family in what is to be written", "NoSuchColumnFamilyException!",
      () -> checked(row("a") + column + EQUAL_ONE,
        row("a") + "mutate_type: PUT " + value("x", "qualifier: 'q' value: 'v'")));
    bad("check: failing, an unknown family in what is not to be written", "processed=false",
      () -> checked(row("a") + column + EQUAL_ONE.replace("\\x011'", "\\x012'"),
        row("a") + "mutate_type: PUT " + value("x", "qualifier: 'q' value: 'v'")));
    bad("check: for a put without cells", "processed=true",
      () -> checked(row("a") + column + EQUAL_ONE, row("a") + "mutate_type: PUT"));
    bad("check: for an increment of one byte", "DoNotRetryIOException!",
      () -> checked(row("a") + column + EQUAL_ONE,
        row("a") + "mutate_type: INCREMENT " + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")));
  }

  private static String action(int index, String mutation) {
    return "action { index: " + index + " mutation { " + mutation + " } } ";
  }

  private static String in(String region, String... rest) {
    return "regionAction { " + region + " " + String.join(" ", rest) + " } ";
  }

  private static String unknownFamily(String row) {
    return row(row) + "mutate_type: PUT " + value("x", "qualifier: 'q' value: 'v'");
  }

  private void batches() {
    String more = "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} b{f:q=new} c{f:q=new} z{f:q=2}";
    bad("batch: an unknown family in one", "0 ok, 1 NoSuchColumnFamilyException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, unknownFamily("a")), action(2, putTo("c")))));
    bad("batch: an unknown family in the last", "0 ok, 1 ok, 2 NoSuchColumnFamilyException", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, putTo("c")), action(2, unknownFamily("a")))));
    bad("batch: a row of another region in one", "0 ok, 1 FailedSanityCheckException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, putTo("y")), action(2, putTo("c")))));
    bad("batch: an empty row in one", "IOException", () -> multi(in("@0", action(0, putTo("b")), action(1, putTo("")), action(2, putTo("c")))));
    bad("batch: a row too long in one", "IOException",
      () -> multi(in("@0", action(0, putTo("b")), action(1, putTo(LONG_ROW)), action(2, putTo("c")))));
    bad("batch: a put without cells in one", "0 ok, 1 ok, 2 ok",
      "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} b{f:q=new} c{f:q=new} z{f:q=2}", () -> multi(in("@0", action(0, putTo("b")), action(1, row("a") + "mutate_type: PUT"), action(2, putTo("c")))));
    bad("batch: a negative time in one", "IOException",
      () -> multi(in("@0", action(0, putTo("b")), action(1, putTo("a") + "timestamp: 18446744073709551615"), action(2, putTo("c")))));
    bad("batch: a get of an unknown family in one", "0 ok, 1 NoSuchColumnFamilyException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")),
        "action { index: 1 get { " + row("a") + " column { family: 'x' } } }", action(2, putTo("c")))));
    bad("batch: a get of an empty row in one", "IOException", "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} z{f:q=2}", 
      () -> multi(in("@0", action(0, putTo("b")), "action { index: 1 get { " + row("") + " } }", action(2, putTo("c")))));
    bad("batch: a get with an unknown filter in one", "0 ok, 1 DoNotRetryIOException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")),
        "action { index: 1 get { " + row("a") + " filter { name: 'com.example.NoFilter' } } }", action(2, putTo("c")))));
    bad("batch: a get with an inverted time range in one", "IOException", "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} z{f:q=2}", 
      () -> multi(in("@0", action(0, putTo("b")),
        "action { index: 1 get { " + row("a") + " time_range { from: 9 to: 2 } } }", action(2, putTo("c")))));
    bad("batch: nothing in one", "0 ok, 1 HBaseIOException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), "action { index: 1 }", action(2, putTo("c")))));
    bad("batch: an increment of one byte in one", "0 ok, 1 DoNotRetryIOException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, row("a") + "mutate_type: INCREMENT "
        + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")), action(2, putTo("c")))));
    bad("batch: an increment by four bytes in one", "0 ok, 1 DoNotRetryIOException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, row("a") + "mutate_type: INCREMENT "
        + value("f", "qualifier: 'n' value: '1234'")), action(2, putTo("c")))));
    bad("batch: an append to an unknown family in one", "0 ok, 1 NoSuchColumnFamilyException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(1, row("a") + "mutate_type: APPEND "
        + value("x", "qualifier: 'q' value: 'v'")), action(2, putTo("c")))));
    bad("batch: an unknown region in one part", "all NotServingRegionException, 0 ok",
      "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} y{f:q=new} z{f:q=2}",
      () -> multi(in("region { type: REGION_NAME value: 'no,such,1.0123456789abcdef0123456789abcdef.' }",
        action(0, putTo("b"))) + in("@1", action(0, putTo("y")))));
    bad("batch: an unknown endpoint in one", "0 ok, 1 UnknownProtocolException, 2 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), "action { index: 1 service_call { row: 'a'"
        + " service_name: 'NoService' method_name: 'None' request: '' } }", action(2, putTo("c")))));
    bad("batch: the same number twice", "0 ok, 0 ok", more,
      () -> multi(in("@0", action(0, putTo("b")), action(0, putTo("c")))));
    bad("batch: no actions", "", () -> multi(in("@0")));
    bad("batch: no regions", "", () -> multi(""));
    bad("batch: cells announced, none sent", "0 DoNotRetryIOException, 1 DoNotRetryIOException, 2 DoNotRetryIOException",
      () -> multi(in("@0", action(0, putTo("b")), action(1, row("a") + "mutate_type: PUT associated_cell_count: 1"),
        action(2, putTo("c")))));
    bad("batch: fewer cells than announced", "0 DoNotRetryIOException, 1 DoNotRetryIOException",
      () -> multi(in("@0", action(0, row("a") + "mutate_type: PUT associated_cell_count: 3"), action(1, putTo("c"))),
        cell("a", "f", "v")));
    bad("batch: an unknown region's cells are passed over", "all NotServingRegionException, 0 ok",
      "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} z{f:q=2}", () -> multi(in("region { type: REGION_NAME value: 'no,such,1.0123456789abcdef0123456789abcdef.' }",
        action(0, row("b") + "mutate_type: PUT associated_cell_count: 1"))
        + in("@1", action(0, row("y") + "mutate_type: PUT associated_cell_count: 1")),
        cell("b", "f", "first"), cell("y", "f", "second")));
    bad("atomic batch: a get among puts", "all DoNotRetryIOException",
      () -> multi(in("@0", "atomic: true", action(0, putTo("a")), "action { index: 1 get { " + row("a") + " } }")));
    bad("atomic batch: an unknown family in one", "all NoSuchColumnFamilyException",
      () -> multi(in("@0", "atomic: true", action(0, putTo("a")), action(1, unknownFamily("a")))));
    bad("atomic batch: a row of another region in one", "all WrongRegionException",
      () -> multi(in("@0", "atomic: true", action(0, putTo("a")), action(1, putTo("z")))));
    bad("atomic batch: an increment of one byte in one", "all DoNotRetryIOException",
      () -> multi(in("@0", "atomic: true", action(0, putTo("a")), action(1, row("a") + "mutate_type: INCREMENT "
        + value("f", "qualifier: 'q' value: '\\0\\0\\0\\0\\0\\0\\0\\1'")))));
    bad("atomic batch: two rows", "0 ok, 1 ok, processed=true, processed=true", more,
      () -> multi(in("@0", "atomic: true", action(0, putTo("b")), action(1, putTo("c")))));
    bad("atomic batch: no actions", "0 ok, processed=true, processed=true", () -> multi(in("@0", "atomic: true")));
    String column = "family: 'f' qualifier: 'q' ";
    bad("checked batch: another row", "all DoNotRetryIOException",
      () -> multi(in("@0", "atomic: true", "condition { " + row("b") + column + EQUAL_ONE + " }", action(0, putTo("a")))));
    bad("checked batch: no comparator", "all IOException",
      () -> multi(in("@0", "atomic: true", "condition { " + row("a") + column + "compare_type: EQUAL }",
        action(0, putTo("a")))));
    bad("checked batch: an unknown family in the check", "all NoSuchColumnFamilyException",
      () -> multi(in("@0", "atomic: true", "condition { " + row("a") + column.replace("'f'", "'x'") + EQUAL_ONE + " }",
        action(0, putTo("a")))));
    bad("checked batch: a get", "all DoNotRetryIOException",
      () -> multi(in("@0", "atomic: true", "condition { " + row("a") + column + EQUAL_ONE + " }", action(0, putTo("a")),
        "action { index: 1 get { " + row("a") + " } }")));
    bad("checked batch: no actions", "processed=true",
      () -> multi(in("@0", "atomic: true", "condition { " + row("a") + column + EQUAL_ONE + " }")));
    bad("checked batch: bad in one region, good in the other", "all DoNotRetryIOException, 0 ok",
      "a{f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05 f:q=1} y{f:q=new} z{f:q=2}",
      () -> multi(in("@0", "atomic: true", "condition { " + row("b") + column + EQUAL_ONE + " }", action(0, putTo("a")))
        + in("@1", action(0, putTo("y")))));
    bad("checked batch: the old condition for all, another row", "all DoNotRetryIOException",
      () -> multi(in("@0", "atomic: true", action(0, putTo("a"))) + "condition { " + row("b") + column + EQUAL_ONE + " }"));
  }

  private void scans() {
    bad("scan: neither region nor scanner", "DoNotRetryIOException!", () -> said(scanner("number_of_rows: 5")));
    bad("scan: no region", "NotServingRegionException", () -> said(scanner("number_of_rows: 5 scan { }")));
    bad("scan: no scan", "DoNotRetryIOException!", () -> said(scanner("@0 number_of_rows: 5")));
    bad("scan: an unknown region", "NotServingRegionException",
      () -> said(scanner("region { type: REGION_NAME value: 'no,such,1.0123456789abcdef0123456789abcdef.' } scan { }")));
    bad("scan: an unknown scanner", "UnknownScannerException!", () -> said(scanner("scanner_id: 4711 number_of_rows: 5")));
    bad("scan: scanner zero", "UnknownScannerException!", () -> said(scanner("scanner_id: 0 number_of_rows: 5")));
    bad("scan: an unknown scanner closed", "UnknownScannerException!", () -> said(scanner("scanner_id: 4711 close_scanner: true")));
    bad("scan: an unknown scanner renewed", "UnknownScannerException!", () -> said(scanner("scanner_id: 4711 renew: true")));
    bad("scan: calls out of order", "OutOfOrderScannerNextException!", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return said(scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 7"));
    });
    bad("scan: the same call twice", "OutOfOrderScannerNextException!", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 0");
      return said(scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 0"));
    });
    bad("scan: on after calls out of order", "OutOfOrderScannerNextException! 1 rows, more", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return reply(() -> said(scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 7"))) + " "
        + reply(() -> said(scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 0")));
    });
    bad("scan: a closed scanner", "0 rows, more, 0 rows, end", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return said(scanner("scanner_id: " + id + " number_of_rows: 0 close_scanner: true")) + ", "
        + reply(() -> said(scanner("scanner_id: " + id + " number_of_rows: 1 next_call_seq: 1")));
    });
    bad("scan: closed twice", "0 rows, more, 0 rows, end", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return said(scanner("scanner_id: " + id + " number_of_rows: 0 close_scanner: true")) + ", "
        + reply(() -> said(scanner("scanner_id: " + id + " number_of_rows: 0 close_scanner: true")));
    });
    bad("scan: an exhausted scanner", "1 rows, 0 rows, end", () -> {
      ScanResponse all = scanner("@0 number_of_rows: 10 scan { }");
      return said(all) + ", " + reply(() -> said(scanner("scanner_id: " + Long.toUnsignedString(all.getScannerId()) + " number_of_rows: 1 next_call_seq: 1")));
    });
    bad("scan: a scanner's id beside another region", "1 rows, more", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return said(scanner("@1 scanner_id: " + id + " number_of_rows: 1 next_call_seq: 0"));
    });
    bad("scan: minus one row", "IOException", () -> said(scanner("@0 number_of_rows: 4294967295 scan { }")));
    bad("scan: at most minus one row", "1 rows",
      () -> said(scanner("@0 number_of_rows: 5 limit_of_rows: 4294967295 scan { }")));
    bad("scan: next of minus one row", "IOException", () -> {
      String id = Long.toUnsignedString(scanner("@0 number_of_rows: 0 scan { }").getScannerId());
      return said(scanner("scanner_id: " + id + " number_of_rows: 4294967295 next_call_seq: 0"));
    });
    bad("scan: no versions", "0 rows", () -> scan("max_versions: 0"));
    bad("scan: no versions of a column", "1 rows", () -> scan("max_versions: 0 column { family: 'f' qualifier: 'q' }"));
    bad("scan: minus one version", "0 rows", () -> scan("max_versions: 4294967295"));
    bad("scan: an unknown family", "NoSuchColumnFamilyException!", () -> scan("column { family: 'x' }"));
    bad("scan: an inverted time range", "IOException", () -> scan("time_range { from: 9 to: 2 }"));
    bad("scan: a negative time", "IOException", () -> scan("time_range { from: 18446744073709551615 to: 5 }"));
    bad("scan: an inverted time range of a family", "IOException",
      () -> scan("cf_time_range { column_family: 'f' time_range { from: 9 to: 2 } }"));
    bad("scan: inverted rows", "0 rows", () -> scan("start_row: 'c' stop_row: 'a'"));
    bad("scan: inverted rows, reversed", "0 rows", () -> scan("start_row: 'a' stop_row: 'c' reversed: true"));
    bad("scan: from a row of another region", "0 rows", () -> scan("start_row: 'z'"));
    bad("scan: from a row too long", "IOException", () -> scan("start_row: " + q(LONG_ROW)));
    bad("scan: to a row too long", "IOException", () -> scan("stop_row: " + q(LONG_ROW)));
    bad("scan: backwards from a row too long", "IOException", () -> scan("reversed: true start_row: " + q(LONG_ROW)));
    bad("scan: raw, of columns", "DoNotRetryIOException!", () -> scan("attribute { name: '_raw_' value: '\\xff' } column { family: 'f' qualifier: 'q' }"));
    bad("scan: minus one cell at once", "1 rows", () -> scan("batch_size: 4294967295"));
    bad("scan: minus one byte at once", "1 rows", () -> scan("max_result_size: 18446744073709551615"));
    bad("scan: no byte at once", "1 rows", () -> scan("max_result_size: 0"));
    bad("scan: minus one cell to a family", "1 rows", () -> scan("store_limit: 4294967295"));
    bad("scan: a negative offset in a family", "1 rows", () -> scan("store_offset: 4294967295"));
    bad("scan: a batch under a filter of whole rows", "IOException",
      // SingleColumnValueFilter would need a comparator: DependentColumnFilter { CompareFilter { NO_OP }, f, q }
      () -> scan("batch_size: 2 " + filter("DependentColumnFilter", "\\x0a\\x02\\x08\\x06\\x12\\x01f\\x1a\\x01q\\x20\\x00")));
    bad("scan: a batch under a page", "IOException", () -> scan("batch_size: 2 " + filter("PageFilter", "\\x08\\x02")));
    bad("scan: an unknown filter", "DoNotRetryIOException!", () -> scan("filter { name: 'com.example.NoFilter' }"));
    bad("scan: a filter of the wrong bytes", "DoNotRetryIOException!", () -> scan(filter("PageFilter", "\\xff\\xff\\xff")));
    bad("scan: a filter without its comparator", "IOException", () -> scan(filter("RowFilter", "\\x0a\\x02\\x08\\x02")));
    bad("scan: a replica that is not there", "1 rows", () -> scan("consistency: TIMELINE"));
    bad("scan: one cell to a call, and a filter of whole rows", "1 rows, more",
      () -> scan("max_result_size: 1 " + filter("DependentColumnFilter", "\\x0a\\x02\\x08\\x06\\x12\\x01f\\x1a\\x01q\\x20\\x00")));
  }

  private String exec(String request) throws Exception {
    stub.execService(controller(), message(CoprocessorServiceRequest.newBuilder(), request).build());
    return "done";
  }

  private void endpoints() {
    bad("endpoint: unknown", "UnknownProtocolException!",
      () -> exec("@0 call { row: 'a' service_name: 'NoService' method_name: 'None' request: '' }"));
    bad("endpoint: an unknown method", "UnknownProtocolException!",
      () -> exec("@0 call { row: 'a' service_name: 'MultiRowMutationService' method_name: 'None' request: '' }"));
    bad("endpoint: an unknown region", "NotServingRegionException",
      () -> exec("region { type: REGION_NAME value: 'no,such,1.0123456789abcdef0123456789abcdef.' }"
        + " call { row: 'a' service_name: 'NoService' method_name: 'None' request: '' }"));
    bad("region server's endpoint: unknown", "UnknownProtocolException!", () -> {
      stub.execRegionServerService(controller(), message(CoprocessorServiceRequest.newBuilder(),
        "@0 call { row: '' service_name: 'NoService' method_name: 'None' request: '' }").build());
      return "done";
    });
  }
}
