-- Why a run failed.
ALTER TABLE run RENAME TO old;
CREATE TABLE run (
  n          INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  session    TEXT NOT NULL,
  transcript TEXT NOT NULL,
  agent      TEXT NOT NULL,
  origin     TEXT NOT NULL,
  lane       TEXT NOT NULL,
  state      TEXT NOT NULL,
  principal  TEXT NOT NULL,
  address    TEXT NOT NULL,
  model      TEXT NOT NULL,
  attempts   INTEGER NOT NULL,
  error      TEXT NOT NULL,
  text       TEXT NOT NULL,
  footer     TEXT NOT NULL,
  silent     INTEGER NOT NULL,
  started    INTEGER NOT NULL,
  ended      INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  parent     TEXT NOT NULL,
  root       TEXT NOT NULL,
  replaces   TEXT NOT NULL,
  waits      TEXT NOT NULL,
  stop       TEXT NOT NULL,
  overrides  TEXT NOT NULL,
  failure    TEXT NOT NULL,
  crc        INTEGER NOT NULL AS (crc32c(n, id, session, transcript, agent, origin, lane, state,
    principal, address, model, attempts, error, text, footer, silent, started, ended, fence, kind,
    parent, root, replaces, waits, stop, overrides, failure)) STORED
) STRICT;
INSERT INTO run SELECT n, id, session, transcript, agent, origin, lane, state, principal, address, model, attempts,
  error, text, footer, silent, started, ended, fence, kind, parent, root, replaces, waits, stop, overrides, '' FROM old;
DROP TABLE old;
CREATE INDEX run_active ON run (session) WHERE state IN ('running', 'suspended');
