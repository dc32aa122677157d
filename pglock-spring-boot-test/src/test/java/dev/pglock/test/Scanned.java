package dev.pglock.test;

import org.springframework.stereotype.Component;

/** Another bean of the application. */
@Component
class Scanned {}
