-- Pages that every turn wrote to. What of a session's runs is asked all the time
-- is which are in progress: another index knows those. And a run is found in the
-- items that it took by its id, which is that of the first of them: the index is
-- for the others.
DROP INDEX run_session;
DROP INDEX item_run;
CREATE INDEX item_run ON item (run) WHERE run <> '' AND run <> id;
