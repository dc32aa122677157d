package dev.pglock.aop;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** What ran, over all replicas of one JVM, and how many at the most at the same time. */
final class Runs {

    private final ConcurrentMap<String, AtomicInteger> running = new ConcurrentHashMap<>();
    private final ConcurrentMap<String, AtomicInteger> counts = new ConcurrentHashMap<>();
    final List<String> overlaps = new CopyOnWriteArrayList<>();

    void run(String job, long millis) {
        AtomicInteger now = running.computeIfAbsent(job, key -> new AtomicInteger());
        if (now.incrementAndGet() > 1) {
            overlaps.add(job);
        }
        counts.computeIfAbsent(job, key -> new AtomicInteger()).incrementAndGet();
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            now.decrementAndGet();
        }
    }

    int count(String job) {
        AtomicInteger count = counts.get(job);
        return count == null ? 0 : count.get();
    }
}
