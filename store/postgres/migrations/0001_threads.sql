-- Threads, their commits, and the outbox. Names and texts are bytea, because they may hold
-- bytes that no text of Postgres can. Look at them with encode(thread, 'escape').

CREATE TABLE threads (
    thread      bytea  PRIMARY KEY,
    revision    bigint NOT NULL,
    epoch       bigint NOT NULL, -- of the newest lease that was ever taken; 0: none
    first       bigint NOT NULL, -- oldest revision whose record is kept
    last_id     uuid   NOT NULL, -- of the commit that made revision
    snapshot_at bigint NOT NULL, -- revision of the newest snapshot; 0: none
    lease_epoch bigint NOT NULL, -- of the lease that is held or ran out; 0: it was released
    owner       bytea  NOT NULL,
    until       timestamptz
) WITH (fillfactor = 70);

CREATE TABLE records (
    thread   bytea   NOT NULL,
    revision bigint  NOT NULL,
    id       uuid    NOT NULL, -- of the commit
    seconds  bigint  NOT NULL, -- time of the commit since 1970
    nanos    integer NOT NULL,
    record   bytea   NOT NULL,
    sum      integer,          -- CRC-32C; none for the commit that took a lease
    PRIMARY KEY (thread, revision)
);

CREATE TABLE snapshots (
    thread   bytea   NOT NULL,
    revision bigint  NOT NULL,
    seconds  bigint  NOT NULL,
    nanos    integer NOT NULL,
    state    bytea   NOT NULL,
    sum      integer NOT NULL,
    PRIMARY KEY (thread, revision)
);

CREATE TABLE effects (
    thread   bytea       NOT NULL,
    revision bigint      NOT NULL,
    idx      bigint      NOT NULL,
    seq      bigint      GENERATED ALWAYS AS IDENTITY, -- rises with the revisions of each thread
    lane     bytea       NOT NULL,
    state    smallint    NOT NULL, -- 0 ready, 1 waits, 2 claimed, 3 dead
    due      timestamptz NOT NULL, -- since when, or from when on, it can be claimed
    seconds  bigint      NOT NULL, -- not before, as the commit said
    nanos    integer     NOT NULL,
    body     bytea       NOT NULL,
    sum      integer     NOT NULL,
    attempts integer     NOT NULL DEFAULT 0,
    token    bigint      NOT NULL DEFAULT 0, -- of the claim that runs or ran out; 0: none
    error    bytea       NOT NULL DEFAULT '',
    PRIMARY KEY (thread, revision, idx)
) WITH (
    -- A queue leaves many dead rows behind, and claims pass over them until they are gone.
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- Claims read the first index from its beginning. Whoever claims moves there what the second
-- one says has come due.
CREATE INDEX effects_ready ON effects (lane, seq) WHERE state = 0;
CREATE INDEX effects_later ON effects (lane, due) WHERE state IN (1, 2);
CREATE INDEX effects_dead ON effects (lane, seq) WHERE state = 3;

CREATE SEQUENCE tokens;
