// Package shell parses a shell command and says what it would run. The
// result is a [Plan]: a list of simple commands, one [Segment] each. It says
// whether the command must never run, and whether all its programs are in a
// strict table of programs and options that only read.
//
// Wrappers (sudo, env, sh -c, find -exec …) are unwrapped without running
// anything. Variables, aliases, functions and pipes into a shell are not
// followed; [Plan.Unclear] reports what they could hide.
//
// A plan is what people are shown, and what is matched against a list of
// allowed programs ([Script]). It does not prove that a command is harmless:
// package shell cannot predict what an allowed program does. The sandbox is
// the boundary. Where there is none, only a single program of the table that
// needs no shell ([Plan.Direct]) may run without a person's approval. So this
// table is strict.
package shell
