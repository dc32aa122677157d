package dev.pglock.sample.lab;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The way of one replica to the database, on a free port of this machine. It can be a black hole: sockets stay open and
 * nothing comes through, in either direction, until it is mended; then what was held up arrives. Thread-safe.
 *
 * <p>The tests of the core have a network that can do more. It is not used here, because with {@code spring-boot:run} all of
 * their classes and resources, and with them their logging, would be on the class path of the ordinary sample.
 */
final class Relay implements AutoCloseable {

    private static final int BUFFER = 16 * 1024;

    private final InetSocketAddress target;

    private final ServerSocket entrance;

    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();

    private final ReentrantLock guard = new ReentrantLock();

    private final Condition mended = this.guard.newCondition();

    private boolean cut;

    private Relay(InetSocketAddress target, ServerSocket entrance) {
        this.target = target;
        this.entrance = entrance;
    }

    static Relay to(InetSocketAddress target) {
        try {
            Relay relay = new Relay(target, new ServerSocket(0, 50, InetAddress.getByName("localhost")));
            inBackground(relay::admit);
            return relay;
        } catch (IOException ex) {
            throw new LabException("There is no free port for a replica's network: " + ex.getMessage(), ex);
        }
    }

    int port() {
        return this.entrance.getLocalPort();
    }

    void cut() {
        change(true);
    }

    void mend() {
        change(false);
    }

    private void change(boolean toCut) {
        this.guard.lock();
        try {
            this.cut = toCut;
            this.mended.signalAll();
        } finally {
            this.guard.unlock();
        }
    }

    private void awaitMended() {
        this.guard.lock();
        try {
            while (this.cut) {
                this.mended.awaitUninterruptibly();
            }
        } finally {
            this.guard.unlock();
        }
    }

    private void admit() throws IOException {
        while (true) {
            Socket client = this.entrance.accept();
            this.sockets.add(client);
            inBackground(() -> connect(client));
        }
    }

    private void connect(Socket client) throws IOException {
        awaitMended();
        Socket backend = new Socket();
        this.sockets.add(backend);
        try {
            backend.connect(this.target);
        } catch (IOException ex) {
            end(client, backend);
            throw ex;
        }
        inBackground(() -> forward(backend, client));
        forward(client, backend);
    }

    /** Until one of the two ends; then both do. */
    private void forward(Socket from, Socket to) throws IOException {
        try {
            from.setTcpNoDelay(true);
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[BUFFER];
            int read = in.read(buffer);
            while (read >= 0) {
                awaitMended();
                out.write(buffer, 0, read);
                read = in.read(buffer);
            }
            // The news of an end does not come through either.
            awaitMended();
        } finally {
            end(from, to);
        }
    }

    private void end(Socket one, Socket other) throws IOException {
        this.sockets.remove(one);
        this.sockets.remove(other);
        one.close();
        other.close();
    }

    @Override
    public void close() {
        try {
            this.entrance.close();
            for (Socket socket : this.sockets) {
                socket.close();
            }
        } catch (IOException ex) {
            // It is gone, which is all that was asked for.
        }
        mend();
    }

    private interface Transport {

        void run() throws IOException;
    }

    private static void inBackground(Transport work) {
        Thread thread = new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (IOException ex) {
                        // The end of a connection, which its two ends see for themselves.
                    }
                },
                "relay");
        thread.setDaemon(true);
        thread.start();
    }
}
