package basalt.testing;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** For JUnit 5: {@code @RegisterExtension static final BasaltExtension BASALT = new BasaltExtension();} starts one server for a class. */
public class BasaltExtension implements BeforeAllCallback, AfterAllCallback {
  private final BasaltTestingUtility utility = new BasaltTestingUtility();

  /** The server. */
  public BasaltTestingUtility getTestingUtility() {
    return utility;
  }

  @Override
  public void beforeAll(ExtensionContext context) throws Exception {
    utility.startMiniCluster();
  }

  @Override
  public void afterAll(ExtensionContext context) throws Exception {
    utility.shutdownMiniCluster();
  }
}
