package dev.pglock.jdbc;

import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** Our sessions in the form in which a pool wants them. */
final class SessionDataSource implements DataSource {

    private static final org.slf4j.Logger log = LoggerFactory.getLogger(SessionDataSource.class);

    private final SessionFactory sessions;
    private final AtomicReference<@Nullable Connection> ready = new AtomicReference<>();

    SessionDataSource(SessionFactory sessions) {
        this.sessions = sessions;
    }

    @Override
    public Connection getConnection() throws SQLException {
        Connection opened = ready.getAndSet(null);
        return trusting(
                opened != null
                        ? opened
                        : sessions.open(sessions.settings().timeouts().connect()));
    }

    /**
     * Opens the session that the pool is going to ask for, on the calling thread.
     *
     * @param patience for how long at most
     */
    void prepare(Duration patience) throws SQLException {
        close(ready.getAndSet(sessions.open(patience)));
    }

    /** Closes what the pool did not ask for, because one was given back to it meanwhile. */
    void forget() {
        close(ready.getAndSet(null));
    }

    private static void close(@Nullable Connection session) {
        if (session == null) {
            return;
        }
        try {
            session.close();
        } catch (SQLException e) {
            log.debug("A session that nobody needs could not be closed properly", e);
        }
    }

    /**
     * Answers by itself what the pool asks without need, a round trip each: whether a connection that was idle for half a
     * second is valid (one that died is found by its first statement, and replaced), and its isolation level.
     */
    private static Connection trusting(Connection session) {
        return (Connection) Proxy.newProxyInstance(
                SessionDataSource.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "isValid" -> !session.isClosed();
                    case "getTransactionIsolation" -> Connection.TRANSACTION_READ_COMMITTED;
                    default -> invoke(session, method, arguments);
                });
    }

    private static @Nullable Object invoke(Connection session, Method method, Object @Nullable [] arguments)
            throws Throwable {
        try {
            return method.invoke(session, arguments);
        } catch (InvocationTargetException e) {
            throw e.getTargetException();
        }
    }

    @Override
    public Connection getConnection(String username, String password) throws SQLException {
        throw new SQLFeatureNotSupportedException("Each session asks for its credentials itself");
    }

    @Override
    public @Nullable PrintWriter getLogWriter() {
        return null;
    }

    @Override
    public void setLogWriter(@Nullable PrintWriter writer) {
        // Nothing is written to it.
    }

    @Override
    public void setLoginTimeout(int seconds) {
        // Each session has its own limits.
    }

    /** The pool takes it for the time that it gives openings under way when it is closed; 0 would be a WARN each time. */
    @Override
    public int getLoginTimeout() {
        return (int) sessions.settings().timeouts().connect().plusMillis(999).toSeconds();
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        if (type.isInstance(this)) {
            return type.cast(this);
        }
        throw new SQLException("Wraps no " + type.getName());
    }

    @Override
    public boolean isWrapperFor(Class<?> type) {
        return type.isInstance(this);
    }
}
