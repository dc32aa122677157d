package dev.pglock.lease;

/**
 * The statements of the lease, whole, for one table. They are written for the default table name, so that they can be
 * pasted into psql; the only thing that is ever put in is another name.
 *
 * <p>Throughout: only the server's {@code clock_timestamp()} decides, in the statement that grants; a guard that was read
 * before the row was locked is repeated on the row; what must not be done unless a guard passes stands behind a CASE,
 * because the order of a plain AND is the planner's.
 */
final class LeaseSql {

    /**
     * Claims a known name. One row: granted, or why not. No row: the name was never seen.
     *
     * <p>{@code own_fence} is the greatest fence that this registry knows to be its own. A row that bears our holder and
     * such a fence is what is left of a tenure of ours that has ended here, and is in nobody's way. With a greater fence it
     * is in the way: this statement may have been overtaken, on a stalled connection, by a younger claim that was granted.
     *
     * <p>What stands between the marks belongs to ticks, and is a comment for all others, who are not to pay for it. A tick
     * has been done when what the row remembers of its trigger (without a trigger: the end of the last run) is not older
     * than it, and not so far in the future that it cannot belong to this schedule. A row remembers some triggers that are
     * not asked for any more, because replicas of an older release may still have them.
     */
    private static final String CLAIM = """
            WITH ask AS NOT MATERIALIZED (
              SELECT ?::text AS namespace, ?::text AS name, ?::bigint AS key, ?::uuid AS holder, ?::text AS holder_label,
                     ?::bigint AS own_fence, make_interval(secs => ?::float8) AS lease, ?::text AS data, ?::text AS version
                     /*tick , ?::text AS trigger, ?::text::timestamptz AS tick, make_interval(secs => ?::float8) AS reach,
                     make_interval(secs => ?::float8) AS slack, make_interval(secs => ?::float8) AS period tick*/
            ), won AS (
              UPDATE pglock_lease l
              SET holder = ask.holder, holder_label = ask.holder_label,
                  fence = greatest(l.fence + 1, pg_current_xact_id()::text::bigint),
                  acquired_at = clock_timestamp(), expires_at = clock_timestamp() + ask.lease,
                  released_at = NULL, hold_until = NULL, resign_at = NULL, resign_reason = NULL, data = ask.data
                  /*tick , ticks = CASE WHEN ask.trigger IS NULL THEN l.ticks ELSE (
                    SELECT coalesce(jsonb_object_agg(others.key, others.value), '{}')
                    FROM (SELECT t.key, t.value FROM jsonb_each_text(l.ticks) AS t WHERE t.key <> ask.trigger
                          ORDER BY t.value::timestamptz DESC LIMIT 15) AS others)
                    || jsonb_build_object(ask.trigger, CASE
                         WHEN ask.tick IS NOT NULL THEN ask.tick
                         WHEN (l.ticks ->> ask.trigger)::timestamptz
                              BETWEEN clock_timestamp() - 2 * ask.period AND clock_timestamp() + ask.period
                              THEN (l.ticks ->> ask.trigger)::timestamptz + ask.period
                         ELSE clock_timestamp() END) END tick*/
              FROM ask
              WHERE l.namespace = ask.namespace AND l.name = ask.name
                AND CASE WHEN l.paused IS NULL
                              AND (l.holder IS NULL OR l.expires_at <= clock_timestamp()
                                   OR (l.holder = ask.holder AND l.fence <= ask.own_fence))
                              AND (l.hold_until > clock_timestamp()) IS NOT TRUE
                              AND (ask.version = ANY (l.completed)) IS NOT TRUE
                              /*tick AND (CASE WHEN ask.trigger IS NULL THEN l.last_finished_at
                                         ELSE (l.ticks ->> ask.trigger)::timestamptz END
                                   BETWEEN coalesce(ask.tick, clock_timestamp() - ask.reach)
                                       AND clock_timestamp() + ask.slack) IS NOT TRUE tick*/
                         THEN pg_try_advisory_xact_lock(ask.key) ELSE false END
              RETURNING l.fence, l.acquired_at, l.expires_at
            ), seen AS MATERIALIZED (
              SELECT l.fence, l.holder = ask.holder AS ours, l.holder_label, l.expires_at, l.hold_until,
                     CASE WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp()
                               AND NOT (l.holder = ask.holder AND l.fence <= ask.own_fence) THEN 'HELD'
                          WHEN l.hold_until > clock_timestamp() THEN 'HOLD'
                          WHEN ask.version = ANY (l.completed) THEN 'DONE'
                          /*tick WHEN CASE WHEN ask.trigger IS NULL THEN l.last_finished_at
                                    ELSE (l.ticks ->> ask.trigger)::timestamptz END
                               BETWEEN coalesce(ask.tick, clock_timestamp() - ask.reach)
                                   AND clock_timestamp() + ask.slack THEN 'TICK_DONE' tick*/
                          WHEN pg_try_advisory_xact_lock(ask.key) THEN 'UNKNOWN' ELSE 'KEY_BUSY' END AS reason
              FROM pglock_lease l JOIN ask USING (namespace, name)
              WHERE NOT EXISTS (SELECT FROM won)
            )
            SELECT 'GRANTED' AS answer, won.fence, won.acquired_at, won.expires_at,
                   NULL::text AS holder_label, NULL::float8 AS seconds_left, false AS ours, clock_timestamp() AS now
            FROM won
            UNION ALL
            SELECT seen.reason, seen.fence, NULL, NULL, seen.holder_label,
                   extract(epoch FROM CASE seen.reason WHEN 'HELD' THEN seen.expires_at
                                                       WHEN 'HOLD' THEN seen.hold_until END - clock_timestamp())::float8,
                   seen.reason = 'HELD' AND seen.ours, clock_timestamp()
            FROM seen
            """;

