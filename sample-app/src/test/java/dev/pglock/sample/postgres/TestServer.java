package dev.pglock.sample.postgres;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** What a test sees of the server in a state directory without having a share in it. */
public final class TestServer {

    private TestServer() {}

    /** A connection for each statement, so that none keeps the server from stopping. */
    public static JdbcClient connect(Path stateDirectory) throws IOException {
        ConnectionDetails connection = server(stateDirectory).find();
        if (connection == null) {
            throw new IllegalStateException("No server in " + stateDirectory);
        }
        return JdbcClient.create(
                new DriverManagerDataSource(connection.url(), connection.username(), connection.password()));
    }

    /** The servers of this directory: backends have other titles, and initdb's helpers no such argument. */
    public static List<ProcessHandle> postmasters(Path stateDirectory) {
        String data = new StateDirectory(stateDirectory).data().toString();
        return ProcessHandle.allProcesses()
                .filter(process -> process.info()
                        .arguments()
                        .filter(arguments -> List.of(arguments).contains(data))
                        .isPresent())
                .filter(process -> process.info().command().orElse("").endsWith("/postgres"))
                .toList();
    }

    /** Clears away what a failed test has left behind. */
    public static void stop(Path stateDirectory) throws IOException {
        if (Files.exists(stateDirectory)) {
            server(stateDirectory).stop();
        }
    }

    private static PostgresServer server(Path stateDirectory) {
        return new PostgresServer(new StateDirectory(stateDirectory), PostgresBinaries.ofThisUser());
    }
}
