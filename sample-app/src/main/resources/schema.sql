-- Replicas that start at the same time run this at the same time, and CREATE TABLE IF NOT EXISTS alone does not bear
-- that. The whole script is one message (spring.sql.init.separator), hence one transaction: one replica after the other.
SELECT pg_advisory_xact_lock(20260101);

CREATE TABLE IF NOT EXISTS customer_order (
    id            integer PRIMARY KEY,
    amount        numeric(10, 2) NOT NULL,
    tax           numeric(10, 2),
    reconciled_at timestamptz
);

INSERT INTO customer_order (id, amount)
SELECT id, 1 + id % 97 FROM generate_series(1, 1000) AS id
ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS order_rollup (
    rolled_up_at timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
    orders       bigint NOT NULL,
    amount       numeric NOT NULL
);

CREATE TABLE IF NOT EXISTS run (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         text NOT NULL,
    replica     text NOT NULL,
    fence       bigint NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz
);
