// Package cli is the commands of chela.
//
// A command that talks to the assistant asks [App.Start] for an engine and
// speaks to it as any client does, through package client: it does not know
// whether the engine is in this process or in another one that owns the state
// directory. Commands that must work without an engine (config, models set,
// doctor, backup) use the configuration and [App] alone; who changes the
// configuration tells the gateway that runs, if one does.
//
// Answers go to standard output, everything else to standard error. The exit
// code is 0 when what was asked is done, 1 when it is not, 2 when the command
// was not understood, 130 after an interrupt.
package cli
