package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * The page of the lab in a real browser, and what is done by its buttons. With {@code -Dpglock.test.lab.images=../docs/images}
 * it takes the pictures of the documentation anew.
 */
@Tag("long")
@Tag("lab")
@EnabledOnOs(value = OS.LINUX, disabledReason = "signals, and Debian's Chromium")
@Timeout(300)
class LabPageTests {

    private static final String LONG_JOB = "Reconciliation.reconcile";

    private static final String FENCED_JOB = "ledger.close";

    /** The bounds of take-overs are asked of the questions. Here it is the browser that needs time too. */
    private static final Duration SOON = Duration.ofSeconds(30);

    private static final String IMAGES = System.getProperty("pglock.test.lab.images", "");

    @TempDir
    static Path temporary;

    private static Browser browser;

    @RegisterExtension
    static final SharedLab shared = new SharedLab();

    private Lab lab;

    @BeforeAll
    static void open() throws Exception {
        browser = Browser.open(temporary);
        browser.look(1280, 1100, "light");
    }

    @AfterAll
    static void close() throws Exception {
        if (browser != null) {
            browser.close();
        }
    }

    @BeforeEach
    void openPage() throws Exception {
        this.lab = shared.get();
        browser.go(this.lab.url());
        threeReplicasAreUp();
    }

    private static void threeReplicasAreUp() {
        await().atMost(Duration.ofSeconds(90)).until(() -> browser.count(".replica[data-state=up]") == 3);
    }

    @Test
    void allJobsRunOnThreeReplicasAndThePageSaysNothingOnTheConsole() throws Exception {
        for (String job : new String[] {LONG_JOB, FENCED_JOB, "orders.rollup", "mail.digest"}) {
            browser.awaitElement("#locks [data-lock='" + job + "']", SOON);
            browser.awaitElement("#timeline .run[data-lock='" + job + "']", SOON);
        }
        browser.awaitElement("#timeline .skip", SOON);
        browser.awaitElement("#log .TAKE", SOON);
        browser.awaitElement("#timeline .run.done[data-lock='" + FENCED_JOB + "']", SOON);
        if (!IMAGES.isEmpty()) {
            awaitMinuteWithoutAFault();
            browser.screenshot(Path.of(IMAGES, "lab.png"));
        }
        browser.screenshot(Path.of("target", "lab", "all-well.png"));
        assertThat(browser.run("return performance.getEntriesByType('resource').every(r => r.name.startsWith(origin))")
                        .asBoolean())
                .as("no request to anywhere else")
                .isTrue();
        assertThat(browser.console()).isEmpty();
    }

    @Test
    void theJobOfAReplicaThatIsKilledIsSeenOnAnother() throws Exception {
        String victim = awaitHolder(LONG_JOB);
        browser.click(button(victim, "kill"));
        browser.awaitElement(".replica[data-replica=" + victim + "][data-state=down]", SOON);
        browser.awaitElement(
                "#locks [data-lock='" + LONG_JOB + "'][data-held=true]:not([data-holder=" + victim + "])", SOON);
        browser.awaitElement("#timeline .run.died[data-replica=" + victim + "]", SOON);
        browser.awaitElement("#log .DIED", SOON);
        browser.click(button(victim, "start"));
        threeReplicasAreUp();
        assertThat(browser.console()).isEmpty();
    }

    @Test
    void theTenureOfAFrozenReplicaIsShownAsLostAndItsCommitAsRefused() throws Exception {
        if (!IMAGES.isEmpty()) {
            awaitMinuteWithoutAFault();
        }
        String victim = awaitHolder(FENCED_JOB);
        String fence =
                browser.text("#locks [data-lock='" + FENCED_JOB + "'] .fence").replace("fence ", "");
        browser.click(button(victim, "freeze"));
        browser.awaitElement(".replica[data-replica=" + victim + "][data-state=frozen]", SOON);
        browser.awaitElement(
                "#locks [data-lock='" + FENCED_JOB + "'][data-held=true]:not([data-holder=" + victim + "])", SOON);
        String tenure = "#timeline .run[data-lock='" + FENCED_JOB + "'][data-fence='" + fence + "']";
        browser.awaitElement(tenure + ".lost", SOON);
        browser.awaitElement("#timeline .move-name", SOON);
        if (!IMAGES.isEmpty()) {
            // Some seconds later the picture is easier to read.
            await().atMost(SOON)
                    .until(() -> browser.run(
                                    "return [...document.querySelectorAll('#timeline .run.running')].some(r => r.lastChild.textContent.match(/ [5-9]\\.\\d s/))")
                            .asBoolean());
            browser.screenshot(Path.of(IMAGES, "lab-frozen.png"));
        }
        browser.screenshot(Path.of("target", "lab", "frozen.png"));

        browser.click(button(victim, "thaw"));
        browser.awaitElement("#log .REFUSED", SOON);
        assertThat(browser.text("#log .REFUSED .fence")).isEqualTo(fence);
        browser.awaitElement(tenure + ".lost", SOON);
        assertThat(browser.console()).isEmpty();
    }

