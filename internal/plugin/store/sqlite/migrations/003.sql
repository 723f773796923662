-- The columns by which lists of sessions are filtered and sorted. The UPDATE
-- rewrites all rows, so that each has all columns.

ALTER TABLE session ADD COLUMN active INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
UPDATE session SET archived = 0,
  active = max(0, coalesce(unixepoch(json_extract(meta, '$.lastInteractionAt'), 'subsec'), 0) * 1000000000);
DROP INDEX session_updated;
CREATE INDEX session_updated ON session (archived, updated);
