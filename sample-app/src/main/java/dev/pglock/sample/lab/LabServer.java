package dev.pglock.sample.lab;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.pglock.sample.lab.Question.Answer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/**
 * The page, on this machine only. What moves goes to it as server-sent events, five times a second; what it asks for comes
 * as POST requests, which pages of other origins cannot send: it is asked for a header that needs their server's consent, and
 * for the name under which it was called.
 */
final class LabServer implements AutoCloseable {

    private static final long INTERVAL_MILLIS = 200;

    /** A page that does not read for so many messages is let go; it connects again and is told everything. */
    private static final int BACKLOG = 100;

    private static final Map<String, String> TYPES = Map.of(
            "html", "text/html; charset=utf-8",
            "css", "text/css; charset=utf-8",
            "js", "text/javascript; charset=utf-8",
            "svg", "image/svg+xml");

    private final HttpServer server;

    private final Lab lab;

    private final long startedMillis = System.currentTimeMillis();

    private final JsonMapper json = new JsonMapper();

    private final Set<BlockingQueue<String>> pages = ConcurrentHashMap.newKeySet();

    private final ExecutorService executor = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "lab-page");
        thread.setDaemon(true);
        return thread;
    });

    private volatile boolean closed;

    private LabServer(HttpServer server, Lab lab) {
        this.server = server;
        this.lab = lab;
        server.setExecutor(this.executor);
        server.createContext("/", this::answer);
    }

    /**
     * Takes the port.
     *
     * @throws LabException if it is taken
     */
    static LabServer bind(int port, Lab lab) {
        try {
            InetAddress loopback = InetAddress.getByAddress("127.0.0.1", new byte[] {127, 0, 0, 1});
            return new LabServer(HttpServer.create(new InetSocketAddress(loopback, port), 0), lab);
        } catch (BindException ex) {
            throw new LabException(
                    "Port " + port
                            + " is taken, by another lab perhaps. Nothing was started. Choose another with --lab.port="
                            + (port + 1) + ".",
                    ex);
        } catch (IOException ex) {
            throw new LabException("Port " + port + " cannot be used: " + ex.getMessage(), ex);
        }
    }

    int port() {
        return this.server.getAddress().getPort();
    }

    void start() {
        this.server.start();
        this.executor.execute(this::publish);
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String host = exchange.getRequestHeaders().getFirst("Host");
            if (!List.of("127.0.0.1:" + port(), "localhost:" + port()).contains(host)) {
                send(exchange, 403, "text/plain", "The lab is at " + this.lab.url() + " only.");
                return;
            }
            exchange.getResponseHeaders().set("Cache-Control", "no-store");
            exchange.getResponseHeaders()
                    .set("Content-Security-Policy", "default-src 'self'; style-src 'self'; img-src 'self' data:");
            String path = exchange.getRequestURI().getPath();
            if (exchange.getRequestMethod().equals("POST")) {
                post(exchange, path);
            } else if (path.equals("/events")) {
                stream(exchange);
            } else {
                file(exchange, path.equals("/") ? "/index.html" : path);
            }
        }
    }

    private void post(HttpExchange exchange, String path) throws IOException {
        if (!"1".equals(exchange.getRequestHeaders().getFirst("X-Lab"))) {
            send(exchange, 403, "text/plain", "Only the lab's page may ask for that.");
            return;
        }
        try {
            act(path.substring(1).split("/"));
            send(exchange, 200, "text/plain", "");
        } catch (RuntimeException ex) {
            send(exchange, 409, "text/plain", String.valueOf(ex.getMessage()));
        }
    }

    private void act(String[] words) {
        switch (words[0]) {
            case "questions" -> {
                if (!this.lab.questions().ask(words[1])) {
                    throw new LabException("One question at a time.");
                }
            }
            case "database" -> {
                if (words[1].equals("stop")) {
                    this.lab.stopDatabase();
                } else {
                    this.lab.startDatabase();
                }
            }
            case "replicas" -> {
                Replica replica = this.lab.replica(words[1]);
                switch (words[2]) {
                    case "kill" -> replica.kill();
                    case "freeze" -> replica.freeze();
                    case "thaw" -> replica.thaw();
                    case "cut" -> replica.cut();
                    case "mend" -> replica.mend();
                    case "stop" -> replica.terminate();
                    case "start" -> replica.start();
                    case "terminate" -> {
                        int ignored = this.lab.terminateSessions(replica.name());
                    }
                    default -> throw new LabException("Nobody can " + words[2] + " a replica.");
                }
            }
            default -> throw new LabException("There is no " + words[0] + ".");
        }
    }

    private void file(HttpExchange exchange, String path) throws IOException {
        String type = TYPES.get(path.substring(path.lastIndexOf('.') + 1));
        try (InputStream file =
                type == null || path.contains("..") ? null : LabServer.class.getResourceAsStream("/lab" + path)) {
            if (file == null || type == null) {
                send(exchange, 404, "text/plain", "There is nothing here.");
            } else {
                send(exchange, 200, type, file.readAllBytes());
            }
        }
    }

    private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
        send(exchange, status, type, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
    }

    // ---- events

    private void stream(HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
        exchange.sendResponseHeaders(200, 0);
        BlockingQueue<String> messages = new ArrayBlockingQueue<>(BACKLOG);
        try {
            OutputStream out = exchange.getResponseBody();
            // News that comes meanwhile is in both, and told twice; the page knows each by its id.
            this.pages.add(messages);
            write(out, "whole", message(this.lab.board().whole(), true));
            while (!this.closed && this.pages.contains(messages)) {
                String message = messages.poll(5, TimeUnit.SECONDS);
                if (message != null) {
                    write(out, "news", message);
                }
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } finally {
            this.pages.remove(messages);
        }
    }

    private static void write(OutputStream out, String event, String data) throws IOException {
        out.write(("event: " + event + "\ndata: " + data + "\n\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    private void publish() {
        try {
            while (!this.closed) {
                Thread.sleep(INTERVAL_MILLIS);
                String message = message(this.lab.board().news(), false);
                this.pages.removeIf(page -> !page.offer(message));
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private String message(Board.Report report, boolean whole) {
        return this.json.writeValueAsString(new Message(
                this.startedMillis,
                report,
                this.lab.replicas().stream().map(Replica::view).toList(),
                this.lab.ownsDatabase(),
                isDatabaseStopped(),
                this.lab.questions().running(),
                this.lab.questions().answers(),
                whole ? questions() : null));
    }

    private boolean isDatabaseStopped() {
        return this.lab.ownsDatabase() != null && this.lab.database().isStopped();
    }

    private List<Map<String, Object>> questions() {
        return this.lab.questions().all().stream()
                .map(question -> {
                    Map<String, Object> view = new LinkedHashMap<>();
                    view.put("id", question.id());
                    view.put("title", question.title());
                    view.put("expects", question.expects());
                    view.put("needsOwnDatabase", question.needsOwnDatabase());
                    return view;
                })
                .toList();
    }

    @Override
    public void close() {
        this.closed = true;
        this.pages.clear();
        this.server.stop(0);
        this.executor.shutdownNow();
    }

    /**
     * One message to the page.
     *
     * @param lab which lab this is: a page that finds another one at its address begins anew
     * @param report what happened
     * @param replicas all of them
     * @param ownsDatabase whether PostgreSQL may be stopped; null: it is not there yet
     * @param databaseStopped whether it is
     * @param running the question that is being answered
     * @param answers the latest to each question
     * @param questions all of them, in the first message only
     */
    record Message(
            long lab,
            Board.Report report,
            List<ReplicaView> replicas,
            @Nullable Boolean ownsDatabase,
            boolean databaseStopped,
            Questions.@Nullable Running running,
            List<Answer> answers,
            @Nullable List<Map<String, Object>> questions) {}
}
