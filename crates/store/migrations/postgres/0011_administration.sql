-- Administration and its audit log.
-- A disabled user, and each of its agents, is refused until it is enabled again.
ALTER TABLE identities ADD COLUMN disabled_at BIGINT;
CREATE INDEX identities_administrators ON identities (key) WHERE role = 'admin' AND deleted_at IS NULL;

-- What administrators did: a chain, each entry with the hash of the one before. Only ever added to.
CREATE TABLE audit_entries (
    sequence BIGINT NOT NULL PRIMARY KEY,       -- 1, 2, 3 … without a gap
    at BIGINT NOT NULL,
    actor_id UUID,                              -- NULL: whoever may open the data folder
    actor TEXT NOT NULL,                        -- the user's handle then
    door TEXT NOT NULL,
    act TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,                      -- JSON in its canonical form
    previous_hash BYTEA NOT NULL,
    hash BYTEA NOT NULL
);
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END;
$$;
CREATE TRIGGER audit_entries_change BEFORE UPDATE OR DELETE ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_entries_truncate BEFORE TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- One row: the last entry. Whoever adds one locks it first, so that acts follow one another.
CREATE TABLE audit_head (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    sequence BIGINT NOT NULL,
    hash BYTEA NOT NULL
);
CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head
    FOR EACH ROW WHEN (new.sequence < old.sequence) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_truncate BEFORE TRUNCATE ON audit_head
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
