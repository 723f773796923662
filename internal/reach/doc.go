// Package reach is what tools may reach in the file system: one rule for all of
// them that name files, whatever they then do with one.
//
// A [Rule] keeps a tool in the agent's workspace, or lets it out. The workspace
// is opened as an os.Root and everything is done through it, so that no path,
// absolute or with "..", no symbolic link and no race leads out. Hard links,
// which a root cannot see, are refused: a file with a second name may have it
// anywhere. Only regular files are opened; a pipe or a device is named, not
// waited for.
//
// Outside, a file is opened through the folder that holds it: that folder is
// found without following links, and nothing leads out of it. [Rule.Guard] has a
// tool say before where it goes, and a person is asked about what changes
// something there or is private.
package reach
