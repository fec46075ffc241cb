-- Runs and their events. A run's row is also its lock and its fence: whoever raised the epoch last may append.
CREATE TABLE IF NOT EXISTS runs (
    id          text PRIMARY KEY,
    experiment  text NOT NULL,
    spec_digest text NOT NULL,
    epoch       bigint NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at    timestamptz
);

CREATE TABLE IF NOT EXISTS events (
    run      text NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    epoch    bigint NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind     text NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (run, sequence)
);
