-- A checksum in each row: see checksum.go. SQLite cannot add such a column, so that
-- every table is copied.

ALTER TABLE setting RENAME TO old;
CREATE TABLE setting (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(name, value)) STORED
) STRICT;
INSERT INTO setting SELECT * FROM old;
DROP TABLE old;

ALTER TABLE transcript RENAME TO old;
CREATE TABLE transcript (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, created)) STORED
) STRICT;
INSERT INTO transcript SELECT * FROM old;
DROP TABLE old;

ALTER TABLE lease RENAME TO old;
CREATE TABLE lease (
  name  TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(name, owner, fence, since)) STORED
) STRICT;
INSERT INTO lease SELECT * FROM old;
DROP TABLE old;

ALTER TABLE session RENAME TO old;
CREATE TABLE session (
  n        INTEGER PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,
  id       TEXT NOT NULL,
  agent    TEXT NOT NULL,
  updated  INTEGER NOT NULL,
  entries  INTEGER NOT NULL,
  search   TEXT NOT NULL,
  meta     TEXT NOT NULL,
  active   INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  crc      INTEGER NOT NULL AS (crc32c(n, key, id, agent, updated, entries, search, meta, active,
    archived)) STORED
) STRICT;
INSERT INTO session SELECT * FROM old;
DROP TABLE old;
CREATE INDEX session_updated ON session (archived, updated);

ALTER TABLE past RENAME TO old;
CREATE TABLE past (
  n       INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  id      TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended   INTEGER NOT NULL,
  reason  TEXT NOT NULL,
  entries INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, session, id, started, ended, reason, entries)) STORED,
  UNIQUE (session, id)
) STRICT;
INSERT INTO past SELECT * FROM old;
DROP TABLE old;

ALTER TABLE approval RENAME TO old;
CREATE TABLE approval (
  n        INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  session  TEXT NOT NULL,
  run      TEXT NOT NULL,
  tool     TEXT NOT NULL,
  hash     TEXT NOT NULL,
  decision TEXT NOT NULL,
  created  INTEGER NOT NULL,
  request  TEXT NOT NULL,
  crc      INTEGER NOT NULL AS (crc32c(n, id, session, run, tool, hash, decision, created, request))
    STORED
) STRICT;
INSERT INTO approval SELECT * FROM old;
DROP TABLE old;
CREATE INDEX approval_pending ON approval (created) WHERE decision = '';
CREATE INDEX approval_run ON approval (run);
CREATE INDEX approval_standing ON approval (session, tool, hash) WHERE decision IN ('allow-always', 'allow-session');

ALTER TABLE item RENAME TO old;
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
  origin    TEXT NOT NULL,
  overrides TEXT NOT NULL,
  next      INTEGER NOT NULL,
  skipped   INTEGER NOT NULL,
  owner     TEXT NOT NULL,
  parent    TEXT NOT NULL,
  root      TEXT NOT NULL,
  crc       INTEGER NOT NULL AS (crc32c(seq, id, key, session, kind, principal, inbound, call,
    state, run, note, created, origin, overrides, next, skipped, owner, parent, root)) STORED
) STRICT;
INSERT INTO item SELECT * FROM old;
DROP TABLE old;
CREATE INDEX item_waiting ON item (session, seq) WHERE state = 'waiting';
CREATE INDEX item_owed ON item (seq) WHERE state = 'owed';
CREATE INDEX item_background ON item (seq) WHERE owner <> '' OR instr(inbound, '"task":true');
CREATE INDEX item_run ON item (run) WHERE run <> '' AND run <> id;

ALTER TABLE call RENAME TO old;
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
  who      TEXT NOT NULL,
  ran      TEXT NOT NULL,
  decision TEXT NOT NULL,
  rule     TEXT NOT NULL,
  outcome  TEXT NOT NULL,
  took     INTEGER NOT NULL,
  rights   TEXT NOT NULL,
  crc      INTEGER NOT NULL AS (crc32c(n, id, run, session, wire, name, args, raw, state, effect,
    approval, detached, updated, who, ran, decision, rule, outcome, took, rights)) STORED
) STRICT;
INSERT INTO call SELECT * FROM old;
DROP TABLE old;
CREATE INDEX call_run ON call (run);
CREATE INDEX call_detached ON call (session) WHERE detached AND state <> 'closed';

