-- Results of items, which were notes, or a row of their own if an item is a message to
-- another session. Such messages, their runs and their entries say in their origin which
-- step of an exchange they are: their ids are exchange:<36 characters>:<step>.
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
  result    TEXT NOT NULL,
  crc       INTEGER NOT NULL AS (crc32c(seq, id, key, session, kind, principal, inbound, call,
    state, run, note, created, origin, overrides, next, skipped, owner, parent, root, result)) STORED
) STRICT;
INSERT INTO item SELECT seq, id, key, session, kind, principal, inbound, call, state, run, 
  CASE WHEN kind = 'command' AND state = 'done' AND note <> 'session deleted' THEN ''
    WHEN owner <> '' AND state IN ('done', 'cancelled') AND json_valid(note) THEN '' ELSE note END, created,
  origin, overrides, next, skipped, owner, parent, root,
  CASE WHEN kind = 'command' AND state = 'done' AND note NOT IN ('', 'session deleted') THEN json_object('outcome', 'ok', 'text', note)
    WHEN owner <> '' AND state IN ('done', 'cancelled') AND json_valid(note) THEN
      json_object('outcome', note ->> '$.outcome', 'endedAt', note ->> '$.endedAt', 'text', coalesce(note ->> '$.summary', ''))
    ELSE '' END FROM old;
DROP TABLE old;
CREATE INDEX item_waiting ON item (session, seq) WHERE state = 'waiting';
CREATE INDEX item_owed ON item (seq) WHERE state = 'owed';
CREATE INDEX item_background ON item (seq) WHERE owner <> '' OR instr(inbound, '"task":true');
-- The id of a run equals the id of its first item, so that this index needs only the
-- other items.
CREATE INDEX item_run ON item (run) WHERE run <> '' AND run <> id;
UPDATE item SET result = (SELECT json_object('outcome', CASE note ->> '$.status' WHEN 'error' THEN 'error' WHEN 'timeout' THEN 'timeout' ELSE 'ok' END,
    'text', coalesce(note ->> '$.reply', ''), 'error', coalesce(note ->> '$.error', ''))
  FROM item AS r WHERE r.key = substr(item.id, 1, 46) || 'reply')
WHERE id LIKE 'exchange:____________________________________:0' AND kind = 'message' AND instr(origin, '{"kind":"agent"') = 1
  AND EXISTS (SELECT 1 FROM item AS r WHERE r.key = substr(item.id, 1, 46) || 'reply' AND json_valid(r.note));
DELETE FROM item WHERE key LIKE 'exchange:____________________________________:reply' AND kind = 'event' AND instr(origin, '{"kind":"agent"') = 1;
UPDATE item SET origin = json_set(origin, '$.exchange', substr(id, 10, 36), '$.turn', CASE substr(id, 47, 8) WHEN 'announce' THEN -1 ELSE CAST(substr(id, 47) AS INTEGER) END)
WHERE id LIKE 'exchange:____________________________________:%' AND kind = 'message' AND instr(origin, '{"kind":"agent"') = 1;
UPDATE run SET origin = json_set(origin, '$.exchange', substr(id, 10, 36), '$.turn', CASE substr(id, 47, 8) WHEN 'announce' THEN -1 ELSE CAST(substr(id, 47) AS INTEGER) END)
WHERE id LIKE 'exchange:____________________________________:%' AND instr(origin, '{"kind":"agent"') = 1;
UPDATE entry SET origin = json_set(origin, '$.exchange', substr(item, 10, 36), '$.turn', CASE substr(item, 47, 8) WHEN 'announce' THEN -1 ELSE CAST(substr(item, 47) AS INTEGER) END)
WHERE item LIKE 'exchange:____________________________________:%' AND instr(origin, '{"kind":"agent"') = 1;
