package dev.pglock.lease;

/** What is done about the table at start-up. */
public enum SchemaMode {
    /** Create it if it is missing, then check it. No right to create anything is needed where it is there. */
    ALWAYS,
    /** Check that it is there, as it must be, and that we may use it. */
    VALIDATE,
    /** Nothing: it may also come later. */
    NEVER
}
