-- The buttons and polls of messages to be sent.
ALTER TABLE outbox RENAME TO old;
CREATE TABLE outbox (
  seq        INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE,
  run        TEXT NOT NULL,
  session    TEXT NOT NULL,
  address    TEXT NOT NULL,
  reply_to   TEXT NOT NULL,
  part       INTEGER NOT NULL,
  text       TEXT NOT NULL,
  media      TEXT NOT NULL,
  state      TEXT NOT NULL,
  attempts   INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  platform   TEXT NOT NULL,
  error      TEXT NOT NULL,
  created    INTEGER NOT NULL,
  origin     TEXT NOT NULL,
  buttons    TEXT NOT NULL,
  poll       TEXT NOT NULL,
  crc        INTEGER NOT NULL AS (crc32c(seq, key, run, session, address, reply_to, part, text,
    media, state, attempts, not_before, platform, error, created, origin, buttons, poll)) STORED
) STRICT;
INSERT INTO outbox SELECT seq, key, run, session, address, reply_to, part, text, media, state, attempts, not_before,
  platform, error, created, origin, '', '' FROM old;
DROP TABLE old;
CREATE INDEX outbox_open ON outbox (seq) WHERE state IN ('draft', 'pending', 'attempted');
CREATE INDEX outbox_run ON outbox (run, part);
CREATE INDEX outbox_final ON outbox (created) WHERE state IN ('sent', 'failed', 'ambiguous', 'dismissed');
CREATE INDEX outbox_undelivered ON outbox (seq) WHERE state IN ('failed', 'ambiguous');
