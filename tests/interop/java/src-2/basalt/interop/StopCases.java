package basalt.interop;

import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;

/** What ends the server: the last call that it answers. Whoever started it waits for its end. */
public final class StopCases {
  private StopCases() {
  }

  public static void run(Check check, Server server) throws Exception {
    Answers answers = new Answers(check, "stop-answers.txt");
    try (Connection connection = server.connect("hbase.client.retries.number", "2"); Admin admin = connection.getAdmin()) {
      answers.say("stopMaster", () -> {
        admin.stopMaster();
        return "asked";
      });
    }
    answers.finish();
  }
}