    @Test
    void aQuestionIsAskedByAButtonAndAnsweredBesideIt() throws Exception {
        browser.click("[data-question=migration] .ask");
        browser.awaitElement("[data-question=migration][data-ok=running]", SOON);
        assertThat(browser.count(".ask:disabled")).isEqualTo(browser.count(".ask"));
        browser.awaitElement("[data-question=migration][data-ok=true]", SOON);
        assertThat(browser.text("[data-question=migration] .seen")).startsWith("As expected");
        assertThat(browser.text("#said")).startsWith("Migrate once: as expected");
    }

    @Test
    void itFitsTheScreenOfATelephoneInBothThemes() throws Exception {
        try {
            browser.look(390, 844, "dark");
            browser.awaitElement("#timeline .run", SOON);
            assertThat(browser.run("return document.documentElement.scrollWidth")
                            .asInt())
                    .isEqualTo(390);
            assertThat(browser.run("return getComputedStyle(document.body).backgroundColor")
                            .asString())
                    .isEqualTo("rgb(16, 21, 28)");
            browser.screenshot(Path.of("target", "lab", "telephone.png"));
        } finally {
            browser.look(1280, 1100, "light");
        }
    }

    @Test
    void everyButtonHasANameAndIsReachedByTheKeyboard() throws Exception {
        assertThat(browser.run("""
                        return [...document.querySelectorAll('button, input, [tabindex="0"]')]
                          .filter(e => !(e.getAttribute('aria-label') ?? e.textContent ?? '').trim() && !e.labels?.length).length
                        """).asInt()).isZero();
        assertThat(browser.run("return [...document.querySelectorAll('[tabindex]')].filter(e => e.tabIndex > 0).length")
                        .asInt())
                .isZero();
    }

    @Test
    void anHourOfEventsMakesItNeitherBigNorSlow() throws Exception {
        long millis = browser.run("""
                        const hour = 3600, begin = Date.now() + 60000;
                        const replicas = ['A', 'B', 'C'].map(name => ({ name, state: 'up', pid: 1 }));
                        for (let second = 0; second < hour; second++) {
                          const at = begin + second * 1000;
                          const events = [], runs = [], skips = [];
                          for (let i = 0; i < 8; i++) {
                            events.push({ id: 1e9 + second * 8 + i, at, kind: i ? 'DENIED' : 'TAKE', lock: 'orders.rollup', fence: second,
                              replica: 'ABC'[i % 3], reason: null, detail: null });
                            skips.push({ lock: 'orders.rollup', replica: 'ABC'[i % 3], at: at + i });
                          }
                          runs.push({ id: 1e9 + second, lock: 'mail.digest', fence: -1e9 + second, replica: 'ABC'[second % 3], strategy: 'LEASE',
                            start: at, end: at + 600, state: 'DONE', lostAt: null, leaseEnd: null });
                          lab.take({ report: { now: at + 700, databaseAnswers: true, locks: [], events, runs, spells: [], skips }, replicas,
                            ownsDatabase: true, databaseStopped: false, running: null, answers: [], questions: null });
                          if (second % 20 === 0) lab.draw();
                        }
                        lab.draw();
                        const took = [];
                        for (let i = 0; i < 20; i++) {
                          const before = performance.now();
                          lab.draw();
                          took.push(performance.now() - before);
                        }
                        return Math.round(Math.min(...took));
                        """).asLong();
        assertThat(millis).as("milliseconds for a frame, on a core of its own").isLessThan(50);
        assertThat(browser.count("*")).as("elements").isLessThan(3000);
        assertThat(browser.console()).isEmpty();
    }

    @Test
    void pagesOfOtherOriginsCanAskForNothing() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest without = HttpRequest.newBuilder(URI.create(this.lab.url() + "replicas/A/kill"))
                .POST(BodyPublishers.noBody())
                .build();
        assertThat(client.send(without, BodyHandlers.ofString()).statusCode()).isEqualTo(403);
        assertThat(this.lab.replica("A").is("up")).isTrue();
    }

    /** So that a picture shows a whole minute, and nothing else in it than what it is about. */
    private static void awaitMinuteWithoutAFault() {
        String begins = "return [...document.querySelectorAll('#timeline .run .body')]"
                + ".some(bar => bar.getBoundingClientRect().left < 250)";
        String running = "#timeline .run.running[data-lock='";
        await().atMost(Duration.ofMinutes(3))
                .until(() -> browser.run(begins).asBoolean()
                        && browser.count("#timeline .spell, #timeline .lost, #timeline .died") == 0
                        && browser.count(running + LONG_JOB + "']") == 1
                        && browser.count(running + FENCED_JOB + "']") == 1);
    }

    /** Of a run that is not near its end. */
    private static String awaitHolder(String job) {
        return await().atMost(Duration.ofSeconds(60))
                .until(
                        () -> browser.text("#locks [data-lock='" + job + "'] .data")
                                        .matches("batch ([2-9]|1\\d) of 40|step [2-7] of 20")
                                ? holder(job)
                                : "",
                        holder -> !holder.isEmpty());
    }

    private static String holder(String job) throws IOException, InterruptedException {
        return browser.run(
                        "return document.querySelector(arguments[0])?.dataset.holder ?? ''",
                        "#locks [data-lock='" + job + "']")
                .asString();
    }

    private static String button(String replica, String action) {
        return ".replica[data-replica=" + replica + "] button[data-action=" + action + "]";
    }
}
