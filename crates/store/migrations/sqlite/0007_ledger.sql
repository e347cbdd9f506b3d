-- What the delivery ledger needs to know. An attempt that lapsed: its agent went away, or fell silent, while it ran.
ALTER TABLE attempts ADD COLUMN lapsed_at BIGINT;

-- What an attempt left behind. Sequences of the room, as clocks tell no order.
ALTER TABLE attempts ADD COLUMN began_sequence BIGINT;
ALTER TABLE attempts ADD COLUMN replied BIGINT;                 -- whether the agent posted a text meanwhile
ALTER TABLE attempts ADD COLUMN declined BIGINT NOT NULL DEFAULT 0; -- it said that the message is not for it
ALTER TABLE attempts ADD COLUMN decline_reason TEXT;
ALTER TABLE participants ADD COLUMN said_sequence BIGINT;       -- the last text that it posted
ALTER TABLE participants ADD COLUMN active_at BIGINT;           -- its last sign of life in the room

-- Earlier stays of those who left: their row in participants tells of the newest only.
CREATE TABLE stays (
    room_key BIGINT NOT NULL,
    member_key BIGINT NOT NULL,
    joined_sequence BIGINT NOT NULL,
    left_sequence BIGINT NOT NULL,
    left_at BIGINT NOT NULL,
    PRIMARY KEY (room_key, member_key, joined_sequence)
) WITHOUT ROWID;

-- Each run of a server on this data. One that crashed says nothing at its end, and the next one finds it.
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    started_at BIGINT NOT NULL,
    alive_at BIGINT NOT NULL,                   -- it certainly ran until then
    ended_at BIGINT,                            -- with all its connections closed
    found_at BIGINT
);
CREATE INDEX runs_open ON runs (key) WHERE ended_at IS NULL AND found_at IS NULL;

-- What servers saw of an agent: its connections, and the requests of its that were refused for being too many.
CREATE TABLE sightings (
    agent_key BIGINT NOT NULL PRIMARY KEY REFERENCES identities (key),
    run_key BIGINT NOT NULL REFERENCES runs (key), -- which run saw the newest
    connected_at BIGINT,                        -- since when, the newest time
    gone_at BIGINT,                             -- and when that ended, as far as the run knew
    superseded_at BIGINT,
    limited_first_at BIGINT,
    limited_last_at BIGINT,
    limited_until BIGINT
) WITHOUT ROWID;
