-- Replies to requests that carried an Idempotency-Key, written in the transaction of what the request did.
CREATE TABLE idempotent_requests (
    caller_id BLOB NOT NULL,                    -- the identity that called
    scope BLOB NOT NULL,                        -- SHA-256 of method, path and key
    fingerprint BLOB NOT NULL,                  -- SHA-256 of the body
    status BIGINT NOT NULL,
    location TEXT,
    body BLOB NOT NULL,
    inserted_at BIGINT NOT NULL,
    PRIMARY KEY (caller_id, scope)
);
CREATE INDEX idempotent_requests_age ON idempotent_requests (inserted_at);

-- What one identity may have of something where that differs from the settings.
CREATE TABLE quotas (
    identity_key BIGINT NOT NULL REFERENCES identities (key),
    resource BIGINT NOT NULL,                   -- 0 agents, 1 rooms, 2 participants of its rooms, 3 messages a day
    most BIGINT,                                -- without end when NULL
    PRIMARY KEY (identity_key, resource)
) WITHOUT ROWID;

-- Whoever uses up a quota locks its row here first; messages are counted in it by the day (UTC, days since 1970).
CREATE TABLE quota_uses (
    identity_key BIGINT NOT NULL REFERENCES identities (key),
    resource BIGINT NOT NULL,
    day BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (identity_key, resource)
) WITHOUT ROWID;
CREATE INDEX rooms_creator ON rooms (creator_key) WHERE deleted_at IS NULL;
