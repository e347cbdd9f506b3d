-- Users and agents. A deleted agent keeps its row, since messages name their sender.
CREATE TABLE identities (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    kind BIGINT NOT NULL,                       -- 0 user, 1 agent
    handle TEXT NOT NULL,                       -- folded: no @, lower case
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,                  -- lower case, for sorting and search
    description TEXT,
    email TEXT,                                 -- users from here
    first_name TEXT NOT NULL DEFAULT '',
    last_name TEXT NOT NULL DEFAULT '',
    role TEXT,
    owner_key BIGINT REFERENCES identities (key), -- agents from here
    slug TEXT,
    is_global BIGINT NOT NULL DEFAULT 0,
    shared_with_organization BIGINT NOT NULL DEFAULT 0,
    registry_access BIGINT NOT NULL DEFAULT 0,
    listed_in_directory BIGINT NOT NULL DEFAULT 0, -- both
    inserted_at BIGINT NOT NULL,                -- microseconds since 1970, here and everywhere
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX identities_handle ON identities (handle) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX identities_owner_name ON identities (owner_key, name_folded) WHERE deleted_at IS NULL AND kind = 1;
CREATE INDEX identities_deleted ON identities (key) WHERE deleted_at IS NOT NULL;
CREATE INDEX identities_global ON identities (key) WHERE is_global = 1 AND deleted_at IS NULL;

CREATE TABLE api_keys (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    identity_key BIGINT NOT NULL REFERENCES identities (key),
    hash BLOB NOT NULL UNIQUE,                  -- SHA-256 of a random key
    hint TEXT NOT NULL,                         -- the key's first characters
    inserted_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX api_keys_identity ON api_keys (identity_key);

CREATE TABLE rooms (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    title TEXT,
    task_id BLOB,
    status TEXT NOT NULL,
    kind TEXT NOT NULL,
    creator_key BIGINT NOT NULL REFERENCES identities (key),
    sequence BIGINT NOT NULL,                   -- one for every change of the room
    participants BIGINT NOT NULL,
    last_message_at BIGINT,
    texts BIGINT NOT NULL DEFAULT 0,            -- how many rows of each kind, so that no list has to count
    tool_calls BIGINT NOT NULL DEFAULT 0,
    tool_results BIGINT NOT NULL DEFAULT 0,
    thoughts BIGINT NOT NULL DEFAULT 0,
    errors BIGINT NOT NULL DEFAULT 0,
    tasks BIGINT NOT NULL DEFAULT 0,
    attentions BIGINT NOT NULL DEFAULT 0,
    inserted_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);

-- Current and former participants; who left has left_at. The tallies count the member's deliveries by state and what it
-- sent, so that no list has to count.
CREATE TABLE participants (
    room_key BIGINT NOT NULL REFERENCES rooms (key),
    member_key BIGINT NOT NULL REFERENCES identities (key),
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    joined_sequence BIGINT NOT NULL,            -- open deliveries up to here ended when it was removed
    joined_at BIGINT NOT NULL,
    left_at BIGINT,
    stored BIGINT NOT NULL DEFAULT 0,
    delivered BIGINT NOT NULL DEFAULT 0,
    processing BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0,
    processed BIGINT NOT NULL DEFAULT 0,
    cancelled BIGINT NOT NULL DEFAULT 0,
    dead_lettered BIGINT NOT NULL DEFAULT 0,
    sent BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (room_key, member_key)
) WITHOUT ROWID;
CREATE INDEX participants_member ON participants (member_key, room_key) WHERE left_at IS NULL;

CREATE TABLE messages (
    room_key BIGINT NOT NULL REFERENCES rooms (key),
    sequence BIGINT NOT NULL,
    id BLOB NOT NULL,
    kind BIGINT NOT NULL,
    sender_key BIGINT NOT NULL REFERENCES identities (key),
    content TEXT NOT NULL,
    mentions TEXT NOT NULL,                     -- JSON: who was named, as known then
    metadata TEXT,                              -- JSON as the sender of an event supplied it
    inserted_at BIGINT NOT NULL,                -- never goes back within a room
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (room_key, sequence)
) WITHOUT ROWID;
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_sender ON messages (sender_key, room_key, sequence);
CREATE INDEX messages_kind ON messages (room_key, kind, sequence);

-- What became of a message for one agent. recipient = 0: it was not mentioned, but marked the message nevertheless.
CREATE TABLE deliveries (
    room_key BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    member_key BIGINT NOT NULL REFERENCES identities (key),
    recipient BIGINT NOT NULL,
    state BIGINT NOT NULL,
    stored_at BIGINT NOT NULL,
    pushed_at BIGINT,
    served_at BIGINT,                           -- returned by /messages/next
    picked_up_at BIGINT,                        -- first attempt
    finished_at BIGINT,                         -- reached its present end state
    reason TEXT,                                -- why it ended without being processed
    attempts BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (room_key, sequence, member_key),
    FOREIGN KEY (room_key, sequence) REFERENCES messages (room_key, sequence)
) WITHOUT ROWID;
CREATE INDEX deliveries_state ON deliveries (member_key, room_key, state, sequence) WHERE recipient = 1;

CREATE TABLE attempts (
    room_key BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    member_key BIGINT NOT NULL,
    number BIGINT NOT NULL,
    state BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    completed_at BIGINT,
    error TEXT,
    PRIMARY KEY (room_key, sequence, member_key, number),
    FOREIGN KEY (room_key, sequence, member_key) REFERENCES deliveries (room_key, sequence, member_key)
) WITHOUT ROWID;

-- Who was removed while more deliveries were open than one operation may touch: a background job ends the rest.
CREATE TABLE removals (
    room_key BIGINT NOT NULL,
    member_key BIGINT NOT NULL,
    up_to BIGINT NOT NULL,                      -- the room's sequence when it was removed
    reason TEXT NOT NULL,
    PRIMARY KEY (room_key, member_key)
) WITHOUT ROWID;
