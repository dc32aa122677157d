package dev.pglock.sample.lab;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What the command line says.
 *
 * @param port where the page is; 0: any that is free
 * @param url of a PostgreSQL that is there already; null: the lab brings its own
 * @param username its user
 * @param password and password; null: that of the environment variable PGPASSWORD
 */
record LabOptions(
        int port,
        @Nullable String url,
        @Nullable String username,
        @Nullable String password) {

    static final String SWITCH = "--lab";

    private static final int DEFAULT_PORT = 8090;

    private static final List<String> KNOWN = List.of("lab.port", "lab.url", "lab.username", "lab.password");

    /**
     * Reads {@code --lab.port}, {@code --lab.url}, {@code --lab.username} and {@code --lab.password}.
     *
     * @throws LabException if there is an argument that it does not know
     */
    static LabOptions of(String... arguments) {
        Map<String, String> values = new HashMap<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (argument.startsWith("--") && equals > 0) {
                values.put(argument.substring(2, equals), argument.substring(equals + 1));
            } else if (!argument.equals(SWITCH)) {
                values.put(argument, "");
            }
        }
        TreeSet<String> unknown = new TreeSet<>(values.keySet());
        unknown.removeAll(KNOWN);
        if (!unknown.isEmpty()) {
            throw new LabException(
                    "The lab does not know " + unknown + ". It knows --lab.port=8090 and, for a PostgreSQL"
                            + " of yours, --lab.url=jdbc:postgresql://…, --lab.username=… and --lab.password=….");
        }
        return new LabOptions(
                port(values.getOrDefault("lab.port", Integer.toString(DEFAULT_PORT))),
                values.get("lab.url"),
                values.get("lab.username"),
                values.get("lab.password"));
    }

    private static int port(String text) {
        try {
            int port = Integer.parseInt(text);
            if (port >= 0 && port <= 65535) {
                return port;
            }
        } catch (NumberFormatException ex) {
            // Said below.
        }
        throw new LabException("--lab.port=" + text + " is no port.");
    }

    /** Without the password. */
    @Override
    public String toString() {
        return "port " + this.port + ", " + (this.url == null ? "a PostgreSQL of its own" : this.url);
    }
}
