-- Sign-in. A key may end by itself, and lists say when it was last used.
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;              -- opens nothing from then on
ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT;            -- to the minute

-- What the server signs people's tokens with. One at a time signs; retired ones still verify until they expire.
CREATE TABLE signing_keys (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,                   -- the tokens' kid: the public key's RFC 7638 thumbprint
    algorithm TEXT NOT NULL,                    -- EdDSA
    seed BYTEA NOT NULL,                         -- secret
    public BYTEA NOT NULL,
    inserted_at BIGINT NOT NULL,
    retired_at BIGINT,                          -- signs nothing from then on
    expires_at BIGINT                           -- verifies nothing from then on
);
CREATE UNIQUE INDEX signing_keys_signing ON signing_keys (algorithm) WHERE retired_at IS NULL;

-- Which account of an OpenID Connect issuer is which user. Of a deleted user it stays, so that nobody else gets it.
CREATE TABLE identity_links (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    identity_key BIGINT NOT NULL REFERENCES identities (key),
    issuer TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    inserted_at BIGINT NOT NULL,
    last_used_at BIGINT                         -- to the minute
);
CREATE UNIQUE INDEX identity_links_account ON identity_links (issuer, subject);
CREATE INDEX identity_links_identity ON identity_links (identity_key);
