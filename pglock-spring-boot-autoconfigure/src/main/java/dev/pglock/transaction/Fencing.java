package dev.pglock.transaction;

/** Whether transactions under a lease commit only while it is held. */
public enum Fencing {
    /** Where that is possible; a WARN says where it is not. */
    AUTO,
    /** Always: where it is not possible, the application does not start. */
    REQUIRED,
    /** Never. */
    OFF
}
