package dev.pglock.sample.postgres;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a server says about itself in {@code postmaster.pid}. The file is PostgreSQL's, hence never out of step with the
 * server, but it survives a crash: the process may be dead, or the number by now somebody else's.
 *
 * @see <a href="https://www.postgresql.org/docs/current/storage-file-layout.html">Database File Layout</a>
 */
record PostmasterPid(long pid, int port) {

    private static final int PID_LINE = 0;

    private static final int PORT_LINE = 3;

    /** Returns null if there is no such file or the server has not got round to writing all of it. */
    static @Nullable PostmasterPid read(Path file) throws IOException {
        try {
            List<String> lines = Files.readAllLines(file);
            return lines.size() <= PORT_LINE
                    ? null
                    : new PostmasterPid(
                            Long.parseLong(lines.get(PID_LINE).strip()),
                            Integer.parseInt(lines.get(PORT_LINE).strip()));
        } catch (NoSuchFileException | NumberFormatException ex) {
            return null;
        }
    }

    /**
     * The program that the process runs, or null if it is none of ours. A recycled number is not, nor is a zombie (in a
     * container whose process 1 does not collect orphans a dead server stays one). Asked before the process is waited
     * for and, above all, before pg_ctl sends it a signal.
     */
    @Nullable
    Path programOf(PostgresBinaries binaries) {
        return ProcessHandle.of(this.pid)
                .flatMap(process -> process.info().command())
                .map(Path::of)
                .filter(program -> program.startsWith(binaries.root()))
                .orElse(null);
    }
}
