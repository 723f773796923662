// Package config is the configuration file: JSON5, with includes, environment
// variables, known keys, and edits that keep a person's comments.
//
// [Options.Load] gives a [Tree], which is immutable. The parts of the program
// take their own section of it as raw JSON with [Tree.Section] and decode it
// into their own options; the tree knows no type of theirs. What it does know
// of a key is one row of a table ([Keys]): its kind, its default and a line of
// documentation.
//
// Layers, the later wins: default, file with its includes, environment
// variables that stand for a key, overrides of the command line.
//
// A known key of the wrong type is an error. An unknown key is a warning with
// a suggestion; it is kept, and only refused when a write would add it. A
// ${NAME} whose variable is missing is a warning and stays as it is. When the
// file is broken, the last good one is used if there is one, and the tree says
// so ([Tree.Broken]).
package config
