package dev.pglock.aop;

import java.util.function.Supplier;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Looks into the contexts below this one when they start: beans are post-processed by their own context only, so that in one
 * without the starter's beans nothing would be locked, and nobody would be told.
 */
final class ChildContexts implements ApplicationListener<ContextRefreshedEvent> {

    private final ApplicationContext own;
    private final Supplier<LockVerifier> verifier;

    ChildContexts(ApplicationContext own, Supplier<LockVerifier> verifier) {
        this.own = own;
        this.verifier = verifier;
    }

    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        if (event.getApplicationContext() != own
                && event.getApplicationContext() instanceof ConfigurableApplicationContext child) {
            verifier.get().refuseBeansOfChild(child.getBeanFactory());
        }
    }
}
