-- The greatest fence that each resource has seen: for dev.pglock.FencedResource, in the database of the resources.
CREATE TABLE IF NOT EXISTS pglock_fenced_resource (
  resource text PRIMARY KEY,
  fence bigint NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 60);
