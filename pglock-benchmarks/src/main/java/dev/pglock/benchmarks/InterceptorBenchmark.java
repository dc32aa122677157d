package dev.pglock.benchmarks;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.annotation.RunOnce;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** What the interceptor adds to a call, without a database: locks are kept in memory. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 5)
@Measurement(iterations = 8)
public class InterceptorBenchmark {

    private final Jobs plain = new Jobs();
    private final ConfigurableApplicationContext context;
    private final Jobs locked;
    private final LockHandle held;

    /** What is called. */
    public static class Jobs {

        private long count;

        /** Locked, and held by somebody else. */
        @RunOnce("taken")
        public void taken() {
            count++;
        }

        /** Locked, and free. */
        @RunOnce("free")
        public void free() {
            count++;
        }

        /** Not locked. */
        public long plain() {
            return count++;
        }
    }

    /** The application. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(excludeName = "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration")
    public static class Application {

        @Bean
        Jobs jobs() {
            return new Jobs();
        }
    }

    /** Starts the application, and takes the lock in another thread. */
    public InterceptorBenchmark() {
        Benchmarks.quiet();
        context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("pglock.strategy=local", "spring.application.name=benchmark", "spring.main.banner-mode=off")
                .run();
        locked = context.getBean(Jobs.class);
        held = CompletableFuture.supplyAsync(() -> context.getBean(LockRegistry.class)
                        .tryAcquire(LockRequest.of("taken"))
                        .orElseThrow())
                .join();
    }

    /** Stops it. */
    @TearDown
    public void stop() {
        held.close();
        context.close();
    }

    /** The same call without an interceptor. */
    @Benchmark
    public long notLocked() {
        return plain.plain();
    }

    /** A call that is skipped, because another thread of this replica holds the lock. */
    @Benchmark
    public void decidedLocally() {
        locked.taken();
    }

    /** A call that takes the lock, in memory, and gives it back. */
    @Benchmark
    public void takenInMemory() {
        locked.free();
    }
}
