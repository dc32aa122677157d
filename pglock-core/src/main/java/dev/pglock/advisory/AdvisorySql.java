package dev.pglock.advisory;

import dev.pglock.lease.LeaseTable;

/**
 * The statements of the advisory strategy, whole. They are written for the lease table's default name; the only thing
 * that is ever put in is another one.
 *
 * <p>A claim is two statements in one message: the row is looked at before the key is taken, and once more by a statement
 * of its own, because the snapshot of the one that took it is older than its grant. Whether the key was got travels from
 * the first to the second in a setting of the session. Nothing is taken on a session other than the one that the claim is
 * meant for, which a pooler may have put in its place; nothing is written, and no transaction id drawn, unless the key was
 * got; and only when it was not is asked who has it.
 */
final class AdvisorySql {

    /** Claims where the table exists. Two results. */
    private static final String CLAIM_WITH_ROW = """
            WITH ask AS (
              SELECT ?::int AS pid, ?::bigint AS key, ?::text AS namespace, ?::text AS name, ?::text AS version,
                     ?::text AS trigger, ?::text::timestamptz AS tick, make_interval(secs => ?::float8) AS reach,
                     make_interval(secs => ?::float8) AS slack
            ), seen AS (
              SELECT l.fence, l.holder_label, l.expires_at, l.hold_until,
                     CASE WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'HELD'
                          WHEN l.hold_until > clock_timestamp() THEN 'HOLD'
                          WHEN ask.version = ANY (l.completed) THEN 'DONE'
                          WHEN CASE WHEN ask.trigger IS NULL THEN l.last_finished_at
                                    ELSE (l.ticks ->> ask.trigger)::timestamptz END
                               BETWEEN coalesce(ask.tick, clock_timestamp() - ask.reach)
                                   AND clock_timestamp() + ask.slack THEN 'TICK_DONE' END AS reason
              FROM pglock_lease l JOIN ask USING (namespace, name)
            )
            SELECT ask.pid = pg_backend_pid() AS same_session,
                   set_config('pglock.got', CASE WHEN ask.pid = pg_backend_pid() AND seen.reason IS NULL
                                                 THEN pg_try_advisory_lock(ask.key)::text ELSE 'false' END, false) AS got,
                   seen.reason, seen.fence, seen.holder_label,
                   extract(epoch FROM CASE seen.reason WHEN 'HELD' THEN seen.expires_at
                                                       WHEN 'HOLD' THEN seen.hold_until END - clock_timestamp())::float8
                     AS seconds_left
            FROM ask LEFT JOIN seen ON true;
            WITH ask AS (
              SELECT ?::bigint AS key, ?::text AS namespace, ?::text AS name, ?::text AS version,
                     ?::text AS trigger, ?::text::timestamptz AS tick, make_interval(secs => ?::float8) AS reach,
                     make_interval(secs => ?::float8) AS slack
            ), again AS (
              SELECT l.fence, l.data IS NOT NULL AS has_data,
                     CASE WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'HELD'
                          WHEN l.hold_until > clock_timestamp() THEN 'HOLD'
                          WHEN ask.version = ANY (l.completed) THEN 'DONE'
                          WHEN CASE WHEN ask.trigger IS NULL THEN l.last_finished_at
                                    ELSE (l.ticks ->> ask.trigger)::timestamptz END
                               BETWEEN coalesce(ask.tick, clock_timestamp() - ask.reach)
                                   AND clock_timestamp() + ask.slack THEN 'TICK_DONE' END AS reason
              FROM pglock_lease l JOIN ask USING (namespace, name)
            ), holder AS (
              SELECT l.pid, a.application_name
              FROM pg_locks l JOIN ask ON (l.classid::bigint << 32) | l.objid::bigint = ask.key
                   LEFT JOIN pg_stat_activity a USING (pid)
              WHERE current_setting('pglock.got') = 'false' AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              LIMIT 1
            )
            SELECT clock_timestamp() AS now, again.reason, true AS table_there, again.fence AS row_fence,
                   coalesce(again.has_data, false) AS has_data, holder.pid AS holder_pid, holder.application_name AS holder,
                   CASE WHEN current_setting('pglock.got') = 'true' AND again.reason IS NULL
                        THEN greatest(again.fence + 1, pg_current_xact_id()::text::bigint) END AS fence,
                   CASE WHEN current_setting('pglock.got') = 'true'
                        THEN set_config('idle_session_timeout', ?::text, false) END AS watched,
                   set_config('pglock.granted', (current_setting('pglock.got') = 'true' AND again.reason IS NULL)::text, false)
                     AS granted
            FROM ask LEFT JOIN again ON true LEFT JOIN holder ON true
            """;

