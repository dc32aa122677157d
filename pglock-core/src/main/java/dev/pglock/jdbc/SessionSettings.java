package dev.pglock.jdbc;

import java.nio.charset.StandardCharsets;

/**
 * What every session of our own is set to, whatever role, database and URL say.
 *
 * @param applicationName how an operator finds our sessions in {@code pg_stat_activity}: {@code pglock:namespace:instance}
 * @param timeouts how long things may take
 */
public record SessionSettings(String applicationName, JdbcTimeouts timeouts) {

    /** {@code NAMEDATALEN - 1}: the server cuts what is longer. */
    private static final int GREATEST_NAME_LENGTH = 63;

    /**
     * Cleans the name: what the server would replace or cut is replaced and cut here.
     *
     * @param applicationName how an operator finds our sessions
     * @param timeouts how long things may take
     */
    public SessionSettings {
        applicationName = clean(applicationName);
    }

    private static String clean(String name) {
        String ascii = name.replaceAll("[^\\x20-\\x7e]", "?");
        byte[] bytes = ascii.getBytes(StandardCharsets.US_ASCII);
        return bytes.length <= GREATEST_NAME_LENGTH ? ascii : ascii.substring(0, GREATEST_NAME_LENGTH);
    }

    /**
     * The settings of one replica.
     *
     * @param namespace its namespace
     * @param instance its label
     * @param timeouts how long things may take
     * @return the settings
     */
    public static SessionSettings of(String namespace, String instance, JdbcTimeouts timeouts) {
        return new SessionSettings(prefix(namespace) + instance, timeouts);
    }

    /**
     * How the application names of a namespace's sessions begin.
     *
     * @param namespace the namespace
     * @return as the server has it
     */
    public static String prefix(String namespace) {
        return clean("pglock:" + namespace + ":");
    }
}
