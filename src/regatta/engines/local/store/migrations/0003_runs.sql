-- Every run, from its submission until its record goes: a small row that outlives the job. And what
-- makes reading and starting cost the same however many jobs have finished.

CREATE TABLE runs (
    uid          TEXT PRIMARY KEY,
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    mode         TEXT NOT NULL,
    -- Place in the order of submission, as the job's own.
    queued       INTEGER NOT NULL,
    created_at   TEXT NOT NULL,
    started_at   TEXT,
    -- Null while it lives, and so are phase, reason and message its job's to say.
    ended_at     TEXT,
    phase        TEXT NOT NULL DEFAULT '',
    reason       TEXT NOT NULL DEFAULT '',
    message      TEXT NOT NULL DEFAULT '',
    -- The run that took its name.
    replaced_by  TEXT NOT NULL DEFAULT '',
    -- What its folder took on disk when nothing of it ran any more; null until that was measured.
    bytes        INTEGER,
    -- What of it was removed, and why, in a sentence; empty while it is whole.
    removed      TEXT NOT NULL DEFAULT ''
) STRICT;

INSERT INTO runs (uid, namespace, name, mode, queued, created_at, started_at, ended_at, phase,
                  reason, message)
SELECT uid, namespace, name,
       coalesce(json_extract(CAST(status AS TEXT), '$.mode'),
                json_extract(CAST(document AS TEXT), '$.spec.mode'), ''),
       queued, created_at,
       json_extract(CAST(status AS TEXT), '$.startTime'),
       CASE WHEN finished THEN
            coalesce(json_extract(CAST(status AS TEXT), '$.completionTime'), created_at) END,
       CASE WHEN finished THEN
            coalesce(json_extract(CAST(status AS TEXT), '$.phase'), '') ELSE '' END,
       CASE WHEN finished THEN
            coalesce(json_extract(CAST(status AS TEXT), '$.reason'), '') ELSE '' END,
       CASE WHEN finished THEN
            coalesce(json_extract(CAST(status AS TEXT), '$.message'), '') ELSE '' END
FROM jobs;

CREATE INDEX runs_in_order ON runs (queued);
CREATE INDEX runs_in_namespace ON runs (namespace, queued);
CREATE INDEX runs_by_name ON runs (namespace, name, queued);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_to_measure ON runs (uid) WHERE ended_at IS NOT NULL AND bytes IS NULL;

-- When it ended, and whether it is to be deleted some time after that.
ALTER TABLE jobs ADD COLUMN ended_at TEXT;
ALTER TABLE jobs ADD COLUMN expires INTEGER NOT NULL DEFAULT 0;

UPDATE jobs SET
    ended_at = (SELECT ended_at FROM runs WHERE runs.uid = jobs.uid),
    expires = json_extract(CAST(document AS TEXT),
                           '$.spec.runPolicy.ttlSecondsAfterFinished') IS NOT NULL;

CREATE INDEX jobs_ended ON jobs (ended_at) WHERE finished = 1 AND superseded = 0;
CREATE INDEX jobs_ended_in ON jobs (namespace, ended_at) WHERE finished = 1 AND superseded = 0;
CREATE INDEX jobs_expiring ON jobs (uid) WHERE finished = 1 AND expires = 1;

-- An event may also be about no job that is still there.
CREATE TABLE events_of_all (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    job_uid  TEXT REFERENCES jobs (uid) ON DELETE CASCADE,
    at       TEXT NOT NULL,
    type     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    message  TEXT NOT NULL
) STRICT;

INSERT INTO events_of_all SELECT * FROM events;
-- Ids go on from where they were: whoever follows must not be told an old number again.
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'events_of_all', 0
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events_of_all');
UPDATE sqlite_sequence
    SET seq = max(seq, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0))
    WHERE name = 'events_of_all';
DROP TABLE events;
ALTER TABLE events_of_all RENAME TO events;
CREATE INDEX events_of_job ON events (job_uid, id);