    /**
     * Follows a claim in the same message, and remembers the tick in the row if it was granted: never held by anybody, with
     * its fence. Where the label of a holder would be it says which claim that was, in case its answer gets lost.
     */
    private static final String REMEMBER_TICK = """
            ;
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::text AS claim, ?::text AS trigger,
                     ?::text::timestamptz AS tick, make_interval(secs => ?::float8) AS period
            ), known AS (
              UPDATE pglock_lease l
              SET fence = greatest(l.fence + 1, pg_current_xact_id()::text::bigint), holder = NULL, holder_label = ask.claim,
                  acquired_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 microsecond',
                  released_at = clock_timestamp(), hold_until = NULL, data = NULL,
                  ticks = (SELECT coalesce(jsonb_object_agg(others.key, others.value), '{}')
                           FROM (SELECT t.key, t.value FROM jsonb_each_text(l.ticks) AS t WHERE t.key <> ask.trigger
                                 ORDER BY t.value::timestamptz DESC LIMIT 15) AS others)
                          || jsonb_build_object(ask.trigger, CASE
                               WHEN ask.tick IS NOT NULL THEN ask.tick
                               WHEN (l.ticks ->> ask.trigger)::timestamptz
                                    BETWEEN clock_timestamp() - 2 * ask.period AND clock_timestamp() + ask.period
                                    THEN (l.ticks ->> ask.trigger)::timestamptz + ask.period
                               ELSE clock_timestamp() END)
              FROM ask
              WHERE current_setting('pglock.granted') = 'true' AND l.namespace = ask.namespace AND l.name = ask.name
              RETURNING l.name
            )
            INSERT INTO pglock_lease (namespace, name, holder_label, fence, acquired_at, expires_at, released_at, ticks)
            SELECT ask.namespace, ask.name, ask.claim, pg_current_xact_id()::text::bigint, clock_timestamp(),
                   clock_timestamp() + interval '1 microsecond', clock_timestamp(),
                   jsonb_build_object(ask.trigger, coalesce(ask.tick, clock_timestamp()))
            FROM ask
            WHERE current_setting('pglock.granted') = 'true' AND NOT EXISTS (SELECT FROM known)
            """;

    /** After a claim without an answer: whether it has remembered its tick. One row if so, else none. */
    private static final String HAS_REMEMBERED_TICK = """
            SELECT 1 FROM pglock_lease
            WHERE namespace = ?::text AND name = ?::text AND holder IS NULL AND holder_label = ?::text
            """;

    /**
     * Claims where the table does not exist, and says if it has come into being. Two results of the same form. A tick is a
     * second key; the lock is given back when only that one is taken.
     */
    static final String CLAIM_WITHOUT_ROW = """
            WITH ask AS (
              SELECT ?::int AS pid, ?::bigint AS key, ?::bigint AS tick_key
            )
            SELECT ask.pid = pg_backend_pid() AS same_session,
                   set_config('pglock.got', CASE
                     WHEN ask.pid <> pg_backend_pid() THEN 'false'
                     WHEN NOT pg_try_advisory_lock(ask.key) THEN 'false'
                     WHEN ask.tick_key IS NULL THEN 'true'
                     WHEN pg_try_advisory_lock(ask.tick_key) THEN 'true'
                     WHEN pg_advisory_unlock(ask.key) THEN 'tick' END, false) AS got,
                   NULL::text AS reason, NULL::bigint AS fence, NULL::text AS holder_label, NULL::float8 AS seconds_left
            FROM ask;
            WITH ask AS (
              SELECT ?::bigint AS key, ?::text AS lease_table
            ), holder AS (
              SELECT l.pid, a.application_name
              FROM pg_locks l JOIN ask ON (l.classid::bigint << 32) | l.objid::bigint = ask.key
                   LEFT JOIN pg_stat_activity a USING (pid)
              WHERE current_setting('pglock.got') = 'false' AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              LIMIT 1
            )
            SELECT clock_timestamp() AS now, NULL::text AS reason, to_regclass(ask.lease_table) IS NOT NULL AS table_there,
                   NULL::bigint AS row_fence, false AS has_data, holder.pid AS holder_pid, holder.application_name AS holder,
                   CASE WHEN current_setting('pglock.got') = 'true' THEN pg_current_xact_id()::text::bigint END AS fence,
                   CASE WHEN current_setting('pglock.got') = 'true'
                        THEN set_config('idle_session_timeout', ?::text, false) END AS watched
            FROM ask LEFT JOIN holder ON true
            """;

