-- A room's board: what its next task's number follows, how many active tasks have which status (so that no list has to
-- count), and the goal. Who set and who changed the goal are kept as known then; all of the goal is NULL until it is set.
CREATE TABLE boards (
    room_key BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (key),
    last_number BIGINT NOT NULL DEFAULT 0,
    pending BIGINT NOT NULL DEFAULT 0,
    in_progress BIGINT NOT NULL DEFAULT 0,
    blocked BIGINT NOT NULL DEFAULT 0,
    in_review BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0,
    completed BIGINT NOT NULL DEFAULT 0,
    goal_title TEXT,
    goal_summary TEXT,
    creator_key BIGINT REFERENCES identities (key),
    creator_name TEXT,
    creator_handle TEXT,
    editor_key BIGINT REFERENCES identities (key),
    editor_name TEXT,
    editor_handle TEXT,
    events BIGINT NOT NULL DEFAULT 0,           -- rows of the goal's trail
    goal_set_at BIGINT,
    goal_changed_at BIGINT
);

CREATE TABLE board_events (
    room_key BIGINT NOT NULL REFERENCES boards (room_key),
    place BIGINT NOT NULL,                      -- 1, 2, 3 …
    kind TEXT NOT NULL,
    actor_key BIGINT NOT NULL REFERENCES identities (key),
    actor_name TEXT NOT NULL,                   -- as known then, here and below
    actor_handle TEXT NOT NULL,
    payload TEXT NOT NULL,                      -- JSON, as it travels
    at BIGINT NOT NULL,
    PRIMARY KEY (room_key, place)
);

CREATE TABLE tasks (
    room_key BIGINT NOT NULL REFERENCES boards (room_key),
    number BIGINT NOT NULL,
    id UUID NOT NULL,
    state TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    superseded_by UUID,
    creator_key BIGINT NOT NULL REFERENCES identities (key),
    creator_name TEXT NOT NULL,
    creator_handle TEXT NOT NULL,
    events BIGINT NOT NULL DEFAULT 0,           -- rows of its history
    started_at BIGINT,
    completed_at BIGINT,
    inserted_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (room_key, number)
);
CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE INDEX tasks_state ON tasks (room_key, state, number);

CREATE TABLE task_assignments (
    room_key BIGINT NOT NULL,
    number BIGINT NOT NULL,
    member_key BIGINT NOT NULL REFERENCES identities (key),
    member_name TEXT NOT NULL,
    member_handle TEXT NOT NULL,
    status TEXT NOT NULL,
    active_form TEXT NOT NULL,
    linked_native_id TEXT NOT NULL,
    joined_sequence BIGINT NOT NULL,            -- the room's sequence when it joined the task
    sequence BIGINT NOT NULL,                   -- and when this last changed
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (room_key, number, member_key),
    FOREIGN KEY (room_key, number) REFERENCES tasks (room_key, number)
);
CREATE INDEX task_assignments_open ON task_assignments (member_key, room_key, number) WHERE status <> 'completed';

CREATE TABLE task_events (
    room_key BIGINT NOT NULL,
    number BIGINT NOT NULL,
    place BIGINT NOT NULL,                      -- 1, 2, 3 …
    kind TEXT NOT NULL,
    actor_key BIGINT NOT NULL REFERENCES identities (key),
    actor_name TEXT NOT NULL,
    actor_handle TEXT NOT NULL,
    payload TEXT NOT NULL,                      -- JSON, as it travels
    at BIGINT NOT NULL,
    PRIMARY KEY (room_key, number, place),
    FOREIGN KEY (room_key, number) REFERENCES tasks (room_key, number)
);

-- Who left a room while it worked on tasks that it had not completed: a background job takes it off them.
CREATE TABLE task_departures (
    room_key BIGINT NOT NULL,
    member_key BIGINT NOT NULL,
    up_to BIGINT NOT NULL,                      -- the room's sequence when it left: what it touched later stays
    looked_at BIGINT NOT NULL DEFAULT 0,        -- tasks up to this number are done
    PRIMARY KEY (room_key, member_key)
);

-- What the room is for, for people: the start of its first text message.
ALTER TABLE rooms ADD COLUMN description TEXT;
