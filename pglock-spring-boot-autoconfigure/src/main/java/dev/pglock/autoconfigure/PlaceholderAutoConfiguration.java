package dev.pglock.autoconfigure;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;

/** Stands in until there is code. */
@AutoConfiguration(after = DataSourceAutoConfiguration.class)
@EnableConfigurationProperties(PlaceholderAutoConfiguration.Properties.class)
public final class PlaceholderAutoConfiguration {

    PlaceholderAutoConfiguration() {}

    @ConfigurationProperties("pglock.placeholder")
    record Properties(boolean enabled) {}
}
