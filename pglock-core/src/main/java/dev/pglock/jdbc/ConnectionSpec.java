package dev.pglock.jdbc;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Where to connect to, as whom and how. Whoever hands one out is asked again for each new connection, so that a rotated
 * password or a token that lives for minutes only is picked up.
 *
 * @param url the JDBC URL
 * @param username null: the URL says it, or the driver's default
 * @param password null: none
 * @param properties further properties of the driver: TLS, schema and so on; what this project sets itself wins
 */
public record ConnectionSpec(
        String url, @Nullable String username, @Nullable String password, Map<String, String> properties) {

    /**
     * Copies the properties.
     *
     * @param url the JDBC URL
     * @param username the user
     * @param password the password
     * @param properties further properties of the driver
     */
    public ConnectionSpec {
        properties = Map.copyOf(properties);
    }

    /**
     * A spec without further properties.
     *
     * @param url the JDBC URL
     * @param username the user
     * @param password the password
     * @return the spec
     */
    public static ConnectionSpec of(String url, @Nullable String username, @Nullable String password) {
        return new ConnectionSpec(url, username, password, Map.of());
    }

    /** Tells neither the password nor the rest of the URL behind its path, where another may stand. */
    @Override
    public String toString() {
        return "ConnectionSpec[" + safeUrl() + ", " + username + "]";
    }

    String safeUrl() {
        int query = url.indexOf('?');
        String path = query < 0 ? url : url.substring(0, query);
        return path.replaceAll("//[^/@]*@", "//");
    }
}
