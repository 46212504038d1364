import com.marcnuri.helm.Helm;
import com.marcnuri.helm.LintResult;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Real Helm, as a library: lints a chart strictly, and renders it once for each values file of a folder. `java Render.java CHART
 * FOLDER KUBERNETES` writes FOLDER/lint.txt, and beside each NAME.yaml what it comes to: NAME.out, or NAME.err with Helm's complaint. One
 * virtual machine for all of them, since its start takes longer than Helm does.
 */
public class Render {
    public static void main(String[] arguments) throws Exception {
        Helm helm = new Helm(Path.of(arguments[0]));
        Path folder = Path.of(arguments[1]);
        LintResult lint = helm.lint().strict().call();
        String verdict = lint.isFailed() ? "failed\n" : "passed\n";
        Files.writeString(folder.resolve("lint.txt"), verdict + String.join("\n", lint.getMessages()));
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.yaml")) {
            for (Path values : files) {
                String name = values.getFileName().toString().replace(".yaml", "");
                try {
                    String said = helm.template().withName("team").withNamespace("agents").withKubeVersion(arguments[2])
                            .withValuesFile(values).call();
                    Files.writeString(folder.resolve(name + ".out"), said);
                } catch (RuntimeException refused) {
                    Files.writeString(folder.resolve(name + ".err"), String.valueOf(refused.getMessage()));
                }
            }
        }
    }
}
