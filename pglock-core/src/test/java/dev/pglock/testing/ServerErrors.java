package dev.pglock.testing;

/**
 * A server that answers every statement which reaches a row of a table with an error, as often as it is told to. It is a
 * policy of row-level security that raises it, which neither superusers nor the table's owner are subject to.
 */
public final class ServerErrors {

    private static final String POLICY = """
            CREATE TABLE planned_error (state text, times int);
            INSERT INTO planned_error VALUES ('P0001', 0);
            CREATE SEQUENCE errors_raised;
            CREATE FUNCTION planned_error() RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
            DECLARE
              planned planned_error;
            BEGIN
              SELECT * INTO planned FROM planned_error;
              IF planned.times > 0 AND nextval('errors_raised') <= planned.times THEN
                RAISE EXCEPTION 'as planned' USING ERRCODE = planned.state;
              END IF;
              RETURN true;
            END $$;
            ALTER TABLE %1$s ENABLE ROW LEVEL SECURITY;
            CREATE POLICY planned_error ON %1$s USING (planned_error());
            GRANT SELECT, INSERT, UPDATE, DELETE ON %1$s TO %2$s
            """;

    private final TestDatabase database;

    private ServerErrors(TestDatabase database) {
        this.database = database;
    }

    /** Raises nothing yet. */
    public static ServerErrors on(TestDatabase database, String table, String role) {
        database.execute(POLICY.formatted(table, role));
        return new ServerErrors(database);
    }

    /** From now on. */
    public void raise(String sqlState, int times) {
        database.execute("SELECT setval('errors_raised', 1, false); UPDATE planned_error SET state = '" + sqlState
                + "', times = " + times);
    }

    /** How often since then. */
    public long raised() {
        return database.number(
                "SELECT least(last_value - (NOT is_called)::int, times) FROM errors_raised, planned_error");
    }

    public void stop() {
        database.execute("UPDATE planned_error SET times = 0");
    }
}
