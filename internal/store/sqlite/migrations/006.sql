-- What became of a call. The update writes all rows anew, so that each holds
-- all columns; of calls that have ended before, nobody noted it.

ALTER TABLE call ADD COLUMN who TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN ran TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN decision TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN took INTEGER NOT NULL DEFAULT 0;
UPDATE call SET outcome = CASE state WHEN 'closed' THEN 'not recorded' ELSE '' END;
