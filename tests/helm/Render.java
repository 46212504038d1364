import com.marcnuri.helm.Helm;
import com.marcnuri.helm.LintResult;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Real Helm, as a library: lints a chart strictly, and renders it once for each values file of a folder. `java Render.java CHART
 * FOLDER` writes FOLDER/lint.txt, and beside each NAME.yaml what it comes to: NAME.out, or NAME.err with Helm's complaint. One
 * virtual machine for all of them, since its start takes longer than Helm does.
 */
public class Render {
    private static final String KUBERNETES = "v1.31.0";

    public static void main(String[] arguments) throws Exception {
        Helm helm = new Helm(Path.of(arguments[0]));
        Path folder = Path.of(arguments[1]);
        LintResult lint = helm.lint().strict().call();
        Files.writeString(folder.resolve("lint.txt"), (lint.isFailed() ? "failed\n" : "passed\n") + String.join("\n", lint.getMessages()));
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.yaml")) {
            for (Path values : files) {
                String name = values.getFileName().toString().replace(".yaml", "");
                try {
                    String said = helm.template().withKubeVersion(KUBERNETES).withName("team").withNamespace("agents").withValuesFile(values).call();
                    Files.writeString(folder.resolve(name + ".out"), said);
                    // An install that talks to no cluster: the only way to NOTES.txt.
                    String notes = helm.install().clientOnly().dryRun().withName("team").withNamespace("agents").withValuesFile(values).call().getOutput();
                    Files.writeString(folder.resolve(name + ".notes"), notes);
                } catch (RuntimeException refused) {
                    Files.writeString(folder.resolve(name + ".err"), String.valueOf(refused.getMessage()));
                }
            }
        }
    }
}
