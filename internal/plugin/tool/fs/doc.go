// Package fs implements the file tools read, write, edit, apply_patch, ls,
// find and grep. They work in the agent's workspace, or on other files if
// their [pathpolicy.Rule] allows it.
//
// A tool's memory use is bounded by the size of its result, not by the size
// of the file.
package fs
