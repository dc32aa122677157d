package dev.pglock.autoconfigure;

/** With Spring Boot's own transaction manager for JDBC. */
class FencedJdbcCommitTests extends FencedCommitContract {

    @Override
    Class<? extends Application> application() {
        return Jobs.class;
    }
}
