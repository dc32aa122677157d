package dev.pglock.testing;

import java.util.concurrent.atomic.AtomicLong;

/** Counts what clients ask of PostgreSQL, by reading their messages: a type byte but for the first ones, a length, a body. */
final class FrontendCounter {

    private final AtomicLong roundTrips = new AtomicLong();
    private final AtomicLong statements = new AtomicLong();

    long roundTrips() {
        return roundTrips.get();
    }

    long statements() {
        return statements.get();
    }

    /** What one connection sends. */
    Stream stream() {
        return new Stream();
    }

    final class Stream {

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
