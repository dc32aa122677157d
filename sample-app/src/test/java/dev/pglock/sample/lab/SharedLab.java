package dev.pglock.sample.lab;

import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;

/** One lab for all tests of a JVM, because three replicas take their time to start; each test finds it whole. */
final class SharedLab implements BeforeAllCallback, BeforeEachCallback {

    private Lab lab;

    @Override
    public void beforeAll(ExtensionContext context) {
        // Closed with the store, at the end of all tests.
        this.lab = Objects.requireNonNull(context.getRoot()
                .getStore(Namespace.create(SharedLab.class))
                .computeIfAbsent(Lab.class, key -> Lab.open("--lab.port=0"), Lab.class));
    }

    @Override
    public void beforeEach(ExtensionContext context) throws InterruptedException {
        makeWhole();
    }

    /** Undoes what a test that failed has left. */
    void makeWhole() throws InterruptedException {
        this.lab.startDatabase();
        for (Replica replica : this.lab.replicas()) {
            replica.thaw();
            replica.mend();
            replica.start();
        }
        if (!this.lab.awaitReplicas(Duration.ofMinutes(2))) {
            throw new IllegalStateException("Not all replicas are up: "
                    + this.lab.replicas().stream().map(Replica::view).toList());
        }
    }

    Lab get() {
        return this.lab;
    }
}
