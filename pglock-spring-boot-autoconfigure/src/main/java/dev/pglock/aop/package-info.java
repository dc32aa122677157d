/**
 * Interception: which methods are locked ({@code LockSpecs}), under which name ({@code LockName}), which tick a call is
 * ({@code Ticks}), what it does with its
 * lock ({@code LockInterceptor}), and the check after start-up that nothing runs unlocked by accident
 * ({@code LockVerifier}). It knows the registry only as {@code dev.pglock.LockRegistry}, resolved at the first call, and
 * Spring Boot not at all.
 */
@NullMarked
package dev.pglock.aop;

import org.jspecify.annotations.NullMarked;
