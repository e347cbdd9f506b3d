-- Administration and its audit log.
-- A disabled user, and each of its agents, is refused until it is enabled again.
ALTER TABLE identities ADD COLUMN disabled_at BIGINT;
CREATE INDEX identities_administrators ON identities (key) WHERE role = 'admin' AND deleted_at IS NULL;

-- What administrators did: a chain, each entry with the hash of the one before. Only ever added to.
CREATE TABLE audit_entries (
    sequence BIGINT NOT NULL PRIMARY KEY,       -- 1, 2, 3 … without a gap
    at BIGINT NOT NULL,
    actor_id BLOB,                              -- NULL: whoever may open the data folder
    actor TEXT NOT NULL,                        -- the user's handle then
    door TEXT NOT NULL,
    act TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,                      -- JSON in its canonical form
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER audit_entries_update BEFORE UPDATE ON audit_entries BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;
CREATE TRIGGER audit_entries_delete BEFORE DELETE ON audit_entries BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;

-- One row: the last entry. Whoever adds one locks it first, so that acts follow one another.
CREATE TABLE audit_head (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    sequence BIGINT NOT NULL,
    hash BLOB NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head WHEN new.sequence < old.sequence BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;
CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;
