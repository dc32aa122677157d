package dev.pglock.advisory;

/**
 * The statements of the advisory strategy, whole. They are written for the lease table's default name; the only thing
 * that is ever put in is another one.
 *
 * <p>A claim is two statements in one message: the row is looked at before the key is taken, and once more by a statement
 * of its own, because the snapshot of the one that took it is older than its grant. Whether the key was got travels from
 * the first to the second in a setting of the session.
 */
final class AdvisorySql {

    private static final String TABLE = "pglock_lease";

    /** Claims where the table exists. Two results. */
    private static final String CLAIM_WITH_ROW = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::bigint AS key, ?::text AS version
            ), seen AS (
              SELECT l.fence, l.holder_label, l.expires_at, l.hold_until,
                     CASE WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'HELD'
                          WHEN l.hold_until > clock_timestamp() THEN 'HOLD'
                          WHEN ask.version = ANY (l.completed) THEN 'DONE' END AS reason
              FROM pglock_lease l JOIN ask USING (namespace, name)
            )
            SELECT set_config('pglock.got', CASE WHEN seen.reason IS NULL THEN pg_try_advisory_lock(ask.key)::text
                                                 ELSE 'false' END, false) AS got,
                   seen.reason, seen.fence, seen.holder_label,
                   extract(epoch FROM CASE seen.reason WHEN 'HELD' THEN seen.expires_at
                                                       WHEN 'HOLD' THEN seen.hold_until END - clock_timestamp())::float8
                     AS seconds_left
            FROM ask LEFT JOIN seen ON true;
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::text AS version
            ), again AS (
              SELECT l.data IS NOT NULL AS has_data,
                     CASE WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'HELD'
                          WHEN l.hold_until > clock_timestamp() THEN 'HOLD'
                          WHEN ask.version = ANY (l.completed) THEN 'DONE' END AS reason
              FROM pglock_lease l JOIN ask USING (namespace, name)
            )
            SELECT clock_timestamp() AS now, again.reason, coalesce(again.has_data, false) AS has_data, true AS table_there,
                   CASE WHEN current_setting('pglock.got') = 'true' AND again.reason IS NULL
                        THEN pg_current_xact_id()::text::bigint END AS fence,
                   CASE WHEN current_setting('pglock.got') = 'true'
                        THEN set_config('idle_session_timeout', ?::text, false) END
            FROM ask LEFT JOIN again ON true
            """;

    /** Claims where the table does not exist, and says if it has come into being. Two results of the same form. */
    private static final String CLAIM_WITHOUT_ROW = """
            SELECT set_config('pglock.got', pg_try_advisory_lock(?::bigint)::text, false) AS got,
                   NULL::text AS reason, NULL::bigint AS fence, NULL::text AS holder_label, NULL::float8 AS seconds_left;
            SELECT clock_timestamp() AS now, NULL::text AS reason, false AS has_data,
                   to_regclass(?) IS NOT NULL AS table_there,
                   CASE WHEN current_setting('pglock.got') = 'true' THEN pg_current_xact_id()::text::bigint END AS fence,
                   CASE WHEN current_setting('pglock.got') = 'true'
                        THEN set_config('idle_session_timeout', ?::text, false) END
            """;

    /** What this session still holds; its answer is the heartbeat. Only the 64-bit key space, only this database. */
    static final String STILL_HELD = """
            SELECT clock_timestamp() AS now, pg_is_in_recovery() AS standby,
                   ARRAY(SELECT (l.classid::bigint << 32) | l.objid::bigint
                         FROM pg_locks l
                         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = pg_backend_pid()
                           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS keys
            """;

    /** Gives a key back: false = it was not held. With the last one, the server no longer watches the session. */
    static final String UNLOCK = """
            SELECT pg_advisory_unlock(?::bigint) AS unlocked, set_config('idle_session_timeout', ?::text, false)
            """;

    /**
     * Remembers in the row, under the key that is still held. A row that does not exist is made: never held by anybody,
     * with our fence. Fences never go down.
     */
    private static final String REMEMBER = """
            INSERT INTO pglock_lease AS l (namespace, name, fence, acquired_at, expires_at, released_at, data)
            SELECT ask.namespace, ask.name, ask.fence, ask.acquired_at,
                   greatest(clock_timestamp(), ask.acquired_at + interval '1 microsecond'), clock_timestamp(), ask.data
            FROM (SELECT ?::text AS namespace, ?::text AS name, ?::bigint AS fence, ?::timestamptz AS acquired_at,
                         ?::boolean AS replaces, ?::text AS data) AS ask
            ON CONFLICT (namespace, name) DO UPDATE
            SET fence = greatest(l.fence, excluded.fence), acquired_at = excluded.acquired_at,
                expires_at = excluded.expires_at, released_at = excluded.released_at, holder = NULL, holder_label = NULL,
                hold_until = NULL,
                data = CASE WHEN ?::boolean THEN excluded.data ELSE l.data END
            """;

    /** The end of a tenure that must be remembered. */
    private static final String REMEMBER_END = """
            UPDATE pglock_lease l
            SET released_at = clock_timestamp(), hold_until = l.acquired_at + make_interval(secs => ask.min_hold),
                completed = CASE WHEN ask.completed IS NULL OR ask.completed = ANY (l.completed) THEN l.completed
                                 ELSE l.completed || ask.completed END,
                last_fence = l.fence, last_holder = ask.label, last_started_at = l.acquired_at,
                last_finished_at = clock_timestamp(), last_outcome = ask.outcome, last_error = ask.error
            FROM (SELECT ?::text AS namespace, ?::text AS name, ?::float8 AS min_hold, ?::text AS completed,
                         ?::text AS label, ?::text AS outcome, ?::text AS error) AS ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name
            """;

    /**
     * Who holds advisory keys, by reading only: with NULL all sessions of the namespace, else whoever holds that key. A
     * session of ours is known by its application name.
     */
    static final String FIND = """
            SELECT (l.classid::bigint << 32) | l.objid::bigint AS key, l.pid, a.application_name, a.backend_start
            FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.mode = 'ExclusiveLock'
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND CASE WHEN ?::bigint IS NULL THEN starts_with(a.application_name, ?)
                       ELSE (l.classid::bigint << 32) | l.objid::bigint = ?::bigint END
            """;

    /** The names of the namespace that have a row. */
    private static final String NAMES = """
            SELECT name, data FROM pglock_lease WHERE namespace = ?::text
            """;

    /** Which session holds a key. */
    static final String HOLDER = """
            SELECT l.pid FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND (l.classid::bigint << 32) | l.objid::bigint = ?::bigint
            """;

    /** Which keys a session holds. */
    static final String HELD_BY = """
            SELECT (l.classid::bigint << 32) | l.objid::bigint AS key FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = ?::int
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            """;

    /** Ends a session. */
    static final String TERMINATE = """
            SELECT pg_terminate_backend(?::int)
            """;

    final String claimWithRow;
    final String claimWithoutRow = CLAIM_WITHOUT_ROW;
    final String remember;
    final String rememberEnd;
    final String names;

    AdvisorySql(String table) {
        claimWithRow = CLAIM_WITH_ROW.replace(TABLE, table);
        remember = REMEMBER.replace(TABLE, table);
        rememberEnd = REMEMBER_END.replace(TABLE, table);
        names = NAMES.replace(TABLE, table);
    }
}
