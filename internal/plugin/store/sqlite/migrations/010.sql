-- Subagents. child is the whole record.
CREATE TABLE child (
  n         INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  session   TEXT NOT NULL UNIQUE,
  requester TEXT NOT NULL,
  ended     INTEGER NOT NULL,
  archived  INTEGER NOT NULL,
  child     TEXT NOT NULL
) STRICT;
CREATE INDEX child_open ON child (requester) WHERE ended = 0;
CREATE INDEX child_kept ON child (requester) WHERE archived = 0;
