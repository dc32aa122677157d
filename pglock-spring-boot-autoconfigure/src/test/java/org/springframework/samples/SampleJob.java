package org.springframework.samples;

import org.springframework.scheduling.annotation.Scheduled;

/** An application may stand below Spring's own package: its samples do. */
public class SampleJob {

    @Scheduled(cron = "-")
    public void tick() {}
}