    /** What this session still holds; its answer is the heartbeat. Only the 64-bit key space, only this database. */
    static final String STILL_HELD = """
            SELECT clock_timestamp() AS now, pg_is_in_recovery() AS standby,
                   ARRAY(SELECT (l.classid::bigint << 32) | l.objid::bigint
                         FROM pg_locks l
                         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = pg_backend_pid()
                           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS keys
            """;

    /** The same, and which of these tenures operators have asked for since their grant; where the table exists. */
    private static final String STILL_HELD_AND_ASKED_FOR = """
            WITH asked AS MATERIALIZED (
              SELECT l.name, coalesce(l.resign_reason, '') AS reason
              FROM unnest(?::text[], ?::timestamptz[]) AS m (name, acquired_at)
                   JOIN pglock_lease l ON l.namespace = ?::text AND l.name = m.name AND l.resign_at > m.acquired_at
            )
            SELECT clock_timestamp() AS now, pg_is_in_recovery() AS standby,
                   ARRAY(SELECT (l.classid::bigint << 32) | l.objid::bigint
                         FROM pg_locks l
                         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = pg_backend_pid()
                           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS keys,
                   ARRAY(SELECT asked.name FROM asked ORDER BY asked.name) AS asked,
                   ARRAY(SELECT asked.reason FROM asked ORDER BY asked.name) AS reasons
            """;

    /** Which of these tenures operators have asked for since their grant. */
    private static final String ASKED_FOR = """
            SELECT l.name, coalesce(l.resign_reason, '') AS reason
            FROM unnest(?::text[], ?::timestamptz[]) AS m (name, acquired_at)
                 JOIN pglock_lease l ON l.namespace = ?::text AND l.name = m.name AND l.resign_at > m.acquired_at
            """;

    /** Asks whoever holds the key for it. A row that does not exist is made, with a fence that nobody is granted. */
    private static final String RESIGN = """
            INSERT INTO pglock_lease AS l (namespace, name, fence, acquired_at, expires_at, released_at, resign_at, resign_reason)
            SELECT ask.namespace, ask.name, pg_current_xact_id()::text::bigint, clock_timestamp(),
                   clock_timestamp() + interval '1 microsecond', clock_timestamp(), clock_timestamp(), ask.reason
            FROM (SELECT ?::text AS namespace, ?::text AS name, ?::text AS reason) AS ask
            ON CONFLICT (namespace, name) DO UPDATE
            SET resign_at = excluded.resign_at, resign_reason = excluded.resign_reason
            """;

    /**
     * Gives a key back, false = it was not held, and sets how long the session may be silent from now on. Whoever waits
     * has announced it by a shared lock on the wait key, and is told; nobody else is. Whoever announces it from now on
     * waits for the end of this statement.
     */
    static final String UNLOCK = """
            WITH ask AS (
              SELECT ?::bigint AS key, ?::text AS silence, ?::int AS wait_key
            )
            SELECT pg_advisory_unlock(ask.key) AS unlocked,
                   set_config('idle_session_timeout', ask.silence, false) AS watched,
                   CASE WHEN NOT pg_try_advisory_xact_lock(1885826155, ask.wait_key)
                        THEN pg_notify('pglock', ask.wait_key::text) END AS told
            FROM ask
            """;

    /** Gives nothing back; sets how long the session may be silent from now on. */
    static final String WATCH = """
            SELECT set_config('idle_session_timeout', ?::text, false) AS watched
            """;

