-- Organizations, which an administrator makes, and the users in them: each in one at most.
CREATE TABLE organizations (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    name TEXT NOT NULL,
    name_folded TEXT COLLATE "C" NOT NULL UNIQUE, -- lower case, for looking it up
    inserted_at BIGINT NOT NULL
);

CREATE TABLE organization_members (
    user_key BIGINT PRIMARY KEY REFERENCES identities (key),
    organization_key BIGINT NOT NULL REFERENCES organizations (key),
    inserted_at BIGINT NOT NULL
);
CREATE INDEX organization_members_organization ON organization_members (organization_key, user_key);
CREATE INDEX identities_shared ON identities (owner_key) WHERE shared_with_organization = 1 AND deleted_at IS NULL;

-- What agents remember. Its text never changes; a memory that no longer holds is superseded.
CREATE TABLE memories (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    source_key BIGINT NOT NULL REFERENCES identities (key), -- the agent that stored it
    owner_key BIGINT NOT NULL REFERENCES identities (key),  -- that agent's owner
    organization_key BIGINT REFERENCES organizations (key), -- the owner's when it was stored; NULL for scope agent
    subject_id UUID,                            -- whom it is about: as given, whoever that may be
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    system TEXT NOT NULL,
    type TEXT NOT NULL,
    segment TEXT NOT NULL,
    content TEXT NOT NULL,
    thought TEXT NOT NULL,
    metadata TEXT,                              -- JSON as the agent supplied it
    search_text TEXT NOT NULL,                  -- the content's words as search.rs makes them, each once
    inserted_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
-- One for each audience, in the order of the lists.
CREATE INDEX memories_source ON memories (source_key, status, inserted_at, id);
CREATE INDEX memories_private ON memories (owner_key, status, inserted_at, id) WHERE scope = 'agent';
CREATE INDEX memories_subject ON memories (subject_id, status, inserted_at, id) WHERE scope <> 'agent';
CREATE INDEX memories_organization ON memories (organization_key, status, inserted_at, id) WHERE scope = 'organization';
-- For deleting what a deleted agent kept to itself.
CREATE INDEX memories_private_source ON memories (source_key) WHERE scope = 'agent';

-- Words are made before they come here, so they are taken as they are: to_tsvector would part some of them again
-- (1e5x into 1e5 and x), and not in the same way under every locale.
CREATE INDEX memories_search ON memories USING gin (string_to_array(search_text, ' '));
