package basalt.interop;

import static basalt.interop.Check.fails;
import static basalt.interop.Check.same;
import static basalt.interop.Check.yes;
import static basalt.interop.Rows.b;
import static basalt.interop.Rows.put;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.ServiceException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.exceptions.UnknownProtocolException;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.Condition;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.MutationType;
import org.apache.hadoop.hbase.protobuf.generated.HBaseProtos.LongMsg;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MultiRowMutationService;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsRequest;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import org.apache.hadoop.hbase.regionserver.WrongRegionException;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Coprocessor endpoints through {@code Table#coprocessorService}. MultiRowMutationService with its generated classes;
 * AggregateService with messages described here, for hbase-endpoint, which has its classes, is not to be had.
 */
final class EndpointCases {
  private static final String MULTI_ROW = "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";
  private static final String AGGREGATE = "org.apache.hadoop.hbase.coprocessor.AggregateImplementation";

  private EndpointCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    multiRow(check, server);
    refusals(check, server);
    aggregate(check, server);
  }

  private static TableName table(Server server, String hint, String endpoint, String... splits) throws IOException {
    TableName name = server.name(hint);
    byte[][] keys = new byte[splits.length][];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = b(splits[i]);
    }
    try (Admin admin = server.connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setCoprocessor(endpoint)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build(), keys);
    }
    return name;
  }

  private static boolean mutate(Table table, List<Mutation> mutations, Condition... conditions) throws Exception {
    MutateRowsRequest.Builder request = MutateRowsRequest.newBuilder();
    for (Mutation m : mutations) {
      MutationType type = m instanceof Put ? MutationType.PUT
        : m instanceof Delete ? MutationType.DELETE
        : m instanceof Increment ? MutationType.INCREMENT : MutationType.APPEND;
      request.addMutationRequest(ProtobufUtil.toMutation(type, m));
    }
    for (Condition c : conditions) {
      request.addCondition(c);
    }
    try {
      return MultiRowMutationService.newBlockingStub(table.coprocessorService(mutations.get(0).getRow()))
        .mutateRows(null, request.build()).getProcessed();
    } catch (ServiceException e) {
      ProtobufUtil.toIOException(e);
      throw e;
    }
  }

  private static Condition on(String row, CompareOperator op, String value) throws IOException {
    return ProtobufUtil.toCondition(b(row), b("f"), b("q"), op, b(value), TimeRange.allTime());
  }

  private static void multiRow(Check check, Server server) {
    check.run("mutate rows", () -> {
      TableName t = table(server, "mrm", MULTI_ROW, "m");
      try (Table table = server.connection.getTable(t)) {
        yes("puts", mutate(table, List.of(put("a", "f:q=1"), put("b", "f:q=2"))));
        same("a", "f:q=1", Rows.get(table, "a"));
        same("b", "f:q=2", Rows.get(table, "b"));
        yes("mixed", mutate(table, List.of(new Delete(b("a")), new Append(b("b")).addColumn(b("f"), b("q"), b("+")),
          new Increment(b("c")).addColumn(b("f"), b("n"), 5), put("d", "f:q=4"))));
        same("deleted", "", Rows.get(table, "a"));
        same("appended", "f:q=2+", Rows.get(table, "b"));
        same("put", "f:q=4", Rows.get(table, "d"));
        fails("unknown family", NoSuchColumnFamilyException.class,
          () -> mutate(table, List.of(put("e", "f:q=1"), put("a", "x:q=1"))));
        fails("two regions", DoNotRetryIOException.class,
          () -> mutate(table, List.of(put("e", "f:q=1"), put("z", "f:q=1"))));
        same("nothing of these", "", Rows.get(table, "e"));
      }
    });
    check.run("mutate rows under conditions", () -> {
      TableName t = table(server, "mrmc", MULTI_ROW);
      try (Table table = server.connection.getTable(t)) {
        table.put(put("a", "f:q=5"));
        table.put(put("b", "f:q=7"));
        Object[][] rows = { { CompareOperator.EQUAL, "5", true }, { CompareOperator.EQUAL, "6", false },
          { CompareOperator.NOT_EQUAL, "5", false }, { CompareOperator.NOT_EQUAL, "6", true },
          { CompareOperator.LESS, "4", true }, { CompareOperator.LESS, "6", false },
          { CompareOperator.GREATER, "6", true }, { CompareOperator.GREATER_OR_EQUAL, "5", true },
          { CompareOperator.LESS_OR_EQUAL, "6", false }, { CompareOperator.EQUAL, "", false },
          { CompareOperator.NOT_EQUAL, "", false } };
        for (int i = 0; i < rows.length; i++) {
          Condition c = on("a", (CompareOperator) rows[i][0], (String) rows[i][1]);
          same(rows[i][0] + " " + rows[i][1], rows[i][2], mutate(table, List.of(put("d", "f:q=" + i)), c));
          same("written", rows[i][2], Rows.get(table, "d").equals("f:q=" + i));
        }
        yes("absent", mutate(table, List.of(put("e", "f:q=1")), on("none", CompareOperator.EQUAL, "")));
        yes("absent, whatever the operator",
          mutate(table, List.of(put("e", "f:q=2")), on("none", CompareOperator.NOT_EQUAL, "")));
        yes("absent is no value",
          !mutate(table, List.of(put("e", "f:q=3")), on("none", CompareOperator.NOT_EQUAL, "x")));
        yes("all must hold", !mutate(table, List.of(put("e", "f:q=4")), on("a", CompareOperator.EQUAL, "5"),
          on("b", CompareOperator.EQUAL, "8")));
        yes("all hold", mutate(table, List.of(put("e", "f:q=5")), on("a", CompareOperator.EQUAL, "5"),
          on("b", CompareOperator.EQUAL, "7")));
        same("the last that held", "f:q=5", Rows.get(table, "e"));
      }
    });
  }

  private static void refusals(Check check, Server server) {
    check.run("a service that the table does not have", () -> {
      TableName t = server.table("nocp", "f");
      try (Table table = server.connection.getTable(t)) {
        fails("not registered", UnknownProtocolException.class, () -> mutate(table, List.of(put("a", "f:q=1"))));
      }
    });
    check.run("a condition on another region's row", () -> {
      TableName t = table(server, "mrmw", MULTI_ROW, "m");
      // the client takes it for a region that moved, and tries again
      try (Connection impatient = server.connect("hbase.client.retries.number", "1");
        Table table = impatient.getTable(t)) {
        fails("wrong region", WrongRegionException.class,
          () -> mutate(table, List.of(put("a", "f:q=1")), on("z", CompareOperator.EQUAL, "")));
      }
    });
    check.run("a coprocessor that cannot be loaded", () -> {
      DoNotRetryIOException e = (DoNotRetryIOException) fails("refused", DoNotRetryIOException.class,
        () -> table(server, "badcp", "org.example.NoSuchCoprocessor"));
      yes("it is named: " + e.getMessage(),
        e.getMessage().contains("Class org.example.NoSuchCoprocessor cannot be loaded"));
    });
  }

  private static FieldDescriptorProto field(int number, String name, FieldDescriptorProto.Type type,
    FieldDescriptorProto.Label label) {
    return FieldDescriptorProto.newBuilder().setNumber(number).setName(name).setType(type).setLabel(label).build();
  }

  /** AggregateService as bytes on the wire have it: a message within a message is a field of bytes. */
  private static FileDescriptor aggregateService() throws Exception {
    FieldDescriptorProto.Type bytes = FieldDescriptorProto.Type.TYPE_BYTES;
    FieldDescriptorProto.Label optional = FieldDescriptorProto.Label.LABEL_OPTIONAL;
    ServiceDescriptorProto.Builder service = ServiceDescriptorProto.newBuilder().setName("AggregateService");
    for (String method : List.of("GetMax", "GetMin", "GetSum", "GetRowNum", "GetAvg", "GetStd", "GetMedian")) {
      service.addMethod(MethodDescriptorProto.newBuilder().setName(method).setInputType("AggregateRequest")
        .setOutputType("AggregateResponse"));
    }
    return FileDescriptor.buildFrom(FileDescriptorProto.newBuilder().setName("Aggregate.proto").setPackage("hbase.pb")
      .addMessageType(DescriptorProto.newBuilder().setName("AggregateRequest")
        .addField(field(1, "interpreter_class_name", FieldDescriptorProto.Type.TYPE_STRING, optional))
        .addField(field(2, "scan", bytes, optional)))
      .addMessageType(DescriptorProto.newBuilder().setName("AggregateResponse")
        .addField(field(1, "first_part", bytes, FieldDescriptorProto.Label.LABEL_REPEATED))
        .addField(field(2, "second_part", bytes, optional)))
      .addService(service).build(), new FileDescriptor[0]);
  }

  private static void aggregate(Check check, Server server) {
    check.run("aggregates", () -> {
      TableName t = server.name("agg");
      try {
        server.connection.getAdmin().createTable(TableDescriptorBuilder.newBuilder(t).setCoprocessor(AGGREGATE)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
      } catch (DoNotRetryIOException e) {
        // the real server as it comes from Maven lacks hbase-endpoint
        yes(e.getMessage(), e.getMessage().contains("cannot be loaded"));
        return;
      }
      try (Table table = server.connection.getTable(t)) {
        for (long i = 1; i <= 100; i++) {
          table.put(new Put(b(String.format("r%03d", i))).addColumn(b("f"), b("n"), Bytes.toBytes(i)));
        }
        FileDescriptor file = aggregateService();
        Descriptor input = file.findMessageTypeByName("AggregateRequest");
        Descriptor output = file.findMessageTypeByName("AggregateResponse");
        Scan scan = new Scan().addColumn(b("f"), b("n")).withStartRow(b("r011"));
        DynamicMessage request = DynamicMessage.newBuilder(input)
          .setField(input.findFieldByNumber(1), "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter")
          .setField(input.findFieldByNumber(2), ProtobufUtil.toScan(scan).toByteString()).build();
        Object[][] rows = { { "GetMax", 100L }, { "GetMin", 11L }, { "GetSum", 4995L }, { "GetAvg", 4995L },
          { "GetStd", 4995L }, { "GetMedian", 4995L } };
        for (Object[] row : rows) {
          MethodDescriptor method = file.findServiceByName("AggregateService").findMethodByName((String) row[0]);
          DynamicMessage reply = (DynamicMessage) table.coprocessorService(b("r")).callBlockingMethod(method, null,
            request, DynamicMessage.getDefaultInstance(output));
          ByteString first = (ByteString) reply.getRepeatedField(output.findFieldByNumber(1), 0);
          same((String) row[0], row[1], LongMsg.parseFrom(first).getLongMsg());
          if (row[0].equals("GetAvg") || row[0].equals("GetStd")) {
            ByteString second = (ByteString) reply.getField(output.findFieldByNumber(2));
            same("rows", 90L, ByteBuffer.wrap(second.toByteArray()).getLong());
          }
        }
        MethodDescriptor method = file.findServiceByName("AggregateService").findMethodByName("GetRowNum");
        DynamicMessage reply = (DynamicMessage) table.coprocessorService(b("r")).callBlockingMethod(method, null,
          request, DynamicMessage.getDefaultInstance(output));
        ByteString first = (ByteString) reply.getRepeatedField(output.findFieldByNumber(1), 0);
        same("GetRowNum", 90L, ByteBuffer.wrap(first.toByteArray()).getLong());
      }
    });
  }
}
