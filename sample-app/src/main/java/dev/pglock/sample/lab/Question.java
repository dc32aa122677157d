package dev.pglock.sample.lab;

import org.jspecify.annotations.Nullable;

/**
 * Something that a reader may want to see.
 *
 * @param id in URLs
 * @param title on the button
 * @param expects what is to be expected, in a sentence, with its bound
 * @param needsOwnDatabase whether it stops the server
 * @param act does it, waits for what was to be seen, and leaves everything as it was
 */
record Question(String id, String title, String expects, boolean needsOwnDatabase, Act act) {

    /** What is done. */
    @FunctionalInterface
    interface Act {
        Seen run(Progress progress) throws InterruptedException;
    }

    /** Says what is going on meanwhile. */
    @FunctionalInterface
    interface Progress {
        void say(String step);
    }

    /**
     * What was seen.
     *
     * @param sentence for people
     * @param tookMillis how long that took which the sentence is about
     */
    record Seen(String sentence, long tookMillis) {}

    /** What was to be seen was not. */
    static final class NotSeen extends RuntimeException {

        private static final long serialVersionUID = 1L;

        NotSeen(String sentence) {
            super(sentence);
        }
    }

    /**
     * The answer to a question.
     *
     * @param question its id
     * @param ok whether it was as expected
     * @param seen what was seen
     * @param tookMillis how long it took; null: it did not come to an end
     */
    record Answer(
            String question,
            boolean ok,
            String seen,
            @Nullable Long tookMillis) {}
}