    static final String TABLE_EXISTS = """
            SELECT to_regclass(?::text) IS NOT NULL AS table_there
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
                         ?::text AS data) AS ask
            ON CONFLICT (namespace, name) DO UPDATE
            SET fence = greatest(l.fence, excluded.fence), acquired_at = excluded.acquired_at,
                expires_at = excluded.expires_at, released_at = excluded.released_at, holder = NULL, holder_label = NULL,
                hold_until = NULL, data = CASE WHEN ?::boolean THEN excluded.data ELSE l.data END
            """;

    /** The end of a tenure that must be remembered, after {@link #REMEMBER}. */
    private static final String REMEMBER_END = """
            UPDATE pglock_lease l
            SET released_at = clock_timestamp(), hold_until = l.acquired_at + make_interval(secs => ask.min_hold),
                completed = CASE WHEN ask.completed IS NULL OR ask.completed = ANY (l.completed) THEN l.completed
                                 ELSE l.completed || ask.completed END,
                completions = CASE WHEN ask.completed IS NULL THEN l.completions
                                   ELSE l.completions || jsonb_build_object(ask.completed, jsonb_build_object(
                                     'at', clock_timestamp(), 'by', ask.label,
                                     'seconds', extract(epoch FROM clock_timestamp() - l.acquired_at))) END,
                last_fence = l.fence, last_holder = ask.label, last_started_at = l.acquired_at,
                last_finished_at = clock_timestamp(), last_outcome = ask.outcome, last_error = ask.error
            FROM (SELECT ?::text AS namespace, ?::text AS name, ?::float8 AS min_hold, ?::text AS completed,
                         ?::text AS label, ?::text AS outcome, ?::text AS error) AS ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name
            """;

    /**
     * Who holds keys in this database, by reading only: whoever holds that one, or with NULL all sessions whose application
     * name begins so. A session of ours is known by that name.
     */
    static final String HOLDERS = """
            SELECT (l.classid::bigint << 32) | l.objid::bigint AS key, l.pid, a.application_name
            FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.mode = 'ExclusiveLock'
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND coalesce((l.classid::bigint << 32) | l.objid::bigint = ?::bigint, starts_with(a.application_name, ?::text))
            """;

    /** The heartbeat of a session that is busy: one row if it holds that key, else none. */
    static final String TIME_IF_HELD_BY = """
            SELECT clock_timestamp() AS now
            FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = ?::int
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND (l.classid::bigint << 32) | l.objid::bigint = ?::bigint
            """;

    /** Which keys a session holds. */
    static final String HELD_BY = """
            SELECT (l.classid::bigint << 32) | l.objid::bigint AS key
            FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = ?::int
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            """;

    /** Ends a session and waits until it has ended. Whoever waits for one of its keys is told. */
    static final String TERMINATE = """
            WITH ask AS (
              SELECT ?::int AS pid, ?::int[] AS wait_keys
            ), ended AS MATERIALIZED (
              SELECT pg_terminate_backend(ask.pid, 1000) AS ended FROM ask
            )
            SELECT ended.ended,
                   ARRAY(SELECT CASE WHEN NOT pg_try_advisory_xact_lock(1885826155, waited.wait_key)
                                     THEN pg_notify('pglock', waited.wait_key::text)::text END
                         FROM unnest(ask.wait_keys) AS waited (wait_key)) AS told
            FROM ask, ended
            """;

    final String claimWithRow;
    final String claimTickWithRow;
    final String remember;
    final String rememberEnd;
    final String stillHeldAndAskedFor;
    final String askedFor;
    final String hasRememberedTick;
    final String resign;

    AdvisorySql(LeaseTable table) {
        claimWithRow = table.in(CLAIM_WITH_ROW);
        claimTickWithRow = table.in(CLAIM_WITH_ROW + REMEMBER_TICK);
        remember = table.in(REMEMBER);
        rememberEnd = table.in(REMEMBER_END);
        stillHeldAndAskedFor = table.in(STILL_HELD_AND_ASKED_FOR);
        askedFor = table.in(ASKED_FOR);
        hasRememberedTick = table.in(HAS_REMEMBERED_TICK);
        resign = table.in(RESIGN);
    }
}
