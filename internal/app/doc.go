// Package app assembles the parts into an engine: [New] makes everything in
// order, from top to bottom, and [Engine.Close] stops it in the opposite order.
// [Build] returns what the command line calls: its Start makes the engine of a
// state directory in this process, or connects to the process that owns the
// directory.
//
// The parts of a build are listed in package standard. A configuration is turned
// into profiles for runs by package profile. When the configuration changes, the
// engine first makes everything again, which may fail, then replaces the current
// values, which cannot fail, and then reconciles channels and services.
package app
