-- The evidence of runs that are over, as the document that people are given: never changed once it is there.
CREATE TABLE IF NOT EXISTS archives (
    run      text PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    document bytea NOT NULL,
    kept_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
