// Package prompt builds the system prompt.
//
// [Build] is pure: the same [Input] gives the same blocks. The parts that do not
// change from turn to turn (identity, tools, rules, workspace files) are in the
// first block, which ends with the cache marker. The parts that change (date,
// notices, runtime facts) are in the second one. Building never fails: a missing
// or unreadable file is mentioned in the prompt.
//
// A [Workspace] is the agent's directory. Its bootstrap files are checked each
// turn, so that an edit takes effect immediately, and cached while they do not
// change. Private files are not read, not even through links. [Seed] writes the
// files of a new workspace and overwrites nothing.
package prompt
