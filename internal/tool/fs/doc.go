// Package fs is the tools for files: read, write, edit, apply_patch, ls, find
// and grep. They work in the agent's workspace, or where [reach.Rule] lets them.
//
// What a tool holds in memory is bounded by what it gives, not by the file.
package fs
