package dev.pglock.sample;

import dev.pglock.sample.lab.Lab;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.scheduling.annotation.EnableScheduling;

/**
 * A service with three jobs. Start it twice: each job runs on one of the two.
 *
 * <p>Nothing here is about locks: the starter on the class path is enough. With {@code --lab} it is not a replica that is
 * started but the lab, which starts three.
 */
@SpringBootApplication
@EnableScheduling
public class SampleApplication {

    public static void main(String[] args) {
        if (Lab.isAskedFor(args)) {
            Lab.main(args);
            return;
        }
        SpringApplication.run(SampleApplication.class, args);
    }
}
