package dev.pglock.sample.postgres;

/** Where a running server is and how to log in. */
record ConnectionDetails(String url, String username, String password) {

    @Override
    public String toString() {
        return this.url;
    }
}
