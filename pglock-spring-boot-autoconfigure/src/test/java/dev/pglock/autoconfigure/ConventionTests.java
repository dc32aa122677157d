package dev.pglock.autoconfigure;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noCodeUnits;
import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.io.ClassPathResource;

/** What Spring Boot's own build checks of its modules. The texts say what to do instead. */
class ConventionTests {

    private static final String IMPORTS =
            "META-INF/spring/org.springframework.boot.autoconfigure.AutoConfiguration.imports";

    private static final JavaClasses MAIN = new ClassFileImporter()
            // Whatever the build directory is called
            .withImportOption(location -> !location.contains("/test-classes/") && !location.contains("-tests.jar"))
            .importPackages("dev.pglock");

    private static final Set<String> PACKAGES = new TreeSet<>(MAIN.stream()
            .filter(type -> !type.getPackageName().isEmpty())
            .map(JavaClass::getPackageName)
            .toList());

    @Test
    void theImportsAreSortedAndComplete() throws IOException {
        List<String> imports = lines(IMPORTS);
        assertThat(imports).isSorted().doesNotHaveDuplicates();
        assertThat(imports)
                .containsExactlyInAnyOrderElementsOf(MAIN.stream()
                        .filter(type -> type.isAnnotatedWith(AutoConfiguration.class))
                        .map(JavaClass::getName)
                        .toList());
    }

    @Test
    void autoConfigurationsArePublicFinalAndHaveNoPublicMembers() throws Exception {
        for (String name : lines(IMPORTS)) {
            Class<?> type = Class.forName(name);
            assertThat(name).endsWith("AutoConfiguration");
            assertThat(Modifier.isPublic(type.getModifiers()) && Modifier.isFinal(type.getModifiers()))
                    .as(name + " is public final")
                    .isTrue();
            assertThat(Stream.of(type.getDeclaredMethods(), type.getDeclaredConstructors())
                            .flatMap(Arrays::stream)
                            .filter(member -> Modifier.isPublic(member.getModifiers())))
                    .as("public members of " + name)
                    .isEmpty();
        }
    }

    /** A name that does not resolve is no error at run time: the order is just lost. */
    @Test
    void everyOrderResolves() throws Exception {
        for (String name : lines(IMPORTS)) {
            AutoConfiguration annotation = Class.forName(name).getAnnotation(AutoConfiguration.class);
            List<String> others = new ArrayList<>();
            others.addAll(List.of(annotation.afterName()));
            others.addAll(List.of(annotation.beforeName()));
            Stream.of(annotation.after(), annotation.before())
                    .flatMap(Arrays::stream)
                    .map(Class::getName)
                    .forEach(others::add);
            for (String other : others) {
                Class<?> type = Class.forName(other);
                assertThat(AnnotatedElementUtils.hasAnnotation(type, AutoConfiguration.class))
                        .as(other + " in the order of " + name + " is an auto-configuration")
                        .isTrue();
            }
        }
    }

    @Test
    void springFactoriesAreSortedAndLoad() throws Exception {
        Properties factories = new Properties();
        try (InputStream in = new ClassPathResource("META-INF/spring.factories", ownLoader()).getInputStream()) {
            factories.load(in);
        }
        assertThat(factories.stringPropertyNames()).isNotEmpty();
        for (String key : factories.stringPropertyNames()) {
            Class<?> type = Class.forName(key);
            List<String> values = List.of(factories.getProperty(key).split(","));
            assertThat(values).as(key).isSorted().doesNotHaveDuplicates();
            for (String value : values) {
                assertThat(type).isAssignableFrom(Class.forName(value));
            }
        }
    }

    @Test
    void everyAnalyzerIsRegistered() throws IOException {
        String factories = String.join("\n", lines("META-INF/spring.factories"));
        assertThat(MAIN.stream()
                        .filter(type -> type.isAssignableTo(FailureAnalyzer.class))
                        .map(JavaClass::getName))
                .isNotEmpty()
                .allSatisfy(name -> assertThat(factories).contains(name));
    }

    @Test
    void everyPropertyIsDescribedAndEveryDefaultIsKnown() throws IOException {
        String json = String.join("\n", lines("META-INF/spring-configuration-metadata.json"));
        List<Map<String, Object>> properties = JsonPath.read(json, "$.properties");
        assertThat(properties).isNotEmpty().allSatisfy(property -> {
            String description = (String) property.get("description");
            assertThat(description).as("description of " + property.get("name")).isNotBlank();
            assertThat(description)
                    .as("description of " + property.get("name"))
                    .doesNotStartWith("The ")
                    .doesNotStartWith("A ")
                    .doesNotContain("{@")
                    .endsWith(".");
            assertThat(
                            property.get("defaultValue") != null
                                    || description.contains("By default")
                                    || ((String) property.get("name"))
                                            .matches(
                                                    "pglock\\.(locks|datasource\\.(username|password)|scheduled\\.every-replica)"))
                    .as("the default of " + property.get("name") + " is in the metadata or described")
                    .isTrue();
        });
        assertThat(properties.stream().map(property -> (String) property.get("name")))
                .allMatch(name -> name.matches("pglock\\..*|management\\.(endpoint|health)\\.pglock\\..*"));
    }

