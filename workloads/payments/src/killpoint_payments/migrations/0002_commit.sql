-- A request's whole work in one statement, so in one transaction and one round trip: the effect, the answer kept for
-- its key, and the line of the request log are there together or not at all, whoever is killed meanwhile.

-- The same key in flight twice: the second one does not wait, it is told so (409). The lock is taken before the
-- look-up, and is let go only after the commit is visible, so whoever gets it sees the first answer. The primary key
-- of `answers` stands behind it.
CREATE FUNCTION commit_effect(
    p_id text, p_kind text, p_tenant text, p_run text, p_attempt text, p_action text, p_order text, p_item text,
    p_amount bigint, p_currency text, p_key text, p_fingerprint bytea, p_received bigint, p_body text,
    OUT outcome text, OUT status smallint, OUT body text
) LANGUAGE plpgsql AS $$
DECLARE
    v_now    bigint;
    v_effect text;
    v_first  bytea;
BEGIN
    outcome := 'committed';
    status := 201;
    IF p_key IS NOT NULL THEN
        IF NOT pg_try_advisory_xact_lock(hashtextextended(p_tenant || chr(31) || p_key, 0)) THEN
            outcome := 'conflict';
            status := 409;
        ELSE
            SELECT a.fingerprint, a.status, a.effect INTO v_first, status, v_effect
              FROM answers a WHERE a.tenant = p_tenant AND a.key = p_key;
            IF NOT FOUND THEN
                status := 201;
            ELSIF v_first = p_fingerprint THEN
                outcome := 'replayed';
                SELECT e.body INTO STRICT body FROM effects e WHERE e.id = v_effect;
            ELSE
                outcome := 'mismatch';
                status := 422;
            END IF;
        END IF;
    END IF;
    v_now := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF outcome = 'committed' THEN
        v_effect := p_id;
        -- The body comes without its last member: the time of the commit is this database's to tell.
        body := p_body || v_now::text || '}';
        INSERT INTO effects (id, kind, tenant, run, attempt, action, order_id, item, amount, currency, key, at_ms, body)
        VALUES (p_id, p_kind, p_tenant, p_run, p_attempt, p_action, p_order, p_item, p_amount, p_currency, p_key,
                v_now, body);
        IF p_key IS NOT NULL THEN
            INSERT INTO answers (tenant, key, fingerprint, status, effect)
            VALUES (p_tenant, p_key, p_fingerprint, 201, p_id);
        END IF;
    END IF;
    INSERT INTO requests (tenant, run, attempt, action, order_id, key, outcome, status, effect, received_ms, answered_ms)
    VALUES (p_tenant, p_run, p_attempt, p_action, p_order, p_key, outcome, status, v_effect, p_received, v_now);
END
$$;

-- A notification has a natural key, so a second one waits for the first and gets its answer: it is never refused.
CREATE FUNCTION commit_notification(
    p_id text, p_tenant text, p_run text, p_attempt text, p_action text, p_order text, p_key text, p_received bigint,
    p_body text, OUT outcome text, OUT status smallint, OUT body text
) LANGUAGE plpgsql AS $$
DECLARE
    v_now    bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    v_effect text := p_id;
BEGIN
    outcome := 'committed';
    status := 201;
    body := p_body || v_now::text || '}';
    INSERT INTO effects (id, kind, tenant, run, attempt, action, order_id, item, amount, currency, key, at_ms, body)
    VALUES (p_id, 'notification', p_tenant, p_run, p_attempt, p_action, p_order, '', 0, '', p_key, v_now, body)
    ON CONFLICT (tenant, order_id, action) WHERE kind = 'notification' DO NOTHING;
    IF NOT FOUND THEN
        outcome := 'replayed';
        status := 200;
        SELECT e.id, e.body INTO STRICT v_effect, body
          FROM effects e
         WHERE e.kind = 'notification' AND e.tenant = p_tenant AND e.order_id = p_order AND e.action = p_action;
    END IF;
    INSERT INTO requests (tenant, run, attempt, action, order_id, key, outcome, status, effect, received_ms, answered_ms)
    VALUES (p_tenant, p_run, p_attempt, p_action, p_order, p_key, outcome, status, v_effect, p_received,
            (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
END
$$;
