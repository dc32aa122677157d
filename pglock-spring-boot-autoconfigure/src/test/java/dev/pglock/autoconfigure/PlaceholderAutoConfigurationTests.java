package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.testing.PlaceholderDatabase;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class PlaceholderAutoConfigurationTests {

    @Test
    void contextStarts() throws Exception {
        try (var postgres = PlaceholderDatabase.start()) {
            new ApplicationContextRunner()
                    .withConfiguration(AutoConfigurations.of(
                            DataSourceAutoConfiguration.class, PlaceholderAutoConfiguration.class))
                    .withPropertyValues("spring.datasource.url=" + postgres.getJdbcUrl("postgres", "postgres"))
                    .run(context -> assertThat(context).hasSingleBean(PlaceholderAutoConfiguration.class));
        }
        System.out.println("Spring Boot " + SpringBootVersion.getVersion());
    }
}
