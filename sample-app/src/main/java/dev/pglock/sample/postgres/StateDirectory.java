package dev.pglock.sample.postgres;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;

/** All that instances of the sample have to know of each other, as files. */
record StateDirectory(Path path) {

    /** Below the temporary directory, one for each operating system user: servers and passwords are not shared. */
    static Path ofThisUser() {
        String user = System.getProperty("user.name", "").replaceAll("[^A-Za-z0-9._-]", "_");
        return Path.of(System.getProperty("java.io.tmpdir"), "pglock-sample-" + user);
    }

    static StateDirectory open(Path path) {
        try {
            return new StateDirectory(createPrivately(path.toAbsolutePath().normalize()));
        } catch (IOException ex) {
            throw new SharedPostgresException(
                    "The directory " + path + " for the embedded PostgreSQL cannot be created or is not ours", ex);
        }
    }

    /**
     * Only the owner may set permissions, so that this refuses a directory which somebody else has put there, and
     * PostgreSQL's password and data stay private in a temporary directory that everybody can write to.
     */
    static Path createPrivately(Path path) throws IOException {
        Files.createDirectories(path);
        if (Files.getFileAttributeView(path, PosixFileAttributeView.class) != null) {
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwx------"));
        }
        return path;
    }

    Path decisionLock() {
        return this.path.resolve("decision.lock");
    }

    Path instancesLock() {
        return this.path.resolve("instances.lock");
    }

    Path data() {
        return this.path.resolve("data");
    }

    /** PostgreSQL's own record of the running server. */
    Path postmasterPid() {
        return data().resolve("postmaster.pid");
    }

    Path password() {
        return this.path.resolve("password");
    }

    Path serverLog() {
        return this.path.resolve("postgres.log");
    }

    Path commandLog() {
        return this.path.resolve("command.log");
    }

    /** Tolerates that files vanish meanwhile: a dying server removes its own. */
    static void deleteRecursively(Path root) throws IOException {
        if (Files.notExists(root)) {
            return;
        }
        Files.walkFileTree(root, new SimpleFileVisitor<>() {

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException failure) throws IOException {
                if (failure instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE;
                }
                throw failure;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException failure)
                    throws IOException {
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
