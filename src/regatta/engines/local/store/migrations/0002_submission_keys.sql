-- Which submissions have arrived, so that one that is sent again is not taken twice.

CREATE TABLE submissions (
    key      TEXT PRIMARY KEY,
    job_uid  TEXT NOT NULL,
    name     TEXT NOT NULL,
    at       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX submissions_by_age ON submissions (at);