    @Test
    void everyValueThatCanBeChosenIsHinted() throws Exception {
        String json = String.join("\n", lines("META-INF/spring-configuration-metadata.json"));
        Map<String, List<String>> hints = new HashMap<>();
        for (Map<String, Object> hint : JsonPath.<List<Map<String, Object>>>read(json, "$.hints")) {
            List<Map<String, String>> values = new ArrayList<>();
            if (hint.get("values") instanceof List<?> all) {
                all.forEach(value -> values.add(JsonPath.read(value, "$")));
            }
            assertThat(values)
                    .allSatisfy(value -> assertThat(value.get("description")).endsWith("."));
            hints.put(
                    (String) hint.get("name"),
                    values.stream().map(value -> value.get("value")).toList());
        }
        assertThat(hints).containsKeys("pglock.locks[].name", "pglock.locks[].mode");
        for (Map<String, Object> property : JsonPath.<List<Map<String, Object>>>read(json, "$.properties")) {
            String type = String.valueOf(property.get("type"));
            Class<?> values = type.startsWith("dev.pglock.") ? Class.forName(type) : Object.class;
            if (values.isEnum()) {
                assertThat(hints.get(property.get("name")))
                        .as("hints for " + property.get("name"))
                        .containsExactlyInAnyOrderElementsOf(Stream.of(values.getEnumConstants())
                                .map(value -> value.toString()
                                        .toLowerCase(Locale.ROOT)
                                        .replace('_', '-'))
                                .toList());
            }
        }
    }

    @Test
    void everyPackageSaysWhoLivesThereAndIsNullMarked() throws Exception {
        for (String name : PACKAGES) {
            assertThat(Class.forName(name + ".package-info").isAnnotationPresent(NullMarked.class))
                    .as(name)
                    .isTrue();
        }
    }

    @Test
    void interceptionKnowsNothingOfItsConfiguration() {
        noClasses()
                .that()
                .resideInAnyPackage("dev.pglock.annotation..", "dev.pglock.aop..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("dev.pglock.autoconfigure..")
                .check(MAIN);
    }

    @Test
    void interceptionUsesNothingOfSpringBootButItsDurations() {
        noClasses()
                .that()
                .resideInAnyPackage("dev.pglock.annotation..", "dev.pglock.aop..")
                .should()
                .dependOnClassesThat(DescribedPredicate.describe(
                        "Spring Boot, other than DurationStyle",
                        type -> type.getPackageName().startsWith("org.springframework.boot")
                                && !type.isEquivalentTo(DurationStyle.class)))
                .check(MAIN);
    }

    @Test
    void optionalModulesAreKnownOnlyWhereTheyMayBeMissing() {
        noClasses()
                .that()
                .resideOutsideOfPackages("dev.pglock.observability..", "dev.pglock.autoconfigure..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.micrometer..")
                .check(MAIN);
        noClasses()
                .that()
                .resideOutsideOfPackages("dev.pglock.actuate..", "dev.pglock.autoconfigure..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("org.springframework.boot.actuate..", "org.springframework.boot.health..")
                .check(MAIN);
        noClasses()
                .that()
                .resideInAnyPackage("dev.pglock.observability..", "dev.pglock.actuate..", "dev.pglock.event..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("dev.pglock.engine..", "dev.pglock.store..", "dev.pglock.aop..")
                .check(MAIN);
    }

    @Test
    void onlyTheConfigurationPutsStoresTogether() {
        noClasses()
                .that()
                .resideInAnyPackage("dev.pglock.annotation..", "dev.pglock.aop..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(
                        "dev.pglock.engine..",
                        "dev.pglock.store..",
                        "dev.pglock.lease..",
                        "dev.pglock.local..",
                        "dev.pglock.jdbc..")
                .check(MAIN);
    }

    @Test
    void classConditionsStandOnClasses() {
        methods()
                .that()
                .areAnnotatedWith(Bean.class)
                .should()
                .notBeAnnotatedWith(ConditionalOnClass.class)
                .because("the method's signature is loaded before the condition is asked: use a nested configuration")
                .check(MAIN);
    }

    @Test
    void beansAreVisibleToAheadOfTimeProcessing() {
        methods()
                .that()
                .areAnnotatedWith(Bean.class)
                .should()
                .notHaveRawReturnType(DescribedPredicate.describe(
                        "private", type -> type.getModifiers().contains(JavaModifier.PRIVATE)))
                .check(MAIN);
    }

    @Test
    void conditionsAreNobodysApi() {
        classes()
                .that()
                .implement(Condition.class)
                .should()
                .notBePublic()
                .allowEmptyShould(true)
                .check(MAIN);
    }

    @Test
    void nothingIsSynchronized() {
        noCodeUnits()
                .should()
                .haveModifier(JavaModifier.SYNCHRONIZED)
                .because("it pins virtual threads: use a ReentrantLock")
                .check(MAIN);
    }

    @Test
    void aNativeImageKeepsTheSchemaAndHowARoleWithoutSettingsIsMade() {
        RuntimeHints hints = new RuntimeHints();
        new PgLockRuntimeHints().registerHints(hints, getClass().getClassLoader());
        assertThat(RuntimeHintsPredicates.resource().forResource(PgLockRuntimeHints.SCHEMA))
                .accepts(hints);
        assertThat(new ClassPathResource(PgLockRuntimeHints.SCHEMA).exists()).isTrue();
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(PgLockProperties.Leader.class, "valueOf"))
                .accepts(hints);
    }

    private static ClassLoader ownLoader() {
        return new URLClassLoader(
                new URL[] {
                    PgLockAutoConfiguration.class
                            .getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                },
                null);
    }

    /** Of this module, not of whatever stands before it on the class path. */
    private static List<String> lines(String resource) throws IOException {
        try (InputStream in = new ClassPathResource(resource, ownLoader()).getInputStream()) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
        }
    }
}
