-- The table of pglock's lease locks: one row per namespace and name. It can be run by hand or as a migration (Flyway,
-- Liquibase); with another table name, replace it everywhere. Rows are small, few, and rewritten all the time: fillfactor
-- leaves room for a second version of every row of a page, so that even a heartbeat that rewrites all of them at once
-- stays on their pages (HOT) and the index does not grow.
CREATE TABLE IF NOT EXISTS pglock_lease (
  namespace         text        NOT NULL,
  name              text        NOT NULL,
  holder            uuid,                             -- random per registry; null: free
  holder_label      text,                             -- for people
  fence             bigint      NOT NULL,             -- never repeated, never lower
  acquired_at       timestamptz NOT NULL,
  expires_at        timestamptz NOT NULL,
  released_at       timestamptz,
  hold_until        timestamptz,                      -- free, but nobody is granted the lock before
  ticks             jsonb       NOT NULL DEFAULT '{}',
  completed         text[]      NOT NULL DEFAULT '{}', -- versions that have succeeded
  completions       jsonb       NOT NULL DEFAULT '{}', -- of these: when, by whom, and in how many seconds
  paused            text,                             -- why; null: not paused
  resign_at         timestamptz,                      -- when the holder was asked to give the lock back
  resign_reason     text,
  data              text,
  last_fence        bigint,                           -- the last tenure that its holder ended himself
  last_holder       text,
  last_started_at   timestamptz,
  last_finished_at  timestamptz,
  last_outcome      text,
  last_error        text,
  PRIMARY KEY (namespace, name),
  CONSTRAINT expires_after_acquired CHECK (expires_at > acquired_at)
) WITH (fillfactor = 45);
