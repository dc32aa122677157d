package dev.pglock.engine;

/** How the threads of this project are made: platform daemons with a name that tells whose they are. */
final class Threads {

    private Threads() {}

    static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }
}
