package dev.pglock.engine;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** How the threads of this project are made: platform daemons with a name that tells whose they are. */
final class Threads {

    private Threads() {}

    /** Threads that end when there is nothing to do. */
    static ThreadPoolExecutor pool(String name, int size) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                size, size, 5, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work -> daemon(name, work));
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }
}
