-- What became of a call. The update writes all rows anew, so that each holds
-- all columns.

ALTER TABLE call ADD COLUMN who TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN ran TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN decision TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN took INTEGER NOT NULL DEFAULT 0;
UPDATE call SET took = 0;
