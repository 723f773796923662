-- The tables of the store at the newest version. A new database is created with
-- this file; the files in migrations lead an older database to the same tables.
-- Times are nanoseconds since 1970 in UTC, 0 for none.

CREATE TABLE setting (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

-- Entries of a transcript are adjacent and ordered: pos is n << 32 | seq.
CREATE TABLE transcript (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL
) STRICT;

-- A lease belongs to a session, an account of a channel, or the schedule. since is
-- 0 if its session was deleted; the row stays because its fence must not restart.
CREATE TABLE lease (
  name  TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL DEFAULT 0
) STRICT;

-- entries is the number of entries of the transcript when the row was written.
-- Salvage uses it to detect that the end of a transcript is missing. active and
-- archived sort and filter lists of sessions.
CREATE TABLE session (
  n        INTEGER PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,
  id       TEXT NOT NULL,
  agent    TEXT NOT NULL,
  updated  INTEGER NOT NULL,
  entries  INTEGER NOT NULL,
  search   TEXT NOT NULL,
  meta     TEXT NOT NULL,
  active   INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_updated ON session (archived, updated);

-- Earlier transcripts of a session.
CREATE TABLE past (
  n       INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  id      TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended   INTEGER NOT NULL,
  reason  TEXT NOT NULL,
  entries INTEGER NOT NULL,
  UNIQUE (session, id)
) STRICT;

CREATE TABLE approval (
  n        INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  session  TEXT NOT NULL,
  run      TEXT NOT NULL,
  tool     TEXT NOT NULL,
  hash     TEXT NOT NULL,
  decision TEXT NOT NULL,
  created  INTEGER NOT NULL,
  request  TEXT NOT NULL
) STRICT;
CREATE INDEX approval_pending ON approval (created) WHERE decision = '';
CREATE INDEX approval_run ON approval (run);
CREATE INDEX approval_standing ON approval (session, tool, hash) WHERE decision IN ('allow-always', 'allow-session');

-- The queue. run is the run that took the item.
CREATE TABLE item (
  seq       INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  key       TEXT UNIQUE,
  session   TEXT NOT NULL,
  kind      TEXT NOT NULL,
  principal TEXT NOT NULL,
  inbound   TEXT NOT NULL,
  call      TEXT NOT NULL,
  state     TEXT NOT NULL,
  run       TEXT NOT NULL,
  note      TEXT NOT NULL,
  created   INTEGER NOT NULL,
  origin    TEXT NOT NULL DEFAULT '',
  overrides TEXT NOT NULL DEFAULT '',
  next      INTEGER NOT NULL DEFAULT 0,
  skipped   INTEGER NOT NULL DEFAULT 0,
  owner     TEXT NOT NULL DEFAULT '',
  parent    TEXT NOT NULL DEFAULT '',
  root      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX item_waiting ON item (session, seq) WHERE state = 'waiting';
CREATE INDEX item_owed ON item (seq) WHERE state = 'owed';
-- The id of a run equals the id of its first item, so that this index needs only the
-- other items.
CREATE INDEX item_run ON item (run) WHERE run <> '' AND run <> id;

-- Tool calls. rights is the permissions that a blocked call requests.
CREATE TABLE call (
  n        INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  run      TEXT NOT NULL,
  session  TEXT NOT NULL,
  wire     TEXT NOT NULL,
  name     TEXT NOT NULL,
  args     TEXT,
  raw      TEXT NOT NULL,
  state    TEXT NOT NULL,
  effect   TEXT NOT NULL,
  approval TEXT NOT NULL,
  detached INTEGER NOT NULL,
  updated  INTEGER NOT NULL,
  who      TEXT NOT NULL DEFAULT '',
  ran      TEXT NOT NULL DEFAULT '',
  decision TEXT NOT NULL DEFAULT '',
  rule     TEXT NOT NULL DEFAULT '',
  outcome  TEXT NOT NULL DEFAULT '',
  took     INTEGER NOT NULL DEFAULT 0,
  rights   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX call_run ON call (run);
CREATE INDEX call_detached ON call (session) WHERE detached AND state <> 'closed';

-- n is the time, incremented to be unique, so that queries by time need no index.
CREATE TABLE usage (
  n           INTEGER PRIMARY KEY,
  run         TEXT NOT NULL,
  session     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  time        INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  estimated   INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  priced      INTEGER NOT NULL
) STRICT;

-- Parts of messages to channels. origin is notified of the outcome.
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
  origin     TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_open ON outbox (seq) WHERE state IN ('draft', 'pending', 'attempted');
CREATE INDEX outbox_run ON outbox (run, part);
CREATE INDEX outbox_final ON outbox (created) WHERE state IN ('sent', 'failed', 'ambiguous');

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
  kind       TEXT NOT NULL DEFAULT 'turn',
  parent     TEXT NOT NULL DEFAULT '',
  root       TEXT NOT NULL DEFAULT '',
  replaces   TEXT NOT NULL DEFAULT '',
  waits      TEXT NOT NULL DEFAULT '',
  stop       TEXT NOT NULL DEFAULT '',
  overrides  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX run_active ON run (session) WHERE state IN ('running', 'suspended');

-- A message of one plain text is stored in text; the parts of other messages are
-- stored as JSON in parts. role is NULL if an entry is not a message.
CREATE TABLE entry (
  pos         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL,
  kind        TEXT NOT NULL,
  time        INTEGER NOT NULL,
  run         TEXT,
  role        TEXT,
  text        TEXT,
  parts       TEXT,
  provider    TEXT,
  model       TEXT,
  stop        TEXT,
  call        TEXT,
  tool        TEXT,
  flags       INTEGER NOT NULL,
  note        TEXT,
  first       INTEGER,
  details     TEXT,
  sender      TEXT,
  sender_name TEXT,
  item        TEXT,
  input       INTEGER,
  output      INTEGER,
  cache_read  INTEGER,
  cache_write INTEGER,
  cost        INTEGER,
  origin      TEXT,
  voids       TEXT
) STRICT;
-- Entries that refer to files: bit 5 of their flags.
CREATE INDEX entry_media ON entry (flags) WHERE flags & 32;

-- Devices that may connect or wait for approval. device is empty until the first
-- approval; request is empty if no request is pending. A removed device stays as a
-- tombstone.
CREATE TABLE device (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  device  TEXT NOT NULL,
  request TEXT NOT NULL
) STRICT;
CREATE INDEX device_waiting ON device (n) WHERE request <> '';

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
