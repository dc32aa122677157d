package dev.pglock.sample.postgres;

import io.zonky.test.db.postgres.embedded.DefaultPostgresBinaryResolver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.tukaani.xz.XZInputStream;

/**
 * PostgreSQL's programs, unpacked once per user and version, whatever state directory they serve.
 *
 * <p>The archive is chosen by Zonky's resolver, which knows operating systems, architectures and Alpine. Unpacking is
 * done here rather than into Zonky's directory because that one is shared by all users of the machine and writable for
 * everybody.
 */
final class PostgresBinaries {

    private static final Logger log = LoggerFactory.getLogger(PostgresBinaries.class);

    private final Path root;

    private @Nullable Path unpacked;

    PostgresBinaries(Path root) {
        this.root = root;
    }

    static PostgresBinaries ofThisUser() {
        // Resolved, because the operating system reports running programs by their real path (/tmp is a link on macOS).
        Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
        try {
            temporary = temporary.toRealPath();
        } catch (IOException ex) {
            throw new SharedPostgresException("There is no temporary directory " + temporary, ex);
        }
        return new PostgresBinaries(
                temporary.resolve(StateDirectory.ofThisUser().getFileName() + "-binaries"));
    }

    /** The directory below which all versions lie. */
    Path root() {
        return this.root;
    }

    /** Only after {@link #unpack()}. */
    Path program(String name) {
        if (this.unpacked == null) {
            throw new IllegalStateException("Not unpacked");
        }
        return this.unpacked.resolve("bin").resolve(name);
    }

    void unpack() {
        if (this.unpacked != null) {
            return;
        }
        try {
            byte[] archive = archive();
            StateDirectory.createPrivately(this.root);
            Path target = this.root.resolve(digest(archive));
            try (LockFile lock = LockFile.open(this.root.resolve("unpack.lock"))) {
                lock.lock();
                if (!Files.isDirectory(target)) {
                    unpackAtomically(archive, target);
                }
            }
            this.unpacked = target;
        } catch (IOException | RuntimeException ex) {
            throw new SharedPostgresException("PostgreSQL's programs cannot be unpacked to " + this.root, ex);
        }
    }

    private static byte[] archive() throws IOException {
        String name = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String system = name.startsWith("windows") ? "Windows" : name.startsWith("mac") ? "Darwin" : "Linux";
        try (InputStream in =
                DefaultPostgresBinaryResolver.INSTANCE.getPgBinary(system, System.getProperty("os.arch"))) {
            return in.readAllBytes();
        }
    }

    /** By renaming at the end: a directory with the final name is complete, whenever we were killed. */
    private void unpackAtomically(byte[] archive, Path target) throws IOException {
        log.info("Unpacking PostgreSQL to {}", target);
        Path partial = this.root.resolve("partial");
        StateDirectory.deleteRecursively(partial);
        try (TarArchiveInputStream tar =
                new TarArchiveInputStream(new XZInputStream(new ByteArrayInputStream(archive)))) {
            for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
                write(tar, entry, partial.resolve(entry.getName()));
            }
        }
        makeExecutable(partial.resolve("bin"));
        Files.move(partial, target, StandardCopyOption.ATOMIC_MOVE);
    }

    private static void write(TarArchiveInputStream tar, TarArchiveEntry entry, Path file) throws IOException {
        if (entry.isDirectory()) {
            Files.createDirectories(file);
            return;
        }
        Files.createDirectories(file.getParent());
        if (entry.isSymbolicLink()) {
            Files.createSymbolicLink(file, Path.of(entry.getLinkName()));
        } else {
            Files.copy(tar, file);
        }
    }

    private static void makeExecutable(Path directory) throws IOException {
        List<Path> programs;
        try (Stream<Path> files = Files.list(directory)) {
            programs = files.toList();
        }
        for (Path program : programs) {
            if (!program.toFile().setExecutable(true)) {
                throw new IOException(program + " cannot be made executable");
            }
        }
    }

    private static String digest(byte[] archive) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(archive);
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException ex) {
            throw new IllegalStateException("Every Java platform has SHA-256", ex);
        }
    }
}
