package dev.pglock.testing;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.LoggerFactory;

/** What somebody logs at INFO and above. */
public final class CapturedLog extends AppenderBase<ILoggingEvent> implements AutoCloseable {

    private final Logger logger;
    private final List<String> messages = new CopyOnWriteArrayList<>();

    private CapturedLog(String name) {
        this.logger = (Logger) LoggerFactory.getLogger(name);
    }

    public static CapturedLog of(Class<?> type) {
        return of(type.getName());
    }

    public static CapturedLog of(String name) {
        CapturedLog log = new CapturedLog(name);
        log.start();
        log.logger.addAppender(log);
        return log;
    }

    @Override
    protected void append(ILoggingEvent event) {
        if (event.getLevel().isGreaterOrEqual(Level.INFO)) {
            messages.add(event.getLevel() + " " + event.getFormattedMessage());
        }
    }

    /** Level and text. */
    public List<String> messages() {
        return List.copyOf(messages);
    }

    @Override
    public void close() {
        logger.detachAppender(this);
        stop();
    }
}
