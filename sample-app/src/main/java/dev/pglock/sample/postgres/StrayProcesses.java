package dev.pglock.sample.postgres;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What an instance leaves behind that is killed while it starts the server: {@code kill -9} of a JVM does not end its
 * initdb, which would go on to write into the data directory of the next start.
 */
final class StrayProcesses {

    private static final Logger log = LoggerFactory.getLogger(StrayProcesses.class);

    private StrayProcesses() {}

    /** Ends every process that runs a program from there on that data directory, and waits until it is gone. */
    static void kill(Path programs, Path dataDirectory) {
        List<ProcessHandle> strays = ProcessHandle.allProcesses()
                .filter(process -> runs(process, programs, dataDirectory))
                .flatMap(process -> Stream.concat(Stream.of(process), process.descendants()))
                .distinct()
                .toList();
        for (ProcessHandle stray : strays) {
            log.debug("Ending what a killed instance left behind: {}", stray.info());
            stray.destroyForcibly();
        }
        CompletableFuture.allOf(strays.stream().map(ProcessHandle::onExit).toArray(CompletableFuture<?>[]::new))
                .completeOnTimeout(null, 5, TimeUnit.SECONDS)
                .join();
    }

    private static boolean runs(ProcessHandle process, Path programs, Path dataDirectory) {
        ProcessHandle.Info info = process.info();
        return info.command()
                        .filter(command -> Path.of(command).startsWith(programs))
                        .isPresent()
                && info.arguments()
                        .filter(arguments -> List.of(arguments).contains(dataDirectory.toString()))
                        .isPresent();
    }
}
