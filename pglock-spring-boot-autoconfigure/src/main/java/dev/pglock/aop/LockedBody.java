package dev.pglock.aop;

import dev.pglock.LockHandle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapterRegistry;

/** The body of one call, for whoever decides whether it runs: each kind of result has its own end of the lock. */
interface LockedBody {

    MethodInvocation invocation();

    /** Runs it without a lock of its own. */
    @Nullable
    Object run() throws Throwable;

    /** Runs it and releases the lock when its work has ended. */
    @Nullable
    Object runUnder(LockHandle lock) throws Throwable;

    static LockedBody of(MethodInvocation invocation, ResultKind kind) {
        return switch (kind) {
            case STAGE, ANY -> new Later(invocation);
            default -> new Now(invocation);
        };
    }

    /** The work ends when the method returns. */
    record Now(MethodInvocation invocation) implements LockedBody {

        @Override
        public @Nullable Object run() throws Throwable {
            return invocation.proceed();
        }

        /** {@code execute} allows a null result; NullAway does not see that bound in a class file on JDK 17. */
        @Override
        @SuppressWarnings("NullAway")
        public @Nullable Object runUnder(LockHandle lock) throws Throwable {
            return lock.<Object, Throwable>execute(invocation::proceed);
        }
    }

    /** The work ends when what the method returned has completed. */
    record Later(MethodInvocation invocation) implements LockedBody {

        @Override
        public @Nullable Object run() throws Throwable {
            return invocation.proceed();
        }

        @Override
        @SuppressWarnings("NullAway")
        public @Nullable Object runUnder(LockHandle lock) throws Throwable {
            boolean[] now = {false};
            CompletableFuture<Object> result = lock.<Object, Throwable>executeAsync(() -> {
                Object returned = invocation.proceed();
                now[0] = !(returned instanceof Future || returned instanceof CompletionStage);
                return stageOf(returned);
            });
            return now[0] ? result.getNow(null) : result;
        }

        @SuppressWarnings({"unchecked", "NullAway"})
        private CompletionStage<Object> stageOf(@Nullable Object returned) throws InterruptedException {
            if (returned instanceof CompletionStage<?> stage) {
                return (CompletionStage<Object>) stage;
            }
            if (returned instanceof Future<?> future) {
                return waitFor(future);
            }
            if (returned != null
                    && ReactiveAdapterRegistry.getSharedInstance().getAdapter(returned.getClass()) != null) {
                throw hidden(returned);
            }
            return CompletableFuture.completedFuture(returned);
        }

        /** Here is the thread on which {@code @Async} waits for it anyway; elsewhere nobody expects that. */
        private CompletionStage<Object> waitFor(Future<?> future) throws InterruptedException {
            if (!future.isDone() && invocation.getMethod().getReturnType() == Object.class) {
                boolean ignored = future.cancel(true);
                throw hidden(future);
            }
            try {
                return CompletableFuture.completedFuture(future.get());
            } catch (ExecutionException e) {
                return CompletableFuture.failedFuture(e.getCause() == null ? e : e.getCause());
            } catch (InterruptedException e) {
                // Meant for the work, which is elsewhere.
                boolean ignored = future.cancel(true);
                throw e;
            }
        }

        private IllegalStateException hidden(Object returned) {
            return new IllegalStateException(invocation.getMethod() + " returned a "
                    + returned.getClass().getName()
                    + ", whose work begins or ends later, as an Object: its lock cannot be kept for it. Declare the "
                    + "result as CompletableFuture, Mono or Flux");
        }
    }
}
