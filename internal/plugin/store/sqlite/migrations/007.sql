-- Drop indexes that every turn wrote to, each in its own page, although rare
-- queries used them or queries with few rows.
DROP INDEX item_final;
DROP INDEX run_started;
DROP INDEX usage_run;
