-- The ledger: what happened outside. Times are milliseconds since the Unix epoch.
CREATE TABLE effects (
    id        text   PRIMARY KEY,
    kind      text   NOT NULL CHECK (kind IN ('charge', 'refund', 'notification')),
    tenant    text   NOT NULL,
    run       text   NOT NULL,
    attempt   text   NOT NULL,
    action    text   NOT NULL,
    order_id  text   NOT NULL,
    item      text   NOT NULL,
    amount    bigint NOT NULL CHECK (amount >= 0),
    currency  text   NOT NULL,
    key       text,
    at_ms     bigint NOT NULL,
    body      text   NOT NULL
);
CREATE INDEX effects_by_run ON effects (run);
CREATE INDEX effects_by_order ON effects (tenant, order_id);
-- A notification's natural key: one for each order and kind, whatever the client sends along.
CREATE UNIQUE INDEX effects_one_notification ON effects (tenant, order_id, action) WHERE kind = 'notification';

-- The first answer to each idempotency key. A key belongs to a tenant; the answer's body is the effect's.
CREATE TABLE answers (
    tenant      text     NOT NULL,
    key         text     NOT NULL,
    fingerprint bytea    NOT NULL,
    status      smallint NOT NULL,
    effect      text     NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- Every request that could have an effect, whatever became of it.
CREATE TABLE requests (
    number      bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text     NOT NULL,
    run         text     NOT NULL,
    attempt     text     NOT NULL,
    action      text     NOT NULL,
    order_id    text     NOT NULL,
    key         text,
    outcome     text     NOT NULL
        CHECK (outcome IN ('committed', 'replayed', 'conflict', 'mismatch', 'invalid', 'failed')),
    status      smallint NOT NULL,
    effect      text,
    received_ms bigint   NOT NULL,
    answered_ms bigint
);
CREATE INDEX requests_by_run ON requests (run);
