-- After schema.sql, which explains the lock: replicas start at the same time.
SELECT pg_advisory_xact_lock(20260101);

CREATE TABLE IF NOT EXISTS lab_ledger (
    fence        bigint NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE IF NOT EXISTS lab_counter (
    name  text PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO lab_counter (name, value) VALUES ('fenced', 0), ('unfenced', 0) ON CONFLICT DO NOTHING;
