package dev.pglock.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A network between a client and PostgreSQL. It counts what really goes over the wire, by reading the frontend's messages,
 * and it can be cut, stalled, or made to lose an answer. Unencrypted connections only.
 */
public final class TcpProxy implements AutoCloseable {

    private final String host;
    private final int target;
    private final ServerSocket server;
    private final Set<Link> links = ConcurrentHashMap.newKeySet();
    private final AtomicLong opened = new AtomicLong();
    private final AtomicLong roundTrips = new AtomicLong();
    private final AtomicLong statements = new AtomicLong();
    private final AtomicBoolean losesNextAnswer = new AtomicBoolean();

    private final ReentrantLock guard = new ReentrantLock();
    private final Condition resumed = guard.newCondition();
    private boolean stalled;
    private volatile long delayNanos;

    private TcpProxy(String host, int target) throws IOException {
        this.host = host;
        this.target = target;
        this.server = new ServerSocket(0, 100, InetAddress.getByName("localhost"));
        start("accept", this::accept);
    }

    /** A proxy in front of a server. */
    public static TcpProxy to(PostgresServer server) {
        try {
            return new TcpProxy(server.host(), server.port());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public int port() {
        return server.getLocalPort();
    }

    /** How often the client has asked and waited: Sync and simple Query messages. */
    public long roundTrips() {
        return roundTrips.get();
    }

    /** How many statements the client has had executed: Execute and simple Query messages. */
    public long statements() {
        return statements.get();
    }

    /** How many connections were opened so far. */
    public long connections() {
        return opened.get();
    }

    /** Ends all connections, now. New ones are let through. */
    public void cut() {
        links.forEach(Link::close);
    }

    /** Lets nothing through any more, in either direction, and keeps the sockets open: a black hole. */
    public void stall() {
        setStalled(true);
    }

    /** Lets everything through that was held up, and what comes. */
    public void resume() {
        setStalled(false);
    }

    /** Makes each answer come that much later: a server that is further away. */
    public void delay(Duration delay) {
        delayNanos = delay.toNanos();
    }

    /** Lets the next message of the server get lost, and with it the connection. */
    public void loseNextAnswer() {
        losesNextAnswer.set(true);
    }

    @Override
    public void close() {
        closeQuietly(server);
        resume();
        cut();
    }

    private void setStalled(boolean value) {
        guard.lock();
        try {
            stalled = value;
            resumed.signalAll();
        } finally {
            guard.unlock();
        }
    }

    private void awaitPassage() {
        guard.lock();
        try {
            while (stalled) {
                resumed.awaitUninterruptibly();
            }
        } finally {
            guard.unlock();
        }
    }

    private void accept() throws IOException {
        while (!server.isClosed()) {
            Socket client = server.accept();
            opened.incrementAndGet();
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
        private final FrontendParser parser = new FrontendParser();

        Link(Socket client) throws IOException {
            this.client = client;
            client.setTcpNoDelay(true);
        }

        void forwardFrontend() throws IOException {
            try {
                awaitPassage();
                backend.connect(new java.net.InetSocketAddress(host, target));
                backend.setTcpNoDelay(true);
                start("backend", this::forwardBackend);
                pump(client.getInputStream(), backend.getOutputStream(), true);
            } finally {
                close();
            }
        }

        private void forwardBackend() throws IOException {
            try {
                pump(backend.getInputStream(), client.getOutputStream(), false);
            } finally {
                close();
            }
        }

        private void pump(InputStream in, OutputStream out, boolean frontend) throws IOException {
            byte[] buffer = new byte[64 * 1024];
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (frontend) {
                    parser.read(buffer, n);
                } else if (losesNextAnswer.compareAndSet(true, false)) {
                    return;
                }
                awaitPassage();
                if (!frontend && delayNanos > 0) {
                    LockSupport.parkNanos(delayNanos);
                }
                out.write(buffer, 0, n);
                out.flush();
            }
        }

        void close() {
            links.remove(this);
            closeQuietly(client);
            closeQuietly(backend);
        }
    }

    /** Finds the messages in what a client sends: a type byte but for the first ones, a length, a body. */
    private final class FrontendParser {

        private static final int SSL_REQUEST = 80877103;
        private static final int GSS_REQUEST = 80877104;

        private boolean started;
        private final byte[] head = new byte[8];
        private int headLength;
        private long bodyLeft;

        void read(byte[] bytes, int length) {
            for (int i = 0; i < length; i++) {
                if (bodyLeft > 0) {
                    long skipped = Math.min(bodyLeft, length - i);
                    bodyLeft -= skipped;
                    i += (int) skipped - 1;
                    continue;
                }
                head[headLength++] = bytes[i];
                if (started && headLength == 5) {
                    bodyLeft = number(1) - 4L;
                    count((char) head[0]);
                    headLength = 0;
                } else if (!started && headLength == 8) {
                    int code = number(4);
                    bodyLeft = number(0) - 8L;
                    started = code != SSL_REQUEST && code != GSS_REQUEST;
                    headLength = 0;
                }
            }
        }

        private int number(int at) {
            return (head[at] & 0xff) << 24
                    | (head[at + 1] & 0xff) << 16
                    | (head[at + 2] & 0xff) << 8
                    | (head[at + 3] & 0xff);
        }

        private void count(char type) {
            switch (type) {
                case 'S' -> roundTrips.incrementAndGet();
                case 'E' -> statements.incrementAndGet();
                case 'Q' -> {
                    roundTrips.incrementAndGet();
                    statements.incrementAndGet();
                }
                default -> {
                    // Parse, Bind, Describe, Close, passwords: parts of a trip that is counted by its Sync
                }
            }
        }
    }
}
