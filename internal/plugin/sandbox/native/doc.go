// Package native confines programs with the means of the kernel alone. On
// Linux each program runs in a cage: its own user, mount, process, network,
// IPC and host name namespaces, a root directory that holds only what the
// program may see, no capabilities, Landlock as a second layer, and a filter
// for system calls.
//
// The program of this process is its own launcher, the first process of a cage:
// see package launch. On other systems there is no cage.
//
// # Network
//
// A cage has a loopback interface of its own and nothing else. The launcher
// listens there and hands each connection to the gateway as a descriptor. The
// gateway speaks the proxy protocols on it and connects to the hosts in
// Rights.Hosts only, through the dialer that checks every address. A
// connection belongs to the cage it came from, so there is no password that
// could leak.
//
// Cages with the same rights, of one session, reach the servers of those that are
// published, through their launchers; see peers. A cage that took part in that is
// not used again.
//
// # Files
//
// Directories of the system are readable, without the private files in them.
// The workspace is readable or writable. In it, files that hold secrets are
// hidden by unreadable ones of their size and time, so that Git takes them for
// unchanged, and names that make other programs run something (hooks and the
// configuration of Git, settings of editors) cannot be changed, nor can files
// that have another name outside of the workspace. The home
// folder is empty but for toolchains. What a program writes there goes to a
// layer of its own that is kept for the workspace.
//
// # Ready cages
//
// Building a cage takes several milliseconds, so one that fits the next command
// is kept ready for five minutes, for each of the rights that commands had, at
// most four: those that look and those that work take turns. It is the cage of
// the last command with these rights, if that was built less than half a minute
// ago and is as it was. Nothing of a command is left for the next one: its
// processes have ended, what it wrote to memory is gone, and each command has
// an IPC namespace and a listener of the proxy of its own. If a command has
// changed a folder in memory in which something is mounted, such as the home
// folder, another cage is built. Private files and protected names are looked
// for again before each command, in the folders that changed: inotify tells
// which, where it can, and otherwise the times of all folders are compared. The
// thread that starts a command is confined before the command is known.
//
// All cages of a workspace have the same layers: the first one mounts them, and
// each gives them to the next. What one command downloads, the next one has,
// whatever its rights.
package native