ALTER TABLE usage RENAME TO old;
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
  priced      INTEGER NOT NULL,
  crc         INTEGER NOT NULL AS (crc32c(n, run, session, agent, provider, model, time, input,
    output, cache_read, cache_write, estimated, cost, priced)) STORED
) STRICT;
INSERT INTO usage SELECT * FROM old;
DROP TABLE old;

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
  crc        INTEGER NOT NULL AS (crc32c(seq, key, run, session, address, reply_to, part, text,
    media, state, attempts, not_before, platform, error, created, origin)) STORED
) STRICT;
INSERT INTO outbox SELECT * FROM old;
DROP TABLE old;
CREATE INDEX outbox_open ON outbox (seq) WHERE state IN ('draft', 'pending', 'attempted');
CREATE INDEX outbox_run ON outbox (run, part);
CREATE INDEX outbox_final ON outbox (created) WHERE state IN ('sent', 'failed', 'ambiguous', 'dismissed');
CREATE INDEX outbox_undelivered ON outbox (seq) WHERE state IN ('failed', 'ambiguous');

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
  crc        INTEGER NOT NULL AS (crc32c(n, id, session, transcript, agent, origin, lane, state,
    principal, address, model, attempts, error, text, footer, silent, started, ended, fence, kind,
    parent, root, replaces, waits, stop, overrides)) STORED
) STRICT;
INSERT INTO run SELECT * FROM old;
DROP TABLE old;
CREATE INDEX run_active ON run (session) WHERE state IN ('running', 'suspended');

ALTER TABLE entry RENAME TO old;
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
  voids       TEXT,
  crc         INTEGER NOT NULL AS (crc32c(pos, id, kind, time, run, role, text, parts, provider,
    model, stop, call, tool, flags, note, first, details, sender, sender_name, item, input, output,
    cache_read, cache_write, cost, origin, voids)) STORED
) STRICT;
INSERT INTO entry SELECT * FROM old;
DROP TABLE old;
CREATE INDEX entry_media ON entry (flags) WHERE flags & 32;

ALTER TABLE device RENAME TO old;
CREATE TABLE device (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  device  TEXT NOT NULL,
  request TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, created, removed, device, request)) STORED
) STRICT;
INSERT INTO device SELECT * FROM old;
DROP TABLE old;
CREATE INDEX device_waiting ON device (n) WHERE request <> '';

ALTER TABLE beat RENAME TO old;
CREATE TABLE beat (
  owner   TEXT NOT NULL PRIMARY KEY,
  expires INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(owner, expires)) STORED
) STRICT, WITHOUT ROWID;
INSERT INTO beat SELECT * FROM old;
DROP TABLE old;

ALTER TABLE hold RENAME TO old;
CREATE TABLE hold (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL,
  run     TEXT NOT NULL,
  scope   TEXT NOT NULL,
  nano    INTEGER NOT NULL,
  spent   INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  created INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, run, scope, nano, spent, settled, created)) STORED,
  UNIQUE (id, scope)
) STRICT;
INSERT INTO hold SELECT * FROM old;
DROP TABLE old;
CREATE INDEX hold_scope ON hold (scope);

ALTER TABLE child RENAME TO old;
CREATE TABLE child (
  n         INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  session   TEXT NOT NULL UNIQUE,
  requester TEXT NOT NULL,
  ended     INTEGER NOT NULL,
  archived  INTEGER NOT NULL,
  child     TEXT NOT NULL,
  crc       INTEGER NOT NULL AS (crc32c(n, id, session, requester, ended, archived, child)) STORED
) STRICT;
INSERT INTO child SELECT * FROM old;
DROP TABLE old;
CREATE INDEX child_open ON child (requester) WHERE ended = 0;
CREATE INDEX child_kept ON child (requester) WHERE archived = 0;
