package kotlin.coroutines;

/** Stands for Kotlin's own, which marks a suspend function's last parameter. */
public interface Continuation<T> {}
