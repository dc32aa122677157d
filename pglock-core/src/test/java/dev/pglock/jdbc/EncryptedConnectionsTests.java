package dev.pglock.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.RestartableServer;
import dev.pglock.testing.TcpProxy;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A server that speaks TLS, whose certificate the driver is told to check by the URL. */
@Tag("long")
class EncryptedConnectionsTests {

    private static final Duration LEASE = Duration.ofSeconds(6);
    private static final String PASSWORD = "changeit";

    /** By how they are encrypted: true, false. */
    private static final String SESSIONS =
            "SELECT string_agg(DISTINCT ssl::text, ',') FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                    + " WHERE datname = current_database() AND application_name LIKE 'pglock:%'";

    private static final String LISTENS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2";

    @TempDir
    static Path files;

    private static RestartableServer server;

    private final ReplicaStores stores = ReplicaStores.withTable(server.server().newDatabase());
    private final ExecutorService threads = Executors.newCachedThreadPool();

    @BeforeAll
    static void startServer() throws Exception {
        writeCertificate();
        server = RestartableServer.start(Map.of(
                "ssl",
                "on",
                "ssl_cert_file",
                file("server.crt").toString(),
                "ssl_key_file",
                file("server.key").toString()));
    }

    @AfterAll
    static void stopServer() {
        if (server != null) {
            server.close();
        }
    }

    @AfterEach
    void close() throws Exception {
        threads.shutdownNow();
        stores.close();
    }

    private static Path file(String name) {
        return files.resolve(name);
    }

    /** Of {@code localhost}, by nobody but itself, with the tool that every JDK has. */
    private static void writeCertificate() throws Exception {
        Path store = file("server.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-alias",
                        "server",
                        "-keyalg",
                        "EC",
                        "-dname",
                        "CN=localhost",
                        "-ext",
                        "san=dns:localhost",
                        "-validity",
                        "30",
                        "-keystore",
                        store.toString(),
                        "-storetype",
                        "PKCS12",
                        "-storepass",
                        PASSWORD)
                .inheritIO()
                .start();
        assertThat(keytool.waitFor(60, TimeUnit.SECONDS)).isTrue();
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD.toCharArray());
        }
        write(
                "server.key",
                "PRIVATE KEY",
                keys.getKey("server", PASSWORD.toCharArray()).getEncoded());
        write("server.crt", "CERTIFICATE", keys.getCertificate("server").getEncoded());
    }

    private static void write(String name, String kind, byte[] content) throws Exception {
        String lines = Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII))
                .encodeToString(content);
        Files.writeString(file(name), "-----BEGIN " + kind + "-----\n" + lines + "\n-----END " + kind + "-----\n");
        Files.setPosixFilePermissions(file(name), PosixFilePermissions.fromString("rw-------"));
    }

    private static String checked(String url) {
        return url + "?sslmode=verify-full&sslrootcert=" + file("server.crt");
    }

    private LockEngine engine(String label, String url) {
        StoreIdentity identity = StoreIdentity.random("tls", label);
        return LockEngine.builder(EngineSettings.defaults("tls", label, LockStrategy.LEASE)
                        .withLease(LEASE, null))
                .store(stores.lease(identity, url, LEASE, 2))
                .store(stores.store(identity, url, LEASE, 100))
                .wakeUps(new NotifiedWakeUps(stores.sessions(identity, url, LEASE)))
                .build();
    }

    private static LockRequest request(LockStrategy strategy) {
        return LockRequest.of("n " + strategy).strategy(strategy).waitTimeout(Duration.ofSeconds(20));
    }

    @Test
    void allSessionsAreEncryptedAndChecked() throws Exception {
        try (LockEngine a = engine("A", checked(stores.database().url()));
                LockEngine b = engine("B", checked(stores.database().url()))) {
            for (LockStrategy strategy : new LockStrategy[] {LockStrategy.LEASE, LockStrategy.ADVISORY}) {
                LockHandle lock = a.tryAcquire(request(strategy)).orElseThrow();
                Future<Boolean> waiter = threads.submit(() -> {
                    try (LockHandle handedOver = b.acquire(request(strategy))) {
                        return handedOver.isHeld();
                    }
                });
                await().until(() -> stores.database().number(LISTENS) == 1);
                assertThat(stores.database().text(SESSIONS)).isEqualTo("true");
                assertThat(lock.release()).isTrue();
                assertThat(waiter.get(10, TimeUnit.SECONDS)).isTrue();
                await().until(() -> stores.database().number(LISTENS) == 0);
            }
            assertThat(a.<String>onConnection(request(LockStrategy.ADVISORY), connection -> "worked"))
                    .isEqualTo("worked");
            assertThat(stores.database().text(SESSIONS)).isEqualTo("true");
        }
    }

    @Test
    void aCertificateThatNobodyVouchesForIsRefused() {
        String url = stores.database().url() + "?sslmode=verify-full&sslrootcert=" + file("nobody.crt");
        try (LockEngine a = engine("A", url)) {
            for (LockStrategy strategy : new LockStrategy[] {LockStrategy.LEASE, LockStrategy.ADVISORY}) {
                assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> a.tryAcquire(request(strategy)));
            }
        }
    }

    /** Whoever closes an encrypted connection says goodbye, which is not to be waited for. */
    @Test
    void inABlackHoleLocksAreLostInTimeAndAStopIsBounded() {
        try (TcpProxy wire = TcpProxy.to(stores.database().server());
                LockEngine a = engine("A", checked(stores.database().url(wire)))) {
            LockHandle lease = a.tryAcquire(request(LockStrategy.LEASE)).orElseThrow();
            LockHandle advisory = a.tryAcquire(request(LockStrategy.ADVISORY)).orElseThrow();
            await().until(() -> stores.database().text(SESSIONS).equals("true"));

            wire.stall();
            await().atMost(LEASE).until(() -> !lease.isHeld() && !advisory.isHeld());
            long asked = System.nanoTime();
            for (LockStrategy strategy : new LockStrategy[] {LockStrategy.LEASE, LockStrategy.ADVISORY}) {
                assertThatExceptionOfType(LockStorageException.class)
                        .isThrownBy(() -> a.tryAcquire(LockRequest.of("another").strategy(strategy)));
            }
            assertThat(Duration.ofNanos(System.nanoTime() - asked)).isLessThan(LEASE.multipliedBy(2));

            long closing = System.nanoTime();
            a.close();
            assertThat(Duration.ofNanos(System.nanoTime() - closing)).isLessThan(Duration.ofSeconds(5));
        }
    }
}
