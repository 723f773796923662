-- Scheduled jobs, and their runs.

CREATE TABLE job (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  due     INTEGER NOT NULL,
  job     TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, due, job)) STORED
) STRICT;
CREATE INDEX job_due ON job (due) WHERE due > 0;

CREATE TABLE job_run (
  n       INTEGER PRIMARY KEY,
  job     TEXT NOT NULL,
  slot    INTEGER NOT NULL,
  id      TEXT NOT NULL UNIQUE,
  ended   INTEGER NOT NULL,
  run     TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, job, slot, id, ended, run)) STORED,
  UNIQUE (job, slot)
) STRICT;
CREATE INDEX job_run_open ON job_run (n) WHERE ended = 0;
CREATE INDEX job_run_of ON job_run (job, n);
