-- Heartbeats: pending requests, and what is remembered of each agent.
CREATE TABLE wake (
  n       INTEGER PRIMARY KEY,
  session TEXT NOT NULL UNIQUE,
  due     INTEGER NOT NULL,
  wake    TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, session, due, wake)) STORED
) STRICT;
CREATE TABLE heartbeat (
  n     INTEGER PRIMARY KEY,
  agent TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(n, agent, state)) STORED
) STRICT;
