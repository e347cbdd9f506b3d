-- Files of rooms. The bytes are in the object store, under the room's id and the hash.
CREATE TABLE files (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    room_key BIGINT NOT NULL REFERENCES rooms (key),
    uploader_key BIGINT NOT NULL REFERENCES identities (key),
    name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    inserted_at BIGINT NOT NULL,
    expires_at BIGINT                           -- never when NULL
);
CREATE UNIQUE INDEX files_content ON files (room_key, sha256);
CREATE INDEX files_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;

-- What a message carries, as known when it was posted: JSON, like its mentions.
ALTER TABLE messages ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';
