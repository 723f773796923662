// Package config reads and edits the configuration file: JSON5 with includes,
// environment variables and known keys. Edits preserve comments.
//
// [Options.Load] returns a [Tree], which is immutable. Each part of the program
// gets its own section as raw JSON from [Tree.Section] and decodes it into its own
// options; the tree knows none of those types. A table ([Keys]) has one row for
// each known key: its kind, its default and a line of documentation.
//
// The layers are, from the lowest to the highest: defaults, the file with its
// includes, environment variables that set a key, overrides of the command line.
//
// A known key of the wrong type is an error. An unknown key is a warning with a
// suggestion; its value is preserved, but a write cannot add one. A ${NAME} whose
// variable is not set is a warning, and its text remains. When the file is
// invalid, the last good configuration is used if there is one; see
// [Tree.Broken].
package config
