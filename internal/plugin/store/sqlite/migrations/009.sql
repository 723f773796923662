-- The origin and the overrides of items, runs and entries. Every table with a new
-- column is copied, so that each row has all columns: salvage assigns rows to
-- tables by their number of columns.

ALTER TABLE item ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN overrides TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN next INTEGER NOT NULL DEFAULT 0;
ALTER TABLE item ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE item ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN root TEXT NOT NULL DEFAULT '';
UPDATE item SET
  kind = iif(kind = 'system', 'event', kind),
  origin = CASE WHEN kind = 'message' THEN '{"kind":"person"}' WHEN kind = 'system' THEN '{"kind":"process"}' ELSE '' END,
  overrides = iif(kind = 'message' AND json_extract(inbound, '$.think') <> '', json_object('think', json_extract(inbound, '$.think')), '');

ALTER TABLE run RENAME COLUMN trigger TO origin;
ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'turn';
ALTER TABLE run ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN waits TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN stop TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN overrides TEXT NOT NULL DEFAULT '';
UPDATE run SET
  origin = CASE origin WHEN 'user' THEN '{"kind":"person"}' WHEN 'system' THEN '{"kind":"process"}' ELSE '' END,
  overrides = iif(think = '', '', json_object('think', think)),
  waits = iif(state = 'suspended', 'approval', '');
ALTER TABLE run DROP COLUMN think;

-- rights is the permissions that a blocked call requests.
ALTER TABLE call ADD COLUMN rights TEXT NOT NULL DEFAULT '';
UPDATE call SET rights = '';

ALTER TABLE entry ADD COLUMN origin TEXT;
ALTER TABLE entry ADD COLUMN voids TEXT;
UPDATE entry SET origin = iif(role = 'user' AND item IS NULL AND text LIKE '[System%', '{"kind":"system"}', NULL);

-- A lease belongs to a session, an account of a channel, or the schedule. since is
-- 0 if its session was deleted; the row stays because its fence must not restart.
ALTER TABLE lease RENAME COLUMN session TO name;
ALTER TABLE lease DROP COLUMN run;
ALTER TABLE lease ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
UPDATE lease SET name = 'session:' || name, since = owner <> '';

-- The time until which each process is alive. The table has no rowid, so that
-- salvage skips it and every owner counts as dead afterwards.
CREATE TABLE beat (
  owner   TEXT NOT NULL PRIMARY KEY,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Money reserved before a model call, one row for each budget. spent equals nano
-- until the cost of the call is known.
CREATE TABLE hold (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL,
  run     TEXT NOT NULL,
  scope   TEXT NOT NULL,
  nano    INTEGER NOT NULL,
  spent   INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  created INTEGER NOT NULL,
  UNIQUE (id, scope)
) STRICT;
CREATE INDEX hold_scope ON hold (scope);

-- The origin to notify of a row's outcome, for example the job that started its
-- run.
ALTER TABLE outbox ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE outbox SET origin = '';

DROP INDEX approval_always;
CREATE INDEX approval_standing ON approval (session, tool, hash) WHERE decision IN ('allow-always', 'allow-session');
