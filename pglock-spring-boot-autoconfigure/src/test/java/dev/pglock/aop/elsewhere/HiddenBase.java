package dev.pglock.aop.elsewhere;

import org.springframework.scheduling.annotation.Scheduled;

/** Its method is seen by nobody outside this package, the proxy of a subclass included. */
public class HiddenBase {

    @Scheduled(fixedDelay = 100)
    void tick() {}
}
