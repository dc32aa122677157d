package dev.pglock.test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.fields;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import org.junit.jupiter.api.Test;

/** What this module may know, and keep. */
class RoomsTests {

    private static final JavaClasses MAIN = new ClassFileImporter()
            .withImportOption(
                    location -> location.contains("pglock-spring-boot-test") && !location.contains("/test-classes/"))
            .importPackages("dev.pglock.test");

    @Test
    void nothingStaticChanges() {
        fields().that().areStatic().should().beFinal().check(MAIN);
    }

    @Test
    void onlyTheServerKnowsHowOneIsStarted() {
        noClasses()
                .that()
                .doNotHaveSimpleName("EmbeddedServer")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.zonky..")
                .check(MAIN);
    }

    @Test
    void ofTheHouseItKnowsWhatUsersSeeAndTheMemoryWhoseClockIsSet() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(
                        "dev.pglock.engine..",
                        "dev.pglock.store..",
                        "dev.pglock.lease..",
                        "dev.pglock.advisory..",
                        "dev.pglock.jdbc..",
                        "dev.pglock.aop..",
                        "dev.pglock.autoconfigure..")
                .check(MAIN);
    }
}
