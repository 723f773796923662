-- The tables of the store at the newest version. A new database is created with
-- this file; the files in migrations lead an older database to the same tables.
-- Times are nanoseconds since 1970 in UTC, 0 for none.
--
-- crc is the last column of each table: a checksum of all other columns, in order.
-- A migration that adds a column to a table creates the table anew, as 012 does.

CREATE TABLE setting (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(name, value)) STORED
) STRICT;

-- Entries of a transcript are adjacent and ordered: pos is n << 32 | seq.
CREATE TABLE transcript (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, created)) STORED
) STRICT;

-- A lease belongs to a session, an account of a channel, or the schedule. since is
-- 0 if its session was deleted; the row stays because its fence must not restart.
CREATE TABLE lease (
  name  TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(name, owner, fence, since)) STORED
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
  active   INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  crc      INTEGER NOT NULL AS (crc32c(n, key, id, agent, updated, entries, search, meta, active,
    archived)) STORED
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
  crc     INTEGER NOT NULL AS (crc32c(n, session, id, started, ended, reason, entries)) STORED,
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
  request  TEXT NOT NULL,
  crc      INTEGER NOT NULL AS (crc32c(n, id, session, run, tool, hash, decision, created, request))
    STORED
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
  origin    TEXT NOT NULL,
  overrides TEXT NOT NULL,
  next      INTEGER NOT NULL,
  skipped   INTEGER NOT NULL,
  owner     TEXT NOT NULL,
  parent    TEXT NOT NULL,
  root      TEXT NOT NULL,
  result    TEXT NOT NULL,
  crc       INTEGER NOT NULL AS (crc32c(seq, id, key, session, kind, principal, inbound, call,
    state, run, note, created, origin, overrides, next, skipped, owner, parent, root, result)) STORED
) STRICT;
CREATE INDEX item_waiting ON item (session, seq) WHERE state = 'waiting';
CREATE INDEX item_owed ON item (seq) WHERE state = 'owed';
CREATE INDEX item_background ON item (seq) WHERE owner <> '' OR instr(inbound, '"task":true');
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
  priced      INTEGER NOT NULL,
  crc         INTEGER NOT NULL AS (crc32c(n, run, session, agent, provider, model, time, input,
    output, cache_read, cache_write, estimated, cost, priced)) STORED
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
  origin     TEXT NOT NULL,
  buttons    TEXT NOT NULL,
  poll       TEXT NOT NULL,
  crc        INTEGER NOT NULL AS (crc32c(seq, key, run, session, address, reply_to, part, text,
    media, state, attempts, not_before, platform, error, created, origin, buttons, poll)) STORED
) STRICT;
CREATE INDEX outbox_open ON outbox (seq) WHERE state IN ('draft', 'pending', 'attempted');
CREATE INDEX outbox_run ON outbox (run, part);
CREATE INDEX outbox_final ON outbox (created) WHERE state IN ('sent', 'failed', 'ambiguous', 'dismissed');
CREATE INDEX outbox_undelivered ON outbox (seq) WHERE state IN ('failed', 'ambiguous');

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
  voids       TEXT,
  crc         INTEGER NOT NULL AS (crc32c(pos, id, kind, time, run, role, text, parts, provider,
    model, stop, call, tool, flags, note, first, details, sender, sender_name, item, input, output,
    cache_read, cache_write, cost, origin, voids)) STORED
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
  request TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, created, removed, device, request)) STORED
) STRICT;
CREATE INDEX device_waiting ON device (n) WHERE request <> '';

-- The time until which each process is alive. The table has no rowid, so that
-- salvage skips it and every owner counts as dead afterwards.
CREATE TABLE beat (
  owner   TEXT NOT NULL PRIMARY KEY,
  expires INTEGER NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(owner, expires)) STORED
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
  crc     INTEGER NOT NULL AS (crc32c(n, id, run, scope, nano, spent, settled, created)) STORED,
  UNIQUE (id, scope)
) STRICT;
CREATE INDEX hold_scope ON hold (scope);

-- Subagents. child is the whole record.
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
CREATE INDEX child_open ON child (requester) WHERE ended = 0;
CREATE INDEX child_kept ON child (requester) WHERE archived = 0;

-- Scheduled jobs. job is the whole record; due is its next slot if it is enabled, else 0.
CREATE TABLE job (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  due     INTEGER NOT NULL,
  job     TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, id, due, job)) STORED
) STRICT;
CREATE INDEX job_due ON job (due) WHERE due > 0;

-- Runs of jobs. A row is the claim of a slot, so that a slot has one run. run is the
-- whole record; ended is 0 while the run is open.
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

-- Requests for heartbeats, at most one for each session. wake is the whole record.
CREATE TABLE wake (
  n       INTEGER PRIMARY KEY,
  session TEXT NOT NULL UNIQUE,
  due     INTEGER NOT NULL,
  wake    TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, session, due, wake)) STORED
) STRICT;

-- What is remembered of the heartbeats of each agent.
CREATE TABLE heartbeat (
  n     INTEGER PRIMARY KEY,
  agent TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  crc   INTEGER NOT NULL AS (crc32c(n, agent, state)) STORED
) STRICT;

-- The journal of what the assistant changed. change is the whole record; kept is the
-- number of bytes of the contents in files to which it refers.
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

-- People who ask to be admitted on channels, or were admitted. guest is the whole record.
CREATE TABLE guest (
  n       INTEGER PRIMARY KEY,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  id      TEXT NOT NULL,
  guest   TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, channel, account, id, guest)) STORED,
  UNIQUE (channel, account, id)
) STRICT;

-- Calls of nodes with a key, so that one is not made again. invocation is the whole record.
CREATE TABLE invocation (
  n          INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE,
  sent       INTEGER NOT NULL,
  invocation TEXT NOT NULL,
  crc        INTEGER NOT NULL AS (crc32c(n, key, sent, invocation)) STORED
) STRICT;
CREATE INDEX invocation_sent ON invocation (sent);
