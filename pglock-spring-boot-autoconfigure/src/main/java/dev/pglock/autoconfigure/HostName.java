package dev.pglock.autoconfigure;

import java.net.InetAddress;
import java.net.UnknownHostException;
import org.springframework.util.StringUtils;

/** What this machine is called. It is a label, so there is always an answer, and none is worth a failed start. */
final class HostName {

    static final String UNKNOWN = "unknown-host";

    private HostName() {}

    static String find() {
        // Kubernetes and most shells; it asks no name server.
        String fromEnvironment = System.getenv("HOSTNAME");
        if (StringUtils.hasText(fromEnvironment)) {
            return fromEnvironment;
        }
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return UNKNOWN;
        }
    }
}
