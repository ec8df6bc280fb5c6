// One OpenSearch node in this process, with its plugins on the class path: arguments are settings, name=value.
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

public final class TestNode extends Node {
  private TestNode(Settings settings, Path home) {
    super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home, () -> "test"), List.of(Netty4Plugin.class, ReindexPlugin.class, KNNPlugin.class), false);
  }

  public static void main(String[] arguments) throws Exception {
    Settings.Builder settings = Settings.builder();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    TestNode node = new TestNode(settings.build(), Path.of(settings.get("path.home")));
    CountDownLatch ended = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        node.close();
      } catch (Exception error) {
        System.err.println(error);
      } finally {
        ended.countDown();
      }
    }));
    node.start();
    ended.await();
  }
}
