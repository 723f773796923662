-- Calls of nodes with a key, so that one is not made again. invocation is the whole record.
CREATE TABLE invocation (
  n          INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE,
  sent       INTEGER NOT NULL,
  invocation TEXT NOT NULL,
  crc        INTEGER NOT NULL AS (crc32c(n, key, sent, invocation)) STORED
) STRICT;
CREATE INDEX invocation_sent ON invocation (sent);
