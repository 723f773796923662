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
// Commands change files without a tool that says so. [History.Look] compares the files that
// make the assistant with the last record: before the first command of a run, after the end
// of a run with commands, and when somebody asks for the history. It compares sizes and
// times first, so that it costs little if nothing changed.
//
// # Undo
//
// [History.Preview] shows what would be taken back; [History.Apply] does it, for the plan that
// was shown last and as long as it is the same. One synced commit records all steps, then
// each step is made: a file is replaced atomically, a job is changed in the commit that
// closes the step. [History.Recover] goes on with the steps that a killed process left, or
// closes them if the target was changed meanwhile.
package history
