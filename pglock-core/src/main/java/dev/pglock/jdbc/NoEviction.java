package dev.pglock.jdbc;

import com.zaxxer.hikari.SQLExceptionOverride;
import java.sql.SQLException;

/** Keeps the pool from judging connections by itself, with a WARN for each: {@link RecoveringSource} does that. */
final class NoEviction implements SQLExceptionOverride {

    @java.lang.Override
    public SQLExceptionOverride.Override adjudicate(SQLException e) {
        return SQLExceptionOverride.Override.DO_NOT_EVICT;
    }
}
