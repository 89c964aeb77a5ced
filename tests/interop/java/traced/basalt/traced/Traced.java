package basalt.traced;

import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.TracerProvider;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBase's client, tracing as OpenTelemetry's agent has it trace, and the collector that the server sends its spans to: the server's spans
 * must be parts of the client's. {@code ZOOKEEPER TABLE PORT}.
 */
public final class Traced {
  private static int passed;
  private static int failed;

  private Traced() {
  }

  public static void main(String[] args) throws Exception {
    Collector collector = new Collector(Integer.parseInt(args[2]));
    List<SpanData> own = new CopyOnWriteArrayList<>();
    register(own);
    String traceId = work(args[0], TableName.valueOf(args[1]));

    byte[] trace = HexFormat.of().parseHex(traceId);
    check("the server's spans are of the client's trace", collector.has(trace));
    for (String method : List.of("hbase.pb.ClientService/Mutate", "hbase.pb.ClientService/Get")) {
      List<SpanData> calls = own.stream().filter(span -> span.getName().equals(method) && span.getTraceId().equals(traceId)).toList();
      boolean all = !calls.isEmpty();
      for (SpanData call : calls) {
        all &= collector.has(HexFormat.of().parseHex(call.getSpanId()));
      }
      check("a span of the server is a part of the client's " + method, all);
    }
    for (String name : List.of("RpcServer.process", "hbase.pb.ClientService/Get", "Region.put", "Region.get", "WAL.sync",
      "BlockIOUtils.preadWithExtra", "db.hbase.regions")) {
      check("the server sends " + name, collector.has(name.getBytes(StandardCharsets.UTF_8)));
    }
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }

  /** A put and a get of a file within one span of the application; its trace. */
  private static String work(String zookeeper, TableName name) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    String[] address = zookeeper.split(":");
    conf.set("hbase.zookeeper.quorum", address[0]);
    conf.set("hbase.zookeeper.property.clientPort", address[1]);
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
      Span span = GlobalOpenTelemetry.getTracer("application").spanBuilder("application").startSpan();
      try (Scope ignored = span.makeCurrent(); Table table = connection.getTable(name)) {
        table.put(new Put(Bytes.toBytes("r")).addColumn(Bytes.toBytes("f"), Bytes.toBytes("q"), Bytes.toBytes("v")));
        admin.flush(name);
        check("the row is there", !table.get(new Get(Bytes.toBytes("r"))).isEmpty());
      } finally {
        span.end();
      }
      return span.getSpanContext().getTraceId();
    }
  }

  private static void check(String what, boolean holds) {
    System.out.println((holds ? "ok " : "FAILED ") + what);
    passed += holds ? 1 : 0;
    failed += holds ? 0 : 1;
  }

  private static void register(List<SpanData> into) {
    SpanExporter kept = new SpanExporter() {
      @Override
      public CompletableResultCode export(Collection<SpanData> spans) {
        into.addAll(spans);
        return CompletableResultCode.ofSuccess();
      }

      @Override
      public CompletableResultCode flush() {
        return CompletableResultCode.ofSuccess();
      }

      @Override
      public CompletableResultCode shutdown() {
        return CompletableResultCode.ofSuccess();
      }
    };
    TracerProvider provider = SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(kept)).build();
    ContextPropagators propagators = ContextPropagators.create(W3CTraceContextPropagator.getInstance());
    GlobalOpenTelemetry.set(new OpenTelemetry() {
      @Override
      public TracerProvider getTracerProvider() {
        return provider;
      }

      @Override
      public ContextPropagators getPropagators() {
        return propagators;
      }
    });
  }

  /** Keeps whatever is posted. */
  private static final class Collector {
    private final ByteArrayOutputStream posted = new ByteArrayOutputStream();

    Collector(int port) throws Exception {
      HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
      server.createContext("/v1/traces", exchange -> {
        byte[] body = exchange.getRequestBody().readAllBytes();
        synchronized (posted) {
          posted.writeBytes(body);
          posted.notifyAll();
        }
        exchange.sendResponseHeaders(200, -1);
        exchange.close();
      });
      server.setExecutor(Runnable::run);
      server.start();
    }

    /** Whether the bytes come within half a minute; spans are sent every five seconds. */
    boolean has(byte[] bytes) throws InterruptedException {
      long until = System.nanoTime() + 30_000_000_000L;
      String wanted = new String(bytes, StandardCharsets.ISO_8859_1);
      synchronized (posted) {
        while (!posted.toString(StandardCharsets.ISO_8859_1).contains(wanted)) {
          long left = (until - System.nanoTime()) / 1_000_000;
          if (left <= 0) {
            return false;
          }
          posted.wait(left);
        }
        return true;
      }
    }
  }
}
