package dev.pglock.sample;

import static org.assertj.core.api.Assertions.assertThat;

import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.test.context.SpringBootTest;

@SpringBootTest
class SampleApplicationTests {

    @Autowired
    private DataSource dataSource;

    @Test
    void starts() {
        assertThat(dataSource).isNotNull();
        assertThat(SpringBootVersion.getVersion()).isEqualTo("4.1.2");
    }
}
