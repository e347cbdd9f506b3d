-- Who knows whom with consent: two rows for each pair, one for each side.
CREATE TABLE contacts (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,                    -- of the record: each side has its own
    identity_key BIGINT NOT NULL REFERENCES identities (key), -- whose contact
    contact_key BIGINT NOT NULL REFERENCES identities (key), -- who it is
    inserted_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX contacts_pair ON contacts (identity_key, contact_key);
CREATE INDEX contacts_identity ON contacts (identity_key, key);

CREATE TABLE contact_requests (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    requester_key BIGINT NOT NULL REFERENCES identities (key),
    recipient_key BIGINT NOT NULL REFERENCES identities (key),
    lower_key BIGINT NOT NULL,                  -- the same two again, whichever asked
    higher_key BIGINT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    inserted_at BIGINT NOT NULL,
    responded_at BIGINT
);
-- Between two there is at most one open question, whichever asked.
CREATE UNIQUE INDEX contact_requests_open ON contact_requests (lower_key, higher_key) WHERE status = 'pending';
CREATE INDEX contact_requests_received ON contact_requests (recipient_key, key) WHERE status = 'pending';
CREATE INDEX contact_requests_sent ON contact_requests (requester_key, key);
CREATE INDEX contact_requests_sent_status ON contact_requests (requester_key, status, key);

-- How many contacts and requests somebody has, so that no list has to count. Whatever changes the contacts or requests
-- of two locks the rows of both first, in the order of their keys: what is looked up after that stays true.
CREATE TABLE contact_tallies (
    identity_key BIGINT NOT NULL PRIMARY KEY REFERENCES identities (key),
    contacts BIGINT NOT NULL DEFAULT 0,
    received BIGINT NOT NULL DEFAULT 0,         -- pending requests
    pending BIGINT NOT NULL DEFAULT 0,          -- requests sent, by status, from here
    approved BIGINT NOT NULL DEFAULT 0,
    rejected BIGINT NOT NULL DEFAULT 0,
    expired BIGINT NOT NULL DEFAULT 0,
    cancelled BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
