package dev.pglock.sample.web;

import java.net.BindException;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.net.NioEndpoint;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.web.server.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

/**
 * Lets the same command start a second replica on the same machine: a port that is taken is replaced by the next one.
 * It is the bind itself that is repeated. Whoever looks for a free port first can lose it to a replica that starts at
 * the same time.
 */
@Component
class NextFreePort implements WebServerFactoryCustomizer<TomcatServletWebServerFactory> {

    private static final Logger log = LoggerFactory.getLogger(NextFreePort.class);

    private final Environment environment;

    NextFreePort(Environment environment) {
        this.environment = environment;
    }

    @Override
    public void customize(TomcatServletWebServerFactory factory) {
        factory.setProtocol(Protocol.class.getName());
    }

    @EventListener
    void sayWhere(WebServerInitializedEvent event) {
        log.info(
                "Replica {} is at http://{}:{}/",
                this.environment.getProperty("pglock.instance-id"),
                this.environment.getProperty("server.address"),
                event.getWebServer().getPort());
    }

    /** HTTP/1.1 as ever. Created by Tomcat, by its name. */
    public static final class Protocol extends Http11NioProtocol {

        public Protocol() {
            super(new Endpoint());
        }
    }

    private static final class Endpoint extends NioEndpoint {

        private static final int ATTEMPTS = 20;

        @Override
        protected void initServerSocket() throws Exception {
            for (int attempt = 1; ; attempt++) {
                try {
                    super.initServerSocket();
                    return;
                } catch (BindException ex) {
                    doCloseServerSocket();
                    if (attempt == ATTEMPTS) {
                        throw ex;
                    }
                    log.info("Port {} is taken, by another replica perhaps: trying {}", getPort(), getPort() + 1);
                    setPort(getPort() + 1);
                }
            }
        }
    }
}
