package dev.pglock.sample.lab.replica;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.annotation.Profile;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;
import tools.jackson.databind.json.JsonMapper;

/**
 * The replica's end of the pipe to the lab: events go out on standard output, one JSON object a line, and commands come in
 * on standard input, one a line. The end of the input is the end of the lab, and then of this process. Thread-safe; telling
 * never blocks, because listeners of locks must not.
 */
@Component
@Profile("lab")
class Pipe {

    private final BlockingQueue<Map<String, Object>> outgoing = new LinkedBlockingQueue<>();

    private final JsonMapper json = new JsonMapper();

    private volatile Consumer<String[]> commands = command -> {};

    Pipe() {
        start("lab-out", this::write);
        start("lab-in", this::read);
    }

    /**
     * Queues one event: its kind, then names and values in turn; null values are left out. The time of this call goes with
     * it, because the way to the lab takes longer on a machine that has more to do.
     */
    void tell(String kind, @Nullable Object... pairs) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("kind", kind);
        event.put("told", System.currentTimeMillis());
        for (int i = 0; i < pairs.length; i += 2) {
            Object value = pairs[i + 1];
            if (value != null) {
                event.put(Objects.requireNonNull(pairs[i]).toString(), value);
            }
        }
        this.outgoing.add(event);
    }

    /** Who is given the commands, split into words, on a thread that must not be kept. */
    void onCommand(Consumer<String[]> listener) {
        this.commands = listener;
    }

    @EventListener
    void sayThatItIsReady(ApplicationReadyEvent event) {
        tell("READY");
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void write() {
        try {
            while (true) {
                System.out.println(this.json.writeValueAsString(this.outgoing.take()));
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private void read() {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                this.commands.accept(line.split(" "));
            }
        } catch (IOException ex) {
            // As its end: nobody is there any more.
        }
        // The lab was killed and could end nobody. A halt, because a stop in good order may wait for a database that is
        // gone.
        Runtime.getRuntime().halt(1);
    }
}
