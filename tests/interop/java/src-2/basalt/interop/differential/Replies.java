package basalt.interop.differential;

import static basalt.interop.Rows.text;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.ipc.RemoteException;

/** Replies as text that is the same for the same answer, whichever server gave it and when. */
final class Replies {
  private static final long HOUR_MS = 3_600_000;

  private Replies() {
  }

  /** HBase fell over a bug of its own: a NullPointerException and the like, not an answer to be like. */
  static boolean isFall(String reply) {
    return reply.contains("java.io.IOException") || reply.contains("OutOfOrderScannerNextException");
  }

  /** HBase did not answer in minutes. */
  static boolean isTimeout(String reply) {
    return reply.contains("TimeoutException") || reply.contains("CallQueueTooBigException");
  }

  static String of(Object reply) {
    if (reply == null) {
      return "null";
    } else if (reply instanceof Result r) {
      return of(r);
    } else if (reply instanceof CheckAndMutateResult r) {
      return r.isSuccess() + " " + of(r.getResult());
    } else if (reply instanceof Throwable e) {
      return exception(e);
    }
    return reply.toString();
  }

  static String of(Result r) {
    if (r == null) {
      return "null";
    }
    if (r.getExists() != null) {
      return "exists=" + r.getExists();
    }
    if (r.isEmpty()) {
      return "{}";
    }
    return text(r.getRow()) + "{" + String.join(" ", cells(r)) + "}";
  }

  static List<String> cells(Result r) {
    List<String> out = new ArrayList<>();
    byte[] row = r.getRow();
    for (Cell c : r.rawCells()) {
      out.add(CellUtil.matchingRows(c, row) ? cell(c) : "row " + text(CellUtil.cloneRow(c)) + "! " + cell(c));
    }
    return out;
  }

  static String cell(Cell c) {
    return text(CellUtil.cloneFamily(c)) + ":" + text(CellUtil.cloneQualifier(c)) + "@" + stamp(c.getTimestamp())
      + (c.getType() == Cell.Type.Put ? "" : "/" + c.getType()) + "=" + text(CellUtil.cloneValue(c));
  }

  /** What the servers' clocks say differs, and says nothing. */
  private static String stamp(long ms) {
    if (ms == Long.MAX_VALUE) {
      return "latest";
    }
    return Math.abs(System.currentTimeMillis() - ms) < HOUR_MS ? "now" : Long.toString(ms);
  }

  /** The class that the server named; the client's wrappings depend on timing. */
  static String exception(Throwable e) {
    if (e instanceof RetriesExhaustedWithDetailsException details) {
      TreeSet<String> causes = new TreeSet<>();
      details.getCauses().forEach(c -> causes.add(exception(c)));
      return causes.toString();
    }
    if (e instanceof RetriesExhaustedException && e.getCause() != null) {
      return exception(e.getCause());
    }
    if (e instanceof RemoteException remote) {
      return remote.getClassName();
    }
    if (e instanceof java.util.concurrent.ExecutionException && e.getCause() != null) {
      return exception(e.getCause());
    }
    return e.getClass().getName();
  }
}
