// Package shell reads a shell command and says what it would do: its simple
// commands, one [Segment] each, and a [Verdict].
//
// The verdict is ReadOnly only when every segment is known to read and do
// nothing else; Deny for a few plans that nobody wants to have run; else Ask.
// What cannot be decided is Ask. Wrappers (sudo, env, xargs, sh -c, find
// -exec …), assignments, aliases and functions of the same command are
// followed as far as they can be without running anything.
//
// It is a judgement for asking people well, not a wall: what an allowed
// program does is beyond it. The wall is the sandbox.
package shell
