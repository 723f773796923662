-- Drop pages that every turn wrote to. The frequent query for the runs of a session
-- selects those in progress, which another index covers. The items that a run took
-- are found by the run's id, which equals the id of the first item; the index
-- covers the other items.
DROP INDEX run_session;
DROP INDEX item_run;
CREATE INDEX item_run ON item (run) WHERE run <> '' AND run <> id;
