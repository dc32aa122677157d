package dev.pglock.test;

import dev.pglock.LockRegistry;

/** Assertions about locks. Nothing is kept between them: each asks the registry. */
public final class LockAssertions {

    private LockAssertions() {}

    /**
     * Begins assertions about a lock. They read what the database (or the memory) knows, take nothing and do not wait: put
     * Awaitility's {@code untilAsserted} around them for what is still to come. Inside a locked body, {@code
     * LockContext.requireHeld(name)} asserts that this call runs under the lock.
     *
     * @param registry of any replica
     * @param name the lock's name
     * @return the assertions
     */
    public static LockAssert assertThatLock(LockRegistry registry, String name) {
        return new LockAssert(registry, name);
    }
}
