// Package app assembles the parts into an engine: [New] makes everything in
// order, top to bottom, and [Engine.Close] stops it in the opposite one.
// [Start] is what the command line calls: it makes the engine of the state
// directory in this process, or, when another process owns the directory,
// dials that one's.
//
// The package decodes the configuration into what each part needs; no part
// sees more of it.
package app
