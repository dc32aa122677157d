package dev.pglock;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noMethods;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import dev.pglock.store.TickGuard;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import org.jspecify.annotations.NullMarked;

/** Which room may know which. */
@AnalyzeClasses(packages = "dev.pglock", importOptions = ArchitectureTests.MainCode.class)
class ArchitectureTests {

    @ArchTest
    static final ArchRule DEPENDENCIES_POINT_ONE_WAY = layeredArchitecture()
            .consideringOnlyDependenciesInAnyPackage("dev.pglock..")
            .layer("api")
            .definedBy("dev.pglock")
            .layer("engine")
            .definedBy("dev.pglock.engine..")
            .layer("store")
            .definedBy("dev.pglock.store..")
            .layer("lease")
            .definedBy("dev.pglock.lease..")
            .optionalLayer("advisory")
            .definedBy("dev.pglock.advisory..")
            .layer("local")
            .definedBy("dev.pglock.local..")
            .layer("jdbc")
            .definedBy("dev.pglock.jdbc..")
            .whereLayer("api")
            .mayNotAccessAnyLayer()
            .whereLayer("engine")
            .mayOnlyAccessLayers("api", "store")
            .whereLayer("store")
            .mayOnlyAccessLayers("api")
            .whereLayer("lease")
            .mayOnlyAccessLayers("api", "store", "jdbc")
            .whereLayer("advisory")
            .mayOnlyAccessLayers("api", "store", "jdbc", "lease") // the row is one and the same
            .whereLayer("local")
            .mayOnlyAccessLayers("api", "store")
            .whereLayer("jdbc")
            .mayOnlyAccessLayers("api", "store"); // whose seam for wake-ups it fills

    @ArchTest
    static final ArchRule THE_CORE_KNOWS_NO_SPRING =
            noClasses().should().dependOnClassesThat().resideInAPackage("org.springframework..");

    @ArchTest
    static final ArchRule ONLY_THE_JDBC_ROOM_KNOWS_POOL_AND_DRIVER = noClasses()
            .that()
            .resideOutsideOfPackage("dev.pglock.jdbc..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("com.zaxxer.hikari..", "org.postgresql..");

    @ArchTest
    static final ArchRule THE_ENGINE_SPEAKS_NO_SQL = noClasses()
            .that()
            .resideInAnyPackage("dev.pglock", "dev.pglock.engine..", "dev.pglock.store..")
            // It stands by itself, for databases in which there are no locks.
            .and()
            .doNotHaveFullyQualifiedName(FencedResource.class.getName())
            .should()
            // A connection may be passed through, with what it throws.
            .dependOnClassesThat(resideInAnyPackage("javax.sql..", "java.sql..")
                    .and(not(belongToAnyOf(Connection.class, SQLException.class))));

    /**
     * Replicas' clocks differ; only the server's decides. In memory there is no server. A fire time is read off the clock of
     * the scheduler that fired, and mapped to the server's by the difference of the two.
     */
    @ArchTest
    static final ArchRule NOTHING_READS_THIS_MACHINES_CLOCK = noClasses()
            .that()
            .resideOutsideOfPackage("dev.pglock.local..")
            .and()
            .doNotBelongToAnyOf(Tick.class, TickGuard.class)
            .should()
            .callMethod(Instant.class, "now")
            .orShould()
            .callMethod(OffsetDateTime.class, "now")
            .orShould()
            .callMethod(System.class, "currentTimeMillis")
            .orShould()
            .dependOnClassesThat()
            .areAssignableTo(Clock.class)
            .orShould()
            .dependOnClassesThat()
            .areAssignableTo(java.util.Date.class)
            .orShould()
            .callMethod(LocalDateTime.class, "now")
            .orShould()
            .callMethod(ZonedDateTime.class, "now");

    /** A virtual thread that waits inside a monitor keeps its carrier. */
    @ArchTest
    static final ArchRule NOTHING_IS_SYNCHRONIZED = noMethods().should().haveModifier(JavaModifier.SYNCHRONIZED);

    @ArchTest
    static final ArchRule EVERY_PACKAGE_IS_NULL_MARKED =
            classes().that().haveSimpleName("package-info").should().beAnnotatedWith(NullMarked.class);

    /** Whatever the build directory is called. */
    static final class MainCode implements ImportOption {

        @Override
        public boolean includes(Location location) {
            return !location.contains("/test-classes/") && !location.contains("-tests.jar");
        }
    }
}
