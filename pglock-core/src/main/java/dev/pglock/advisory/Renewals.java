package dev.pglock.advisory;

import dev.pglock.jdbc.SqlStates;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The heartbeat on a lock session: asks that session which of its locks it still has, and the rows who is asked for. */
record Renewals(
        StoreIdentity identity, KeyDerivation keys, AdvisorySettings settings, AdvisorySql sql, RowMemory rows) {

    private static final Logger log = LoggerFactory.getLogger(Renewals.class);

    List<RenewalAnswer> on(LockSession session, List<Renewal> renewals) throws SQLException {
        return session.persist(connection -> on(connection, session, renewals));
    }

    /** In one statement, but for payloads that are changed. */
    private List<RenewalAnswer> on(Connection connection, LockSession session, List<Renewal> renewals)
            throws SQLException {
        session.unlockWhatIsOver();
        Heard heard = hear(connection, session, renewals);
        List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
        for (Renewal renewal : renewals) {
            answers.add(renew(connection, session, heard, renewal));
        }
        return answers;
    }

    /**
     * What a heartbeat hears.
     *
     * @param until when what is held ends
     * @param stillHeld the keys that the session has
     * @param askedFor what operators ask for, and why
     */
    private record Heard(Instant until, Set<Long> stillHeld, Map<String, String> askedFor) {}

    private Heard hear(Connection connection, LockSession session, List<Renewal> renewals) throws SQLException {
        if (!rows.isThere()) {
            return hear(connection);
        }
        List<Held> tenures = renewals.stream()
                .map(renewal -> session.held(keys.key(identity.namespace(), renewal.name())))
                .filter(Objects::nonNull)
                .toList();
        try (PreparedStatement statement = connection.prepareStatement(sql.stillHeldAndAskedFor)) {
            rows.setTenures(connection, statement, tenures);
            return hear(statement, true);
        } catch (SQLException e) {
            switch (SqlStates.kindOf(e)) {
                case BROKEN, READ_ONLY, CONFLICT, STALE_STATEMENT -> throw e;
                case MISSING_TABLE -> rows.isThere(false);
                default -> log.debug("What operators ask for could not be read", e);
            }
            // Whatever is in the way of the table is not in the way of the keys.
            return hear(connection);
        }
    }

    private Heard hear(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.STILL_HELD)) {
            return hear(statement, false);
        }
    }

    private Heard hear(PreparedStatement statement, boolean withRows) throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            if (row.getBoolean("standby")) {
                throw new SQLException("The server has become a standby", "25006");
            }
            Map<String, String> askedFor = new HashMap<>();
            if (withRows) {
                String[] names = (String[]) row.getArray("asked").getArray();
                String[] reasons = (String[]) row.getArray("reasons").getArray();
                for (int i = 0; i < names.length; i++) {
                    askedFor.put(names[i], reasons[i]);
                }
            }
            return new Heard(
                    LockSession.instant(row, "now").plus(settings.lease()),
                    new HashSet<>(Arrays.asList((Long[]) row.getArray("keys").getArray())),
                    askedFor);
        }
    }

    private RenewalAnswer renew(Connection connection, LockSession session, Heard heard, Renewal renewal)
            throws SQLException {
        long key = keys.key(identity.namespace(), renewal.name());
        Held tenure = session.held(key);
        boolean ours = tenure != null && tenure.fence() == renewal.fence() && !tenure.isKept();
        if (!ours || tenure == null) {
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        if (!heard.stillHeld().contains(key)) {
            session.forget(key);
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        Renewal.Payload payload = renewal.payload();
        if (payload != null) {
            rows.payload(connection, tenure, payload.data());
        }
        return new RenewalAnswer(
                renewal.name(),
                renewal.fence(),
                RenewalAnswer.Result.RENEWED,
                heard.until(),
                heard.askedFor().get(renewal.name()));
    }
}
