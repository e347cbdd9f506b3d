-- Dead letters: what was given up after too many attempts or too long a time, until a person has it delivered again.
ALTER TABLE deliveries ADD COLUMN counted_attempts BIGINT NOT NULL DEFAULT 0; -- those that count toward the limit
ALTER TABLE deliveries ADD COLUMN waits_since BIGINT NOT NULL DEFAULT 0;      -- its age counts from here
ALTER TABLE deliveries ADD COLUMN redelivered_by BIGINT REFERENCES identities (key); -- who had it delivered again
UPDATE deliveries SET waits_since = stored_at;
CREATE INDEX deliveries_waiting ON deliveries (waits_since) WHERE recipient = 1 AND state IN (0, 1, 2, 3);
CREATE INDEX participants_dead ON participants (room_key, member_key) WHERE dead_lettered > 0;
CREATE INDEX participants_dead_member ON participants (member_key, room_key) WHERE dead_lettered > 0;

-- The processing lease: attempts that run and have not lapsed, by when their agent was last known to be at work.
ALTER TABLE attempts ADD COLUMN seen_at BIGINT NOT NULL DEFAULT 0;
UPDATE attempts SET seen_at = started_at;
CREATE INDEX attempts_running ON attempts (seen_at) WHERE state = 0 AND lapsed_at IS NULL;
