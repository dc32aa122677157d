package dev.pglock.test;

import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.scheduling.annotation.EnableScheduling;

/** The application that the tests here are of. */
@SpringBootApplication
@EnableScheduling
class Shop {}
