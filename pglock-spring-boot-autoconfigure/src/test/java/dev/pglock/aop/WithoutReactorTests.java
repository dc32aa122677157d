package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.annotation.RunOnce;
import dev.pglock.local.LocalSpace;
import java.io.File;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.stereotype.Component;

/** Reactor is optional: everything else works where it is absent. */
class WithoutReactorTests {

    @Test
    void locksWorkWithoutReactorOnTheClassPath() throws Exception {
        URL[] classPath = Stream.of(
                        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"))
                                .split(Pattern.quote(File.pathSeparator)))
                .filter(entry -> !entry.contains("reactor") && !entry.contains("reactive-streams"))
                .map(entry -> url(new File(entry).toURI()))
                .toArray(URL[]::new);
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try (URLClassLoader loader = new URLClassLoader(classPath, ClassLoader.getPlatformClassLoader())) {
            Thread.currentThread().setContextClassLoader(loader);
            assertThatExceptionOfType(ClassNotFoundException.class)
                    .isThrownBy(() -> loader.loadClass("reactor.core.publisher.Mono"));
            Callable<?> application = (Callable<?>) loader.loadClass(Application.class.getName())
                    .getDeclaredConstructor()
                    .newInstance();
            assertThat(application.call()).isEqualTo("value optional future null");
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private static URL url(URI uri) {
        try {
            return uri.toURL();
        } catch (java.net.MalformedURLException e) {
            throw new IllegalArgumentException(e);
        }
    }

    public static final class Application implements Callable<String> {

        public Application() {}

        @Override
        public String call() {
            try (Replica replica = Replica.start("A", new LocalSpace(), Jobs.class)) {
                Jobs jobs = replica.bean(Jobs.class);
                return String.join(
                        " ",
                        jobs.value(),
                        jobs.optional().orElseThrow(),
                        jobs.future().join(),
                        String.valueOf(jobs.any()));
            }
        }
    }

    @Component
    static class Jobs {

        @RunOnce("value")
        public String value() {
            return "value";
        }

        @RunOnce("optional")
        public Optional<String> optional() {
            return Optional.of("optional");
        }

        @RunOnce("future")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("future");
        }

        @RunOnce("any")
        public Object any() {
            return null;
        }
    }
}
