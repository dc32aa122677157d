package dev.pglock.processes;

import dev.pglock.CommitFence;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRequest;
import dev.pglock.engine.LockEngine;
import java.sql.Connection;
import java.sql.Statement;

/**
 * Holds a lock in a transaction, and when it wakes up from having been frozen until its lease ended, writes down what it
 * finds: whether it trusts its lock, whether it may commit, whether its release was one.
 */
final class FrozenHolder {

    static final String NAME = "frozen";

    private FrozenHolder() {}

    public static void main(String[] arguments) throws Exception {
        Jvm jvm = Jvm.of(arguments);
        try (LockEngine engine = jvm.engine();
                Connection business = jvm.direct();
                Connection report = jvm.direct();
                Statement work = business.createStatement();
                Statement tell = report.createStatement()) {
            LockHandle lock = engine.tryAcquire(LockRequest.of(NAME)).orElseThrow();
            CommitFence fence = engine.commitFence();
            business.setAutoCommit(false);
            work.execute("UPDATE counter SET value = value + 1");
            tell.execute("INSERT INTO said VALUES ('WORKS')");
            long last = System.nanoTime();
            while (System.nanoTime() - last < Jvm.LEASE.toNanos() / 2) {
                last = System.nanoTime();
                Thread.sleep(1);
            }
            // The first thing that it does.
            boolean held = lock.isHeld();
            String commit;
            try {
                fence.check(business, lock);
                business.commit();
                commit = "COMMITTED";
            } catch (LockLostException e) {
                business.rollback();
                commit = "REFUSED";
            }
            tell.execute("INSERT INTO trusted VALUES ('" + lock.expiresAt() + "')");
            tell.execute("INSERT INTO said VALUES ('" + (held ? "HOLDS" : "LOST") + "'), ('" + commit + "'), ('"
                    + (lock.release() ? "RELEASED" : "RELEASED NOTHING") + "')");
        }
        System.exit(0);
    }
}
