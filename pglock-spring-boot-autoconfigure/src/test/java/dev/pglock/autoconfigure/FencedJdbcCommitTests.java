package dev.pglock.autoconfigure;

import org.junit.jupiter.api.Tag;

/** With Spring Boot's own transaction manager for JDBC. */
@Tag("long")
class FencedJdbcCommitTests extends FencedCommitContract {

    @Override
    Class<? extends Application> application() {
        return Jobs.class;
    }
}
