// Package journal defines the record of what the assistant changed: files, the
// configuration and scheduled jobs, with the content before and after each [Change]. One
// record serves undo, the history of the workspace, and the question who wrote a line.
//
// # Recording
//
// A change is recorded in two commits. The first one, which is synced, precedes the change
// and holds both versions; the second one says that the change was made. If the process is
// killed between them, the present content tells which of the versions is in force. A
// change that a transaction makes, such as that of a job, is recorded in that transaction.
//
// Contents are files of package media, to which the rows refer; the content of a job is in
// its row. A content larger than [MaxContent], or with a known secret, is not kept, so that
// the change that replaced it cannot be undone.
//
// # Undo
//
// [Steps] folds changes to one step for each target, which leads from the newest version to
// the one before the oldest change. A step is possible if no other change is in between and
// if the target is still as the newest change left it. Steps are recorded as changes, too,
// with the changes that they undo, so that an undo can be undone.
//
// Changes are grouped by [Change.Unit]: all changes of a run and of the subagents that it
// started are one unit, and so is each change outside of runs. A unit is what a person
// takes back with "undo what you just did".
package journal
