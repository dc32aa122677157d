package dev.pglock.test;

import org.springframework.boot.test.autoconfigure.TestSliceTestContextBootstrapper;

/** Reads the properties off the annotation. */
final class PgLockTestContextBootstrapper extends TestSliceTestContextBootstrapper<PgLockTest> {

    PgLockTestContextBootstrapper() {}
}
