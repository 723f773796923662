-- Indexes that every turn wrote to, each in a page of its own, for what is asked
-- once a day or never of more than a few rows.
DROP INDEX item_final;
DROP INDEX run_started;
DROP INDEX usage_run;