    /** Claims a name never seen. Always one row, of the same form. */
    private static final String CLAIM_NEW = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::bigint AS key, ?::uuid AS holder, ?::text AS holder_label,
                     make_interval(secs => ?::float8) AS lease, ?::text AS data,
                     ?::text AS trigger, ?::text::timestamptz AS tick
            ), tried AS MATERIALIZED (
              SELECT pg_try_advisory_xact_lock(ask.key) AS got FROM ask
            ), won AS (
              INSERT INTO pglock_lease (namespace, name, holder, holder_label, fence, acquired_at, expires_at, data, ticks)
              SELECT ask.namespace, ask.name, ask.holder, ask.holder_label, pg_current_xact_id()::text::bigint,
                     clock_timestamp(), clock_timestamp() + ask.lease, ask.data,
                     CASE WHEN ask.trigger IS NULL THEN '{}'
                          ELSE jsonb_build_object(ask.trigger, coalesce(ask.tick, clock_timestamp())) END
              FROM ask, tried WHERE tried.got
              ON CONFLICT (namespace, name) DO NOTHING
              RETURNING fence, acquired_at, expires_at
            )
            SELECT CASE WHEN won.fence IS NOT NULL THEN 'GRANTED' WHEN tried.got THEN 'UNKNOWN' ELSE 'KEY_BUSY' END AS answer,
                   won.fence, won.acquired_at, won.expires_at,
                   NULL::text AS holder_label, NULL::float8 AS seconds_left, false AS ours, clock_timestamp() AS now
            FROM tried LEFT JOIN won ON true
            """;

    /**
     * After a claim without an answer: takes over what it was granted, if it was. The tenure is renewed with it, because
     * the row may also be that of an older claim whose answer got lost, for a shorter lease. It may have been granted before
     * what now stands in the way of this one: there must be nothing that would deny a claim but the tick that this claim has
     * remembered itself. Whatever is not taken over is claimed like any other.
     */
    private static final String ADOPT = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::uuid AS holder, ?::bigint AS own_fence,
                     make_interval(secs => ?::float8) AS lease, ?::text AS data, ?::text AS version,
                     ?::text AS trigger, ?::text::timestamptz AS tick, make_interval(secs => ?::float8) AS reach,
                     make_interval(secs => ?::float8) AS slack
            )
            UPDATE pglock_lease l
            SET expires_at = greatest(l.expires_at, clock_timestamp() + ask.lease), data = ask.data
            FROM ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name AND l.holder = ask.holder
              AND l.fence > ask.own_fence AND l.expires_at > clock_timestamp()
              AND l.paused IS NULL AND (ask.version = ANY (l.completed)) IS NOT TRUE
              AND CASE WHEN ask.trigger IS NULL
                            THEN (l.last_finished_at BETWEEN clock_timestamp() - ask.reach
                                                         AND clock_timestamp() + ask.slack) IS NOT TRUE
                       WHEN ask.tick IS NOT NULL THEN (l.ticks ->> ask.trigger)::timestamptz = ask.tick
                       ELSE (l.ticks ->> ask.trigger)::timestamptz BETWEEN clock_timestamp() - ask.reach
                                                                       AND clock_timestamp() + ask.slack END
            RETURNING l.fence, l.acquired_at, l.expires_at
            """;

    /**
     * Renews everything that is asked for. A row that somebody has locked is skipped, not waited for: it comes back without
     * a new expiry, but as still ours. A plan that is made while the table is small is kept when it has grown, and must not
     * compare every name with every row then: each row is reached by the whole primary key, which is why the namespace
     * travels with the names, and what comes out is never joined again.
     */
    private static final String RENEW = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::uuid AS holder
            ), mine AS (
              SELECT m.name, m.fence, make_interval(secs => m.lease) AS lease, m.replaces, m.data
              FROM unnest(?::text[], ?::bigint[], ?::float8[], ?::boolean[], ?::text[])
                   AS m (name, fence, lease, replaces, data)
            ), seen AS MATERIALIZED (
              SELECT ask.*, mine.*, unlocked.fence IS NOT NULL AS unlocked
              FROM ask CROSS JOIN mine LEFT JOIN LATERAL (
                SELECT l.fence FROM pglock_lease l
                WHERE l.namespace = ask.namespace AND l.name = mine.name AND l.fence = mine.fence
                  AND l.holder = ask.holder AND l.expires_at > clock_timestamp()
                FOR NO KEY UPDATE SKIP LOCKED
              ) AS unlocked ON true
            ), renewed AS (
              UPDATE pglock_lease l
              SET expires_at = greatest(l.expires_at, clock_timestamp() + seen.lease),
                  data = CASE WHEN seen.replaces THEN seen.data ELSE l.data END
              FROM seen
              WHERE seen.unlocked AND l.namespace = seen.namespace AND l.name = seen.name AND l.fence = seen.fence
              RETURNING l.name, l.fence, l.expires_at,
                        CASE WHEN l.resign_at > l.acquired_at THEN coalesce(l.resign_reason, '') END AS resign
            )
            SELECT name, fence, expires_at, resign, true AS still_mine FROM renewed
            UNION ALL
            SELECT seen.name, seen.fence, NULL, NULL,
                   EXISTS (SELECT FROM pglock_lease l
                           WHERE l.namespace = seen.namespace AND l.name = seen.name AND l.fence = seen.fence
                             AND l.holder = seen.holder AND l.expires_at > clock_timestamp())
            FROM seen WHERE NOT seen.unlocked
            """;

    /**
     * Ends a tenure; no row: it was not ours any more. Row and fence stay. Whoever waits has announced it by a shared lock
     * on the wait key, and is told; nobody else is. Whoever announces it from now on waits for the end of this statement.
     *
     * <p>A release that has nothing to remember does not wait for the disk. If a crash of the server loses it, the lock
     * ends by its expiry; and whatever is granted after it is written after it, and does wait.
     */
    private static final String RELEASE = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::uuid AS holder, ?::bigint AS fence,
                     make_interval(secs => ?::float8) AS min_hold, ?::text AS completed, ?::text AS outcome, ?::text AS error,
                     ?::int AS wait_key, ?::boolean AS forgettable
            )
            UPDATE pglock_lease l
            SET holder = NULL, holder_label = NULL, released_at = clock_timestamp(),
                hold_until = l.acquired_at + ask.min_hold,
                completed = CASE WHEN ask.completed IS NULL OR ask.completed = ANY (l.completed) THEN l.completed
                                 ELSE l.completed || ask.completed END,
                completions = CASE WHEN ask.completed IS NULL THEN l.completions
                                   ELSE l.completions || jsonb_build_object(ask.completed, jsonb_build_object(
                                     'at', clock_timestamp(), 'by', l.holder_label,
                                     'seconds', extract(epoch FROM clock_timestamp() - l.acquired_at))) END,
                last_fence = l.fence, last_holder = l.holder_label, last_started_at = l.acquired_at,
                last_finished_at = clock_timestamp(), last_outcome = ask.outcome, last_error = ask.error
            FROM ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name AND l.fence = ask.fence AND l.holder = ask.holder
            RETURNING CASE WHEN NOT pg_try_advisory_xact_lock(1885826155, ask.wait_key)
                           THEN pg_notify('pglock', ask.wait_key::text) END AS told,
                      CASE WHEN ask.forgettable THEN set_config('synchronous_commit', 'off', true) END AS synchronous
            """;

    /** After a release without an answer that now finds nothing: whether it was that one which ended the tenure. */
    private static final String WAS_RELEASED = """
            SELECT FROM pglock_lease WHERE namespace = ?::text AND name = ?::text AND last_fence = ?::bigint
            """;

    /**
     * Ends whoever's tenure; no row: there was none. The new fence is what tells him; the hold keeps others out until he
     * trusts it no more. Whoever waits is told.
     */
    private static final String FORCE_RELEASE = """
            WITH ask AS (
              SELECT ?::boolean AS at_once, ?::text AS namespace, ?::text AS name, ?::int AS wait_key
            )
            UPDATE pglock_lease l
            SET holder = NULL, holder_label = NULL, fence = greatest(l.fence + 1, pg_current_xact_id()::text::bigint),
                released_at = clock_timestamp(),
                hold_until = CASE WHEN ask.at_once THEN NULL ELSE greatest(l.hold_until, l.expires_at) END
            FROM ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name AND l.holder IS NOT NULL
              AND l.expires_at > clock_timestamp()
            RETURNING CASE WHEN NOT pg_try_advisory_xact_lock(1885826155, ask.wait_key)
                           THEN pg_notify('pglock', ask.wait_key::text) END AS told
            """;

    /**
     * Asks the present holder for the lock; no row: there is none. That it was asked after its grant is what makes it the one
     * who is asked: nobody needs to take it back.
     */
    private static final String RESIGN = """
            UPDATE pglock_lease
            SET resign_at = clock_timestamp(), resign_reason = ?::text
            WHERE namespace = ?::text AND name = ?::text AND holder IS NOT NULL AND expires_at > clock_timestamp()
            RETURNING name
            """;

    /**
     * Removes rows that remember nothing. With the row its fence is forgotten, and the next one is a transaction id: only
     * rows whose fence lies below all that are still to come may go. (In a restored dump they may lie above.)
     */
    private static final String SWEEP = """
            DELETE FROM pglock_lease l
            USING (SELECT namespace, name FROM pglock_lease
                   WHERE namespace = ?::text
                     AND (holder IS NULL OR expires_at <= clock_timestamp())
                     AND coalesce(released_at, expires_at) <= clock_timestamp() - make_interval(secs => ?::float8)
                     AND (hold_until > clock_timestamp()) IS NOT TRUE
                     AND completed = '{}' AND data IS NULL AND paused IS NULL
                     AND fence < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
                   LIMIT ?::int
                   FOR UPDATE SKIP LOCKED) AS unused
            WHERE l.namespace = unused.namespace AND l.name = unused.name
            """;

    final LeaseTable table;
    final String claim;
    final String claimTick;
    final String claimNew;
    final String adopt;
    final String renew;
    final String release;
    final String wasReleased;
    final String forceRelease;
    final String resign;
    final String sweep;

    LeaseSql(LeaseTable table) {
        this.table = table;
        claim = table.in(CLAIM);
        claimTick = table.in(CLAIM.replace("/*tick ", "").replace(" tick*/", ""));
        claimNew = table.in(CLAIM_NEW);
        adopt = table.in(ADOPT);
        renew = table.in(RENEW);
        release = table.in(RELEASE);
        wasReleased = table.in(WAS_RELEASED);
        forceRelease = table.in(FORCE_RELEASE);
        resign = table.in(RESIGN);
        sweep = table.in(SWEEP);
    }
}
