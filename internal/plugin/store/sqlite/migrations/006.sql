-- The outcome of a call. The UPDATE rewrites all rows, so that each has all
-- columns. The outcome of earlier calls was not recorded.

ALTER TABLE call ADD COLUMN who TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN ran TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN decision TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN took INTEGER NOT NULL DEFAULT 0;
UPDATE call SET outcome = CASE state WHEN 'closed' THEN 'not recorded' ELSE '' END;
