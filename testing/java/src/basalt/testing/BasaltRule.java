package basalt.testing;

import org.junit.rules.ExternalResource;

/** For JUnit 4: {@code @ClassRule public static final BasaltRule BASALT = new BasaltRule();} starts one server for a class. */
public class BasaltRule extends ExternalResource {
  private final BasaltTestingUtility utility = new BasaltTestingUtility();

  /** The server. */
  public BasaltTestingUtility getTestingUtility() {
    return utility;
  }

  @Override
  protected void before() throws Throwable {
    utility.startMiniCluster();
  }

  @Override
  protected void after() {
    try {
      utility.shutdownMiniCluster();
    } catch (Exception error) {
      throw new IllegalStateException("the server did not end", error);
    }
  }
}
