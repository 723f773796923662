// Package shell parses a shell command and predicts what it would do. The
// result is a list of simple commands, one [Segment] each, and a [Verdict].
//
// The verdict is ReadOnly only if every segment is known to read and do
// nothing else. It is Deny for a few commands that must never run, and Ask
// for everything else, including whatever cannot be decided. Wrappers (sudo,
// env, xargs, sh -c, find -exec …), assignments, aliases and functions within
// the command are followed as far as possible without running anything.
//
// The verdict helps to ask people the right questions. It is not a security
// boundary: package shell cannot predict what an allowed program does. The
// sandbox is the boundary.
package shell
