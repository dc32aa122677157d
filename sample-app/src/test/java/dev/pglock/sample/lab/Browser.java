package dev.pglock.sample.lab;

import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A headless Chromium, driven by chromedriver over its own protocol (https://www.w3.org/TR/webdriver2/): a handful of requests
 * that need no library.
 */
final class Browser implements AutoCloseable {

    private static final List<Path> DRIVERS = List.of(
            Path.of("/usr/bin/chromedriver"),
            Path.of("/usr/local/bin/chromedriver"),
            Path.of("/usr/lib/chromium-browser/chromedriver"));

    private static final List<Path> BROWSERS = List.of(
            Path.of("/usr/bin/chromium"), Path.of("/usr/bin/chromium-browser"), Path.of("/usr/bin/google-chrome"));

    private final HttpClient http = HttpClient.newHttpClient();

    private final JsonMapper json = new JsonMapper();

    private final Process driver;

    private final String session;

    private Browser(Path driverProgram, Path browserProgram, Path profile) throws IOException, InterruptedException {
        int port;
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        this.driver = new ProcessBuilder(driverProgram.toString(), "--port=" + port)
                .redirectErrorStream(true)
                .redirectOutput(profile.resolve("driver.log").toFile())
                .start();
        String url = "http://127.0.0.1:" + port;
        await().atMost(Duration.ofSeconds(20))
                .ignoreExceptions()
                .until(() -> request("GET", url + "/status", null).path("ready").asBoolean());
        JsonNode created = request(
                "POST",
                url + "/session",
                Map.of(
                        "capabilities",
                        Map.of(
                                "alwaysMatch",
                                Map.of(
                                        "goog:loggingPrefs",
                                        Map.of("browser", "ALL"),
                                        "goog:chromeOptions",
                                        Map.of(
                                                "binary",
                                                browserProgram.toString(),
                                                "args",
                                                List.of(
                                                        "--headless=new",
                                                        "--no-sandbox",
                                                        "--disable-gpu",
                                                        "--disable-quic",
                                                        "--no-first-run",
                                                        "--disable-background-networking",
                                                        "--disable-component-update",
                                                        "--disable-sync",
                                                        "--disable-dev-shm-usage",
                                                        "--hide-scrollbars",
                                                        // A frame a second: it draws without a graphics card.
                                                        "--force-prefers-reduced-motion",
                                                        "--user-data-dir=" + profile.resolve("profile")))))));
        this.session = url + "/session/" + created.path("sessionId").asString();
    }

    /** Skips the test, with the reason, where there is none. */
    static Browser open(Path directory) throws IOException, InterruptedException {
        @Nullable Path driver = first(DRIVERS);
        @Nullable Path browser = first(BROWSERS);
        assumeTrue(
                driver != null && browser != null,
                "There is no Chromium with chromedriver here; on Debian: apt-get install chromium chromium-driver");
        return new Browser(Objects.requireNonNull(driver), Objects.requireNonNull(browser), directory);
    }

    private static @Nullable Path first(List<Path> programs) {
        return programs.stream().filter(Files::isExecutable).findFirst().orElse(null);
    }

    void go(String url) throws IOException, InterruptedException {
        JsonNode ignored = request("POST", this.session + "/url", Map.of("url", url));
    }

    /** Runs a function body in the page; returns what it returns. */
    JsonNode run(String script, Object... arguments) throws IOException, InterruptedException {
        return request("POST", this.session + "/execute/sync", Map.of("script", script, "args", List.of(arguments)));
    }

    /** Waits until there is an element. */
    void awaitElement(String selector, Duration atMost) {
        await(selector).atMost(atMost).until(() -> count(selector) > 0);
    }

    int count(String selector) throws IOException, InterruptedException {
        return run("return document.querySelectorAll(arguments[0]).length", selector)
                .asInt();
    }

    String text(String selector) throws IOException, InterruptedException {
        return run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
                .asString();
    }

    /** As a person does: an element that cannot be clicked fails. */
    void click(String selector) throws IOException, InterruptedException {
        JsonNode element =
                request("POST", this.session + "/element", Map.of("using", "css selector", "value", selector));
        String id = element.properties().iterator().next().getValue().asString();
        JsonNode ignored = request("POST", this.session + "/element/" + id + "/click", Map.of());
    }

    /** As wide and as high as that, in the light or the dark theme. */
    void look(int width, int height, String theme) throws IOException, InterruptedException {
        JsonNode ignored = command(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", width < 600));
        ignored = command(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", theme))));
    }

    void screenshot(Path file) throws IOException, InterruptedException {
        // The pointer is where a button was clicked last.
        JsonNode moved = command("Input.dispatchMouseEvent", Map.of("type", "mouseMoved", "x", 4, "y", 4));
        // A full frame later, so that what was asked for before is on it.
        JsonNode ignored = run("document.activeElement?.blur(); return new Promise(done => setTimeout(done, 300))");
        String image = command("Page.captureScreenshot", Map.of("format", "png"))
                .path("data")
                .asString();
        Files.createDirectories(Objects.requireNonNull(file.getParent()));
        Files.write(file, Base64.getDecoder().decode(image));
    }

    /** What the page has written to the console, since this was last asked. */
    List<String> console() throws IOException, InterruptedException {
        return request("POST", this.session + "/se/log", Map.of("type", "browser"))
                .valueStream()
                .map(entry -> entry.path("level").asString() + " "
                        + entry.path("message").asString())
                .toList();
    }

    private JsonNode command(String name, Map<String, Object> parameters) throws IOException, InterruptedException {
        return request("POST", this.session + "/goog/cdp/execute", Map.of("cmd", name, "params", parameters));
    }

    private JsonNode request(String method, String url, @Nullable Object body)
            throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                .timeout(Duration.ofSeconds(60))
                .method(
                        method,
                        body == null
                                ? BodyPublishers.noBody()
                                : BodyPublishers.ofString(this.json.writeValueAsString(body)))
                .build();
        JsonNode value = this.json
                .readTree(this.http.send(request, BodyHandlers.ofString()).body())
                .path("value");
        if (value.has("error")) {
            throw new IllegalStateException(url + ": " + value.path("message").asString());
        }
        return value;
    }

    @Override
    public void close() throws IOException, InterruptedException {
        try {
            JsonNode ignored = request("DELETE", this.session, null);
        } finally {
            this.driver.destroy();
            if (!this.driver.waitFor(10, TimeUnit.SECONDS)) {
                this.driver.destroyForcibly();
            }
        }
    }
}
