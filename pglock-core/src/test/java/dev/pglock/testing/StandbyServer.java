package dev.pglock.testing;

import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;

/** A primary and its hot standby, fed by streaming replication, with one database. A test has them to itself. */
public final class StandbyServer implements AutoCloseable {

    private static final String DATABASE = "replicated";

    private final TemporaryDirectory directory;
    private final PostgresServer primary;
    private final PostgresServer standby;

    private StandbyServer(TemporaryDirectory directory, PostgresServer primary, PostgresServer standby) {
        this.directory = directory;
        this.primary = primary;
        this.standby = standby;
    }

    /** Starts both. The test is skipped where PostgreSQL is not embedded: nobody else's server can be given a standby. */
    public static StandbyServer start() {
        assumeTrue(
                PostgresServer.isEmbedded(),
                "A standby can only be made of an embedded PostgreSQL: run without -D" + PostgresServer.CHOICE);
        try {
            TemporaryDirectory directory = TemporaryDirectory.create("pglock-standby");
            Path data = directory.path().resolve("primary");
            PostgresServer first = PostgresServer.embedded(data);
            first.execute("CREATE DATABASE " + DATABASE);
            first.close();
            Path copy = directory.path().resolve("standby");
            copy(data, copy);
            PostgresServer primary = PostgresServer.embedded(data);
            Files.createFile(copy.resolve("standby.signal"));
            Files.writeString(
                    copy.resolve("postgresql.auto.conf"),
                    "primary_conninfo = 'host=localhost port=" + primary.port() + " user=" + primary.username()
                            + "'\n");
            return new StandbyServer(directory, primary, PostgresServer.embedded(copy));
        } catch (IOException e) {
            throw new UncheckedIOException("No standby could be made", e);
        }
    }

    public PostgresServer primary() {
        return primary;
    }

    public PostgresServer standby() {
        return standby;
    }

    public TestDatabase onPrimary() {
        return primary.database(DATABASE);
    }

    public TestDatabase onStandby() {
        return standby.database(DATABASE);
    }

    /** Waits until the standby has what the primary has written. */
    public void catchUp() {
        String written = onPrimary().text("SELECT pg_current_wal_lsn()");
        await().until(() -> onStandby().isTrue("SELECT pg_last_wal_replay_lsn() >= ?::text::pg_lsn", written));
    }

    /** From now on, nothing of what the primary writes reaches the standby. */
    public void lagBehind() {
        standby.execute("ALTER SYSTEM SET primary_conninfo = ''");
        standby.execute("SELECT pg_reload_conf()");
        await().until(() -> onPrimary().isTrue("SELECT NOT EXISTS (SELECT FROM pg_stat_replication)"));
    }

    /** The primary is gone for good, and the standby takes its place. */
    public void failOver() {
        primary.close();
        standby.execute("SELECT pg_promote()");
    }

    @Override
    public void close() {
        primary.close();
        standby.close();
        directory.close();
    }

    /** The server insists on a directory that nobody else can read. */
    private static void copy(Path from, Path to) throws IOException {
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes)
                    throws IOException {
                Path copy = to.resolve(from.relativize(directory));
                Files.createDirectory(
                        copy, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.copy(file, to.resolve(from.relativize(file)), StandardCopyOption.COPY_ATTRIBUTES);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
