// Package prompt makes the system prompt.
//
// [Build] is pure: the same [Input] gives the same blocks. What stays the same
// from turn to turn (identity, tools, rules, workspace files) is the first
// block and ends with the cache marker; what changes (date, notices, the line
// of runtime facts) is the second one. Building never fails: a file that is
// missing or cannot be read becomes a line that says so.
//
// A [Workspace] is the agent's folder. Its bootstrap files are read each turn,
// so that an edit is in force at once, and kept in memory while they do not
// change. [Seed] writes the files of a new workspace and overwrites nothing.
package prompt
