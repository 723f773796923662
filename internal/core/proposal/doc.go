// Package proposal keeps proposals of skills: what an assistant would like to write to
// the skills of its workspace, until a person accepts it.
//
// A proposal is a folder in the state directory, which no tool of a model can name. Its
// files are the whole new skill. It is bound to the hash of the skill that it replaces:
// if that has changed, it cannot be applied and is stale. A proposal in which the scanner
// finds something critical is quarantined. To apply one, the old folder is moved aside
// within the workspace, and the new one takes its place; to roll back, the old folder
// itself returns. A process that is killed leaves a state that the next operation
// completes or undoes.
package proposal
