package dev.pglock.sample.postgres;

import javax.sql.DataSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * A Spring Boot application that has no PostgreSQL configured. Fails to start if so told. No {@code @Configuration}, which
 * the sample's component scan would find when it runs on this class path.
 */
@EnableAutoConfiguration
class SpringInstance {

    static final String QUERIED_WHILE_CLOSING = "QUERIED WHILE CLOSING";

    public static void main(String[] args) {
        ConfigurableApplicationContext context = SpringApplication.run(SpringInstance.class, args);
        context.getBean(JdbcTemplate.class).execute("SELECT 1");
        System.out.println(Instance.JOINED + context.getEnvironment().getProperty("spring.datasource.url"));
    }

    @Bean
    LastWords lastWords(DataSource dataSource) {
        return new LastWords(new JdbcTemplate(dataSource));
    }

    @Bean
    Object failure(Environment environment) {
        if (environment.getProperty("fail", Boolean.class, false)) {
            throw new IllegalStateException("Failing as told");
        }
        return new Object();
    }

    record LastWords(JdbcTemplate jdbc) implements AutoCloseable {

        @Override
        public void close() {
            this.jdbc.execute("SELECT 1");
            System.out.println(QUERIED_WHILE_CLOSING);
        }
    }
}
