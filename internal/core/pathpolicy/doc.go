// Package pathpolicy decides which files the tools may use. The same rule
// applies to every tool that takes a path, whatever the tool does with the
// file.
//
// A [Rule] confines a tool to the agent's workspace or lets it use files
// outside. The workspace is opened as an os.Root and all access goes through
// it, so no absolute path, no "..", no symbolic link and no race leads out.
// Hard links, which a root cannot detect, are refused: the other name may be
// anywhere. Only regular files are opened; a pipe or a device is an error and
// never blocks.
//
// A file outside the workspace is opened through its parent folder: that
// folder is opened without following links, and nothing leads out of it.
// [Rule.Guard] makes a tool resolve its paths in advance, and a person is
// asked before files outside are changed or private files are read.
package pathpolicy
