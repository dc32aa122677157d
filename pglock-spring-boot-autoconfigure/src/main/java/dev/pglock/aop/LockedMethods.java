package dev.pglock.aop;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Which methods of an application are locked, under which names, and which are not: what start-up tells of them. */
public final class LockedMethods {

    private final Map<String, LockSpec> byDefaultName = new HashMap<>();
    private final Map<String, LockSpec> byName = new HashMap<>();
    private final Map<String, String> beans = new HashMap<>();
    private final Set<LockName> names = new HashSet<>();
    private final List<LockSpec> specs = new ArrayList<>();
    private final Set<String> locked = new TreeSet<>();
    private final Set<String> unlocked = new TreeSet<>();
    private final Set<String> scheduled = new HashSet<>();
    private final Set<String> scheduledAndAnnotated = new HashSet<>();
    private final Set<String> scheduledPackages = new HashSet<>();

    LockedMethods() {}

    /** Takes note of a locked method; two methods must not share a name that nobody wrote out. */
    void locked(LockSpec spec, LockedMethodSettings settings) {
        if (!spec.writtenName()) {
            LockSpec other = byDefaultName.put(spec.name().text(), spec);
            if (other != null && !other.method().equals(spec.method())) {
                throw InvalidLockException.of(
                        spec.type(),
                        spec.method(),
                        "its lock would have the name '" + spec.name() + "', as that of "
                                + other.type().getName() + "." + other.method().getName(),
                        "Write the name of one of them out: @RunOnce(\"…\").");
            }
        }
        names.add(spec.name());
        specs.add(spec);
        String method = spec.describe();
        String name = spec.name().text();
        LockStrategy strategy = spec.terms().strategy();
        String described = (name.equals(method) ? method : method + " as '" + name + "'")
                + (strategy == null ? "" : " by " + strategy.name().toLowerCase(Locale.ROOT));
        switch (settings.mode(name)) {
            case LOCKED -> locked.add(described);
            case PAUSED -> locked.add(described + " (paused by configuration)");
            case EVERY_REPLICA -> unlocked.add(method + " (configuration)");
        }
    }

    List<LockSpec> specs() {
        return List.copyOf(specs);
    }

    /**
     * What locked methods ask the registry for. A name with parts that each call evaluates stands there as it is written.
     *
     * @return one request for each method
     */
    public List<LockRequest> requests() {
        return specs.stream().map(LockSpec::request).toList();
    }

    /** The first bean with that lock. */
    String bean(LockSpec spec, String beanName) {
        String first = beans.putIfAbsent(spec.name().text(), beanName);
        return first == null ? beanName : first;
    }

    /** The first other method with the same lock; null if there is none. Names that are evaluated are told by each call. */
    @Nullable
    LockSpec sharing(LockSpec spec) {
        if (!spec.name().isConstant()) {
            return null;
        }
        LockSpec first = byName.putIfAbsent(spec.name().text(), spec);
        return first == null || first.method().equals(spec.method()) ? null : first;
    }

    void scheduled(Class<?> type, Method method, boolean onlyScheduled) {
        String name = type.getSimpleName() + "." + method.getName();
        scheduled.add(name);
        if (!onlyScheduled) {
            scheduledAndAnnotated.add(name);
        }
        scheduledPackages.add(type.getPackageName() + ".");
    }

    /**
     * Whether a scheduled method has that name, locked or not.
     *
     * @param name simple class name, dot, method name
     * @return whether there is one
     */
    public boolean isScheduled(String name) {
        return scheduled.contains(withoutParameters(name));
    }

    /**
     * Whether a scheduled method with that name has one of our annotations too, which then decides how it is locked.
     *
     * @param name simple class name, dot, method name
     * @return whether there is one
     */
    public boolean isScheduledAndAnnotated(String name) {
        return scheduledAndAnnotated.contains(withoutParameters(name));
    }

    private static String withoutParameters(String name) {
        return name.replaceFirst("\\(.*", "");
    }

    /**
     * Whether there is a scheduled method in that package or below, locked or not.
     *
     * @param packageName a package
     * @return whether there is one
     */
    public boolean isScheduledIn(String packageName) {
        return scheduledPackages.stream().anyMatch(p -> p.startsWith(packageName + "."));
    }

    /**
     * Whether there is nothing to tell.
     *
     * @return true: neither a locked nor a scheduled method
     */
    public boolean isNothingFound() {
        return locked.isEmpty() && unlocked.isEmpty();
    }

    void unlocked(Class<?> type, String method, String why) {
        unlocked.add(type.getSimpleName() + "." + method + " (" + why + ")");
    }

    /**
     * Whether nothing was found that needs a lock.
     *
     * @return true: an application without locked methods
     */
    public boolean isEmpty() {
        return names.isEmpty();
    }

    /**
     * Whether a call of some locked method could come to that lock name.
     *
     * @param name a lock's name
     * @return false: no method has it; a program may still take it from the registry
     */
    public boolean include(String name) {
        return names.stream().anyMatch(n -> n.mayBe(name));
    }

    /**
     * What is locked and what is not, in words.
     *
     * @return for instance {@code on one replica at a time: A.b; on every replica: C.d (@EveryReplica)}
     */
    public String describe() {
        return "on one replica at a time: " + list(locked) + "; on every replica: " + list(unlocked);
    }

    private static String list(Set<String> methods) {
        return methods.isEmpty() ? "none" : String.join(", ", methods);
    }
}
