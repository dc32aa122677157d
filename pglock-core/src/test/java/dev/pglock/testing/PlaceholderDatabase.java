package dev.pglock.testing;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;

public final class PlaceholderDatabase {

    private PlaceholderDatabase() {}

    public static EmbeddedPostgres start() throws IOException {
        return EmbeddedPostgres.builder().start();
    }
}
