package dev.pglock.jdbc;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A borrowed connection that came in autocommit mode, and goes back in it: not every pool sees to that itself. */
final class LentForWork implements InvocationHandler {

    private static final Logger log = LoggerFactory.getLogger(LentForWork.class);

    private final Connection connection;

    private LentForWork(Connection connection) {
        this.connection = connection;
    }

    static Connection around(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                LentForWork.class.getClassLoader(), new Class<?>[] {Connection.class}, new LentForWork(connection));
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        if (method.getName().equals("close")) {
            restore();
        }
        try {
            return method.invoke(connection, arguments);
        } catch (InvocationTargetException e) {
            throw e.getTargetException();
        }
    }

    /** What is not committed is rolled back first: a change of the mode would commit it. */
    private void restore() {
        try {
            if (!connection.isClosed() && !connection.getAutoCommit()) {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        } catch (SQLException e) {
            log.debug("A connection that work was done on could not be put back as it was", e);
        }
    }
}
