package dev.pglock.autoconfigure;

import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.event.LockLostEvent;
import dev.pglock.event.LockOutageBeganEvent;
import dev.pglock.event.LockOutageEndedEvent;
import java.time.Duration;
import org.springframework.context.ApplicationEventPublisher;

/** Publishes what deserves an application event: losses and outages. The registry tells them where nobody is held up. */
final class LockEvents implements LockListener {

    private final ApplicationEventPublisher publisher;
    private final String replica;

    LockEvents(ApplicationEventPublisher publisher, String replica) {
        this.publisher = publisher;
        this.replica = replica;
    }

    @Override
    public void lost(LockHandle lock, LossReason reason) {
        publisher.publishEvent(new LockLostEvent(lock.name(), lock.strategy(), lock.fence(), reason, replica));
    }

    @Override
    public void outageBegan(LockStrategy strategy, LockStorageException cause) {
        publisher.publishEvent(new LockOutageBeganEvent(strategy, cause, replica));
    }

    @Override
    public void outageEnded(LockStrategy strategy, Duration lasted) {
        publisher.publishEvent(new LockOutageEndedEvent(strategy, lasted, replica));
    }
}
