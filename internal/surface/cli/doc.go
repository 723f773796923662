// Package cli implements the commands of the chela binary.
//
// A command that needs the assistant gets an engine from [App.Start] and talks
// to it through package client, like any other client. It does not know
// whether the engine runs in this process or in another process that owns the
// state directory. Commands that must work without an engine (config,
// models set, doctor, backup) use the configuration and [App] only; after a
// configuration change they notify the running gateway, if there is one.
//
// Results go to standard output, everything else to standard error. The exit
// code is 0 on success, 1 on failure, 2 for an invalid command line, and 130
// after an interrupt.
package cli
