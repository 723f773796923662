// Package ansi is text on terminals: [Clean] takes out of foreign text what a
// terminal would obey, [Style] colours, [Wrap], [Truncate] and [Width] measure
// in columns.
//
// Whatever comes from a model, a tool or another person passes Clean before it
// is styled; after that, the only escape sequences are our own.
package ansi
