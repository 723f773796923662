// Package history keeps the journal of what the assistant changed (package journal): it
// records changes, takes them back, restores earlier versions, and says where a line of a
// file comes from.
//
// # Recording
//
// [History] is the recorder of the file tools. While a change is in progress its target is
// locked, so that the content before it is what the tool replaces. A target that differs
// from the last record was changed outside of tools, which is recorded first.
//
// Commands change files without a tool that says so. [History.Started] compares the files of
// the workspace with the last records before a command and after it. The content of all
// these files is kept before, because a program cannot be stopped at each change: a copy
// costs the size of the workspace once, and then what changes. An overlay, whose upper layer
// would be the changes, was not chosen: servers in the background and the person would not
// see the changes of commands until they end, and applying it is not atomic either. Reflinks
// are missing on the most common file system.
//
// # Undo
//
// [History.Preview] shows what would be taken back; [History.Apply] does it, for the plan that
// was shown last and as long as it is the same. One synced commit records all steps, then
// each step is made: a file is replaced atomically, a job is changed in the commit that
// closes the step. [History.Recover] goes on with the steps that a killed process left, or
// closes them if the target was changed meanwhile.
package history
