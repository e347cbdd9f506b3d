-- An agent's work in a room (its execution) is part of its row there: the stop gate then costs no look-up of its own.
ALTER TABLE participants ADD COLUMN execution_id UUID;          -- agents only; a new one each time it joins
ALTER TABLE participants ADD COLUMN stopped_sequence BIGINT;    -- set while it is stopped: the room's sequence then
ALTER TABLE participants ADD COLUMN stopped_at BIGINT;
ALTER TABLE participants ADD COLUMN stopped_by BIGINT REFERENCES identities (key);
ALTER TABLE participants ADD COLUMN worked BIGINT NOT NULL DEFAULT 0; -- ever tried or sent a message here; stays
UPDATE participants SET execution_id = gen_random_uuid()
    WHERE member_key IN (SELECT key FROM identities WHERE kind = 1);
UPDATE participants SET worked = 1 WHERE processing + failed + processed + sent > 0;
CREATE UNIQUE INDEX participants_execution ON participants (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX participants_worked ON participants (member_key) WHERE worked = 1;
CREATE INDEX rooms_departing ON rooms (key) WHERE deleted_at IS NOT NULL AND participants > 0;

-- Requests to delete many rooms or agents, carried out in the background.
CREATE TABLE bulk_deletions (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    user_key BIGINT NOT NULL REFERENCES identities (key),
    resource BIGINT NOT NULL,                   -- 0 rooms, 1 agents
    force BIGINT NOT NULL,
    status BIGINT NOT NULL,                     -- 0 queued, 1 processing, 2 completed, 3 failed
    inserted_at BIGINT NOT NULL,
    started_at BIGINT,
    completed_at BIGINT
);
CREATE INDEX bulk_deletions_open ON bulk_deletions (key) WHERE completed_at IS NULL;
CREATE INDEX bulk_deletions_over ON bulk_deletions (completed_at, key) WHERE completed_at IS NOT NULL;

-- One row for each id of a request. What its user may delete is decided when it is accepted: there is a target, or a
-- refusal, which the job passes on when it comes to it.
CREATE TABLE bulk_deletion_items (
    job_key BIGINT NOT NULL REFERENCES bulk_deletions (key),
    number BIGINT NOT NULL,                     -- from 0, in the order of the request
    given TEXT COLLATE "C" NOT NULL,                        -- the id as it was given
    target UUID,
    refusal BIGINT,                             -- why it is not deleted
    state BIGINT NOT NULL,                      -- 0 pending, 1 succeeded, 2 failed
    PRIMARY KEY (job_key, number)
);
