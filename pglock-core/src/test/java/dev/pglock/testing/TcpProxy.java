package dev.pglock.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A network between a client and PostgreSQL, on a free port of the loopback interface. It can be cut, stalled, slowed
 * down, made to swallow what is sent or to refuse connections, and it counts what really goes over the wire. Whatever was
 * done to it, {@link #resume} undoes. Unencrypted connections only. Thread-safe.
 */
public final class TcpProxy implements AutoCloseable {

    /** The two directions. */
    public enum Way {
        TO_SERVER,
        TO_CLIENT
    }

    private final ServerSocket server;
    private final Set<Link> links = ConcurrentHashMap.newKeySet();
    private final AtomicLong opened = new AtomicLong();
    private final FrontendCounter counter = new FrontendCounter();
    private final AtomicBoolean losesNextAnswer = new AtomicBoolean();

    private final ReentrantLock guard = new ReentrantLock();
    private final Condition changed = guard.newCondition();
    private final Set<Way> stalled = EnumSet.noneOf(Way.class);
    private final Set<Way> dropping = EnumSet.noneOf(Way.class);

    private volatile InetSocketAddress target;
    private volatile boolean refusing;
    private volatile long delayNanos;

    private TcpProxy(PostgresServer target) throws IOException {
        this.target = address(target);
        this.server = new ServerSocket(0, 100, InetAddress.getByName("localhost"));
        start("accept", this::accept);
    }

    /** A proxy in front of a server. */
    public static TcpProxy to(PostgresServer server) {
        try {
            return new TcpProxy(server);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public int port() {
        return server.getLocalPort();
    }

    /** How often the client has asked and waited: Sync and simple Query messages. */
    public long roundTrips() {
        return counter.roundTrips();
    }

    /** How many statements the client has had executed: Execute and simple Query messages. */
    public long statements() {
        return counter.statements();
    }

    /** How many connections were opened so far. */
    public long connections() {
        return opened.get();
    }

    // ---- faults

    /** Ends all connections, now. New ones are let through. */
    public void cut() {
        links.forEach(Link::close);
    }

    /** Ends all connections, and every new one as soon as it is opened, until {@link #resume}: a server that is gone. */
    public void refuse() {
        refusing = true;
        cut();
    }

    /** Lets nothing through any more, in either direction, and keeps the sockets open: a black hole. */
    public void stall() {
        stall(Way.TO_SERVER);
        stall(Way.TO_CLIENT);
    }

    /** Lets nothing through that way. What is held up arrives, late, with {@link #resume}. */
    public void stall(Way way) {
        change(() -> stalled.add(way));
    }

    /** Swallows what is sent that way. With {@link #resume}, connections that have lost something are cut. */
    public void drop(Way way) {
        change(() -> dropping.add(way));
    }

    /** Lets everything take that much longer, in each direction. */
    public void delay(Duration delay) {
        delayNanos = delay.toNanos();
    }

    /** Lets the next message of the server get lost, and with it the connection. */
    public void loseNextAnswer() {
        losesNextAnswer.set(true);
    }

    /** Leads new connections to another server, as a name that is changed after a failover, and ends the old ones. */
    public void redirect(PostgresServer other) {
        target = address(other);
        cut();
    }

    /** Undoes all of it: what was held up arrives, and what comes is let through. */
    public void resume() {
        refusing = false;
        delayNanos = 0;
        change(() -> {
            stalled.clear();
            dropping.clear();
        });
        links.stream().filter(link -> link.hasLost).forEach(Link::close);
    }

    @Override
    public void close() {
        closeQuietly(server);
        resume();
        cut();
    }

    // ----

    private static InetSocketAddress address(PostgresServer server) {
        return new InetSocketAddress(server.host(), server.port());
    }

    private void change(Runnable change) {
        guard.lock();
        try {
            change.run();
            changed.signalAll();
        } finally {
            guard.unlock();
        }
    }

    /** Waits until what goes that way may pass; false if it gets lost. */
    private boolean passes(Way way) {
        guard.lock();
        try {
            while (stalled.contains(way)) {
                changed.awaitUninterruptibly();
            }
            return !dropping.contains(way);
        } finally {
            guard.unlock();
        }
    }

    private void accept() throws IOException {
        while (!server.isClosed()) {
            Socket client = server.accept();
            opened.incrementAndGet();
            if (refusing) {
                closeQuietly(client);
                continue;
            }
            Link link = new Link(client);
            links.add(link);
            start("frontend", link::forwardFrontend);
        }
    }

    private interface Io {
        void run() throws IOException;
    }

    private static void start(String name, Io work) {
        Thread thread = new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (IOException e) {
                        // The end of a connection, as a test or a peer wanted it.
                    }
                },
                "proxy-" + name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            // It is gone, which is all that was asked for.
        }
    }

    private final class Link {

        private final Socket client;
        private final Socket backend = new Socket();
        private final FrontendCounter.Stream sent = counter.stream();
        private volatile boolean hasLost;

        Link(Socket client) throws IOException {
            this.client = client;
            client.setTcpNoDelay(true);
        }

        void forwardFrontend() throws IOException {
            try {
                // Even a connection is only made where packets go both ways.
                hasLost = !(passes(Way.TO_SERVER) & passes(Way.TO_CLIENT));
                backend.connect(target);
                backend.setTcpNoDelay(true);
                start("backend", this::forwardBackend);
                pump(Way.TO_SERVER, client.getInputStream(), backend.getOutputStream());
            } finally {
                close();
            }
        }

        private void forwardBackend() throws IOException {
            try {
                pump(Way.TO_CLIENT, backend.getInputStream(), client.getOutputStream());
            } finally {
                close();
            }
        }

        private void pump(Way way, InputStream in, OutputStream out) throws IOException {
            byte[] buffer = new byte[64 * 1024];
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (way == Way.TO_SERVER) {
                    sent.read(buffer, n);
                } else if (losesNextAnswer.compareAndSet(true, false)) {
                    return;
                }
                delay();
                hasLost |= !passes(way);
                if (!hasLost) {
                    out.write(buffer, 0, n);
                    out.flush();
                }
            }
        }

        private void delay() throws IOException {
            try {
                TimeUnit.NANOSECONDS.sleep(delayNanos);
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        }

        void close() {
            links.remove(this);
            closeQuietly(client);
            closeQuietly(backend);
        }
    }
}
