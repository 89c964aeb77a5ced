package basalt.interop;

import static basalt.interop.Check.same;
import static basalt.interop.Rows.b;

import java.io.BufferedReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.ParseFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * Filters: every verdict recorded from the real server (tests/golden/cluster/filters-verdicts.jsonl) asked again, and
 * combinations made by hand.
 */
final class FilterCases {
  private FilterCases() {
  }

  static void run(Check check, Server server, Path golden) throws Exception {
    TableName t = server.split("filters", new String[] { "r10" }, "f*3", "g");
    try (Table table = server.connection.getTable(t)) {
      List<Put> puts = new ArrayList<>();
      for (JsonObject o : lines(golden.resolve("cluster/filters-data.jsonl"))) {
        puts.add(new Put(b(o.get("r").getAsString())).addColumn(b(o.get("f").getAsString()),
          b(o.get("q").getAsString()), o.get("ts").getAsLong(), Bytes.fromHex(o.get("v").getAsString())));
      }
      table.put(puts);
      recorded(check, table, golden);
      byHand(check, table);
    }
  }

  private static void recorded(Check check, Table table, Path golden) throws Exception {
    Map<String, JsonObject> filters = new HashMap<>();
    for (JsonObject o : lines(golden.resolve("misc/filters-serialized.jsonl"))) {
      filters.put(o.get("label").getAsString(), o);
    }
    for (JsonObject verdict : lines(golden.resolve("cluster/filters-verdicts.jsonl"))) {
      String label = verdict.get("label").getAsString();
      JsonObject filter = filters.get(label);
      if (filter == null || !verdict.has("rows")) {
        continue; // an exception was recorded: the client would spend all its retries on it
      }
      String kind = verdict.get("scan").getAsString();
      check.run("recorded: " + label + ", " + kind, () -> {
        Filter f;
        try {
          f = (Filter) Class.forName(filter.get("class").getAsString()).getMethod("parseFrom", byte[].class)
            .invoke(null, (Object) Bytes.fromHex(filter.get("serialized_filter").getAsString()));
        } catch (InvocationTargetException e) {
          if (String.valueOf(e.getCause()).contains("permanently removed")) {
            return; // a filter that this generation of the client can no longer send
          }
          throw e;
        }
        Scan scan = new Scan().setFilter(f);
        if (kind.equals("3 versions")) {
          scan.readVersions(3);
        } else if (kind.equals("reversed")) {
          scan.setReversed(true);
        }
        List<List<String>> want = new ArrayList<>();
        for (JsonElement row : verdict.getAsJsonArray("rows")) {
          List<String> cells = new ArrayList<>();
          for (JsonElement cell : (JsonArray) row) {
            cells.add(cell.getAsString());
          }
          want.add(cells);
        }
        List<List<String>> got = new ArrayList<>();
        try (ResultScanner s = table.getScanner(scan)) {
          for (Result r : s) {
            got.add(Rows.full(r));
          }
        }
        same("rows", String.join("\n", want.stream().map(Object::toString).toList()),
          String.join("\n", got.stream().map(Object::toString).toList()));
      });
    }
  }

  private static void byHand(Check check, Table table) {
    check.run("page filter counts for each region, limit for the whole scan", () -> {
      same("page", "r00,r01,r02,r10,r11,r12", Rows.keys(table, new Scan().setFilter(new PageFilter(3))));
      same("page and limit", "r00,r01,r02,r10",
        Rows.keys(table, new Scan().setFilter(new PageFilter(3)).setLimit(4)));
    });
    check.run("prefix with a range and small caching", () -> same("rows", "r12,r13,r14",
      Rows.keys(table, new Scan().withStartRow(b("r12")).withStopRow(b("r15")).setCaching(1)
        .setFilter(new PrefixFilter(b("r1"))))));
    check.run("first key and key only: a row count", () -> same("rows", 20, Rows.count(table,
      new Scan().setFilter(new FilterList(new FirstKeyOnlyFilter(), new KeyOnlyFilter())).setMaxResultSize(50))));
    check.run("filter on a get", () -> {
      same("column prefix", "f:num=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05",
        Rows.cells(table.get(new Get(b("r05")).setFilter(new ColumnPrefixFilter(b("nu"))))));
      same("nothing passes", "", Rows.cells(table.get(new Get(b("r05"))
        .setFilter(new RowFilter(CompareOperator.EQUAL, new BinaryComparator(b("other")))))));
      same("exists with a filter", false, table.exists(new Get(b("r05"))
        .setFilter(new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("no such value"))))));
    });
    check.run("filter text of the shell's grammar", () -> {
      Filter f = new ParseFilter().parseFilterString(
        "(PrefixFilter('r0') AND QualifierFilter(=, 'binary:a')) OR (RowFilter(=, 'binary:r15') AND KeyOnlyFilter())");
      same("rows", "r00,r01,r02,r03,r04,r05,r06,r07,r08,r09,r15", Rows.keys(table, new Scan().setFilter(f)));
    });
    check.run("single column value, families on demand", () -> {
      SingleColumnValueFilter f =
        new SingleColumnValueFilter(b("f"), b("b"), CompareOperator.EQUAL, b("b2"));
      f.setFilterIfMissing(true);
      String want = "r02,r06,r10,r14,r18";
      same("rows", want, Rows.keys(table, new Scan().setFilter(f)));
      same("on demand", want, Rows.keys(table, new Scan().setFilter(f).setLoadColumnFamiliesOnDemand(true)));
      same("not on demand", want, Rows.keys(table, new Scan().setFilter(f).setLoadColumnFamiliesOnDemand(false)));
    });
    check.run("nested lists", () -> {
      FilterList or = new FilterList(FilterList.Operator.MUST_PASS_ONE, new PrefixFilter(b("r00")),
        new FilterList(FilterList.Operator.MUST_PASS_ALL, new PrefixFilter(b("r1")),
          new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("b3")))));
      same("rows", "r00,r11,r15,r19", Rows.keys(table, new Scan().setFilter(or)));
    });
  }

  private static List<JsonObject> lines(Path file) throws Exception {
    List<JsonObject> out = new ArrayList<>();
    try (BufferedReader r = Files.newBufferedReader(file)) {
      for (String line = r.readLine(); line != null; line = r.readLine()) {
        if (!line.isBlank()) {
          out.add(JsonParser.parseString(line).getAsJsonObject());
        }
      }
    }
    return out;
  }
}
