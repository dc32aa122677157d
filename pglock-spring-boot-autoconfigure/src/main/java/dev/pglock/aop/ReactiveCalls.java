package dev.pglock.aop;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.aop.ProxyMethodInvocation;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Calls whose result is a {@code Mono} or a {@code Flux}. Nothing runs before somebody subscribes; each subscription takes
 * the lock, calls the method, and gives the lock back when what it returned terminates or is cancelled. No other class
 * knows Reactor, and this one is loaded by such a call only.
 */
final class ReactiveCalls {

    /** The locks under which a subscription runs, innermost first. */
    private static final Object OUTER = new Object();

    /**
     * Where it blocks: a thread for each that waits, because one that had to wait for a thread as well could be the release
     * for which all others wait. Those of {@code boundedElastic} are limited, and belong to the application. They end when
     * they have had nothing to do for a while.
     */
    private static final Scheduler BLOCKING = Schedulers.fromExecutorService(
            new ThreadPoolExecutor(
                    0, Integer.MAX_VALUE, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), ReactiveCalls::daemon),
            "pglock-reactive");

    private ReactiveCalls() {}

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "pglock-reactive");
        thread.setDaemon(true);
        return thread;
    }

    /** Decides about a call and makes it. */
    @FunctionalInterface
    interface Call {

        @Nullable
        Object make(LockedBody body) throws Throwable;
    }

    static Object nothing(ResultKind kind) {
        return kind == ResultKind.MONO ? Mono.empty() : Flux.empty();
    }

    /**
     * What the caller gets.
     *
     * @param invocation is proceeded anew for each subscription
     * @param waits whether the call may wait for its lock for long
     * @param onSubscribe asked on the subscriber's thread
     */
    static Object locked(ResultKind kind, ProxyMethodInvocation invocation, boolean waits, Supplier<Call> onSubscribe) {
        Flux<Object> locked = Flux.deferContextual(context -> {
            Call call = onSubscribe.get();
            return new Locked(invocation.invocableClone(), outer(context)).run(call, waits);
        });
        return kind == ResultKind.MONO ? locked.singleOrEmpty() : locked;
    }

    private static List<LockHandle> outer(ContextView context) {
        List<LockHandle> outer = new ArrayList<>(context.getOrDefault(OUTER, List.<LockHandle>of()));
        LockContext.currentIfAny().ifPresent(lock -> outer.add(0, lock));
        return outer;
    }

    /** One subscription. */
    private static final class Locked implements LockedBody {

        private final MethodInvocation invocation;
        private final List<LockHandle> outer;
        private final Sinks.Empty<Object> loss = Sinks.empty();
        private final CompletableFuture<Object> ended = new End();
        private Publisher<?> work = Mono.empty();
        private volatile @Nullable LockHandle lock;
        private volatile boolean cancelled;

        Locked(MethodInvocation invocation, List<LockHandle> outer) {
            this.invocation = invocation;
            this.outer = outer;
        }

        Flux<Object> run(Call call, boolean waits) {
            return Flux.usingWhen(
                    Mono.<Locked>create(sink -> decide(call, waits, sink)),
                    Locked::work,
                    locked -> locked.end(null),
                    (locked, failure) -> locked.end(failure),
                    locked -> locked.end(cancellation()));
        }

        private void decide(Call call, boolean waits, MonoSink<Locked> sink) {
            Disposable decision = BLOCKING.schedule(() -> {
                Deque<LockContext.Scope> scopes = new ArrayDeque<>();
                for (int i = outer.size(); i > 0; i--) {
                    scopes.push(LockContext.enter(outer.get(i - 1)));
                }
                try {
                    Object result = call.make(this);
                    if (result != null) {
                        work = (Publisher<?>) result;
                    }
                    sink.success(this);
                } catch (Throwable t) {
                    if (!cancelled) {
                        sink.error(t);
                    }
                } finally {
                    scopes.forEach(LockContext.Scope::close);
                }
            });
            // A lock that is granted after the cancellation finds its work ended.
            sink.onCancel(() -> {
                cancelled = true;
                if (waits) {
                    decision.dispose();
                }
                Disposable ignored = BLOCKING.schedule(() -> ended.completeExceptionally(cancellation()));
            });
        }

        @Override
        public MethodInvocation invocation() {
            return invocation;
        }

        @Override
        public @Nullable Object run() throws Throwable {
            return invocation.proceed();
        }

        @Override
        @SuppressWarnings("NullAway")
        public @Nullable Object runUnder(LockHandle granted) throws Throwable {
            lock = granted;
            Object[] result = {null};
            CompletableFuture<Object> ignored = granted.<Object, Throwable>executeAsync(() -> {
                if (!cancelled) {
                    result[0] = invocation.proceed();
                }
                return ended;
            });
            return result[0];
        }

        private Flux<Object> work() {
            LockHandle own = lock;
            Flux<Object> flux = Flux.<Object>from(work).takeUntilOther(loss.asMono());
            return own == null ? flux : flux.contextWrite(context -> enter(context, own));
        }

        private Context enter(Context context, LockHandle own) {
            List<LockHandle> locks = new ArrayList<>(outer);
            locks.add(0, own);
            return context.put(LockHandle.class, own).put(OUTER, locks);
        }

        /** Completing it releases the lock, on the thread that does it. */
        private Mono<Void> end(@Nullable Throwable failure) {
            return Mono.<Void>fromRunnable(() -> {
                        if (failure == null) {
                            ended.complete(this);
                        } else {
                            ended.completeExceptionally(failure);
                        }
                    })
                    .subscribeOn(BLOCKING);
        }

        private static CancellationException cancellation() {
            return new CancellationException("The subscription was cancelled");
        }

        /** The work's end. Whoever cancels it, after a loss, ends the work first. */
        private final class End extends CompletableFuture<Object> {

            @Override
            public boolean cancel(boolean mayInterruptIfRunning) {
                Sinks.EmitResult ignored = loss.tryEmitError(reason());
                return true;
            }

            private RuntimeException reason() {
                LockHandle own = lock;
                try {
                    if (own != null) {
                        own.ensureHeld();
                    }
                    return new CancellationException("The lock's registry stops");
                } catch (LockLostException e) {
                    return e;
                }
            }
        }
    }
}
