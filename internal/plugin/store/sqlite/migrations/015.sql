-- The journal of what the assistant changed.
CREATE TABLE change (
  n      INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE,
  time   INTEGER NOT NULL,
  home   TEXT NOT NULL,
  unit   TEXT NOT NULL,
  target TEXT NOT NULL,
  state  TEXT NOT NULL,
  kept   INTEGER NOT NULL,
  change TEXT NOT NULL,
  crc    INTEGER NOT NULL AS (crc32c(n, id, time, home, unit, target, state, kept, change)) STORED
) STRICT;
CREATE INDEX change_target ON change (target, n);
CREATE INDEX change_home ON change (home, n);
CREATE INDEX change_unit ON change (unit);
CREATE INDEX change_open ON change (n) WHERE state = 'planned';
