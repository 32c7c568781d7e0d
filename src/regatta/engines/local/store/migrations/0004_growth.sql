-- When a job that has been admitted asked to be larger, in the one rising sequence of submissions and
-- admissions: growth waits in line from there. 0 where it never did.

ALTER TABLE jobs ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
