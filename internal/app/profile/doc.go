// Package profile makes the profiles of runs from the configuration.
//
// A [Factory] lives as long as the engine. It holds what outlives a change of the configuration:
// commands in the background, MCP servers, coding agents, browsers, and the indexes of notes.
// From each state of the configuration it makes a [Generation]: the models, tools, rules, routes
// and channels of plug-ins that follow from it. A Generation does not change. [Current] is the
// one in force; parts that keep a function for longer than a change call its methods.
//
// A run gets its profile when it begins. [Generation.Ready] makes it in the transaction that
// accepts the message, if that needs no I/O; otherwise [Generation.Resolve] makes it in the lane
// of the run. Both call the same function, so that the profile is the same. It has the number of
// its Generation: a run cannot begin with a profile of a configuration that was replaced in the
// meantime, and a run that has begun keeps its profile to its end.
//
// A new configuration takes effect in two steps. [Factory.New] makes everything and may fail;
// nothing that runs use has changed then, although missing workspaces were made. [Current.Store]
// and [Generation.UseServers] put it in force and cannot fail. Package app decides when this
// happens, and applies channels and services.
//
// What a key means is decided in package settings, which model answers in package model; here
// they are put together for one agent, one session and one run.
package profile
