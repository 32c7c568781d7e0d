-- Jobs, their pods and what belongs to them. Times are ISO 8601 text in UTC; documents are JSON.

CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value REAL NOT NULL
) STRICT;

INSERT INTO counters (name, value) VALUES ('version', 0), ('sequence', 0), ('awake', 0);

CREATE TABLE jobs (
    uid         TEXT PRIMARY KEY,
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    -- apiVersion, kind, metadata and spec; the status has a column of its own.
    document    BLOB NOT NULL,
    status      BLOB NOT NULL,
    -- The submitting shell: directory, variables, interpreter, volumes, runtime.
    context     BLOB NOT NULL,
    -- Other documents of the file (PodGroup, volumes).
    companions  BLOB NOT NULL,
    -- A later job took this one's name: kept for its logs until the name is deleted.
    superseded  INTEGER NOT NULL DEFAULT 0,
    finished    INTEGER NOT NULL DEFAULT 0,
    -- Place in the order of submission, and of admission; both from the one rising sequence.
    queued      INTEGER NOT NULL,
    admitted    INTEGER,
    -- Replicas per role that the scheduler has admitted.
    shape       BLOB,
    -- Why the scheduler makes it wait.
    waiting     TEXT NOT NULL DEFAULT '',
    version     INTEGER NOT NULL,
    created_at  TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX jobs_by_name ON jobs (namespace, name) WHERE superseded = 0;
CREATE INDEX jobs_live ON jobs (queued) WHERE finished = 0;
CREATE INDEX jobs_history ON jobs (namespace, name, queued) WHERE superseded = 1;

CREATE TABLE pods (
    uid          TEXT PRIMARY KEY,
    job_uid      TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL,
    idx          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    manifest     BLOB NOT NULL,
    -- 0 until the pod is meant to start. Written before the process exists.
    run          INTEGER NOT NULL DEFAULT 0,
    bound        INTEGER NOT NULL DEFAULT 0,
    address      TEXT NOT NULL DEFAULT '',
    port_base    INTEGER NOT NULL DEFAULT 0,
    gpus         BLOB NOT NULL DEFAULT x'5b5d',
    phase        TEXT NOT NULL DEFAULT 'Pending',
    stopping     INTEGER NOT NULL DEFAULT 0,
    deleting     INTEGER NOT NULL DEFAULT 0,
    -- Cleaned: out of the brain's sight, while the record and the log stay.
    gone         INTEGER NOT NULL DEFAULT 0,
    exit_code    INTEGER,
    reason       TEXT NOT NULL DEFAULT '',
    message      TEXT NOT NULL DEFAULT '',
    disruption   TEXT NOT NULL DEFAULT '',
    restarts     INTEGER NOT NULL DEFAULT 0,
    created_at   TEXT NOT NULL,
    started_at   TEXT,
    finished_at  TEXT
) STRICT;

CREATE UNIQUE INDEX pods_by_name ON pods (job_uid, name) WHERE gone = 0;
CREATE INDEX pods_of_job ON pods (job_uid);
CREATE INDEX pods_alive ON pods (job_uid) WHERE finished_at IS NULL;

CREATE TABLE environments (
    job_uid   TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    revision  INTEGER NOT NULL,
    name      TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (job_uid, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    job_uid  TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    at       TEXT NOT NULL,
    type     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    message  TEXT NOT NULL
) STRICT;

CREATE INDEX events_of_job ON events (job_uid, id);

-- One contiguous run of addresses and of port blocks per job that may still start something.
CREATE TABLE reservations (
    job_uid        TEXT PRIMARY KEY REFERENCES jobs (uid) ON DELETE CASCADE,
    first_address  INTEGER NOT NULL,
    first_block    INTEGER NOT NULL,
    count          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
