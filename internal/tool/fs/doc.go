// Package fs is the tools for files: read, write, edit, apply_patch, ls, find
// and grep.
//
// A tool opens the agent's workspace as an os.Root and does everything through
// it, so that no path, absolute or with "..", no symbolic link and no race
// leads out. Hard links, which a root cannot see, are refused: a file with a
// second name may have it anywhere. Only regular files are opened; a pipe or a
// device is named, not waited for.
//
// What a tool holds in memory is bounded by what it gives, not by the file.
package fs
