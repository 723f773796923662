// Package host runs plans as ordinary processes of this machine. It does not
// confine them, but it keeps track of them: when a program ends or its time
// is up, all remaining descendants are ended too.
//
// On Linux, descendants are found in /proc by four criteria: the program's
// session, a mark in the environment, a descriptor that all of them inherit,
// and a parent that is one of them. This finds a process that forked twice,
// left the session and ignores TERM. One that starts others and ends while
// they are looked for, or executes a program at that moment, is found too: the
// search goes on until no process was started meanwhile. It does not find one
// that also cleared its environment and closed all descriptors before its
// parent ended; only a sandbox can contain that. On other Unix systems the
// process group is ended.
// On Windows a program runs in a job object, which limits the number of
// processes and what they can do to the desktop, and is ended. This has not
// been verified on Windows.
//
// If this process is the first in a container, orphaned processes become its
// children. It waits for those it ended, so that they do not remain as
// zombies.
//
// On Unix a program may have its own terminal. A process that still holds the
// terminal when the program has ended is ended too.
//
// If this process itself is killed, it cannot end its commands. On Windows
// the job objects die with it. On Linux the mark names the owner and the
// process that ran the command, and at the next start [Sweep] ends the
// processes whose mark names this owner and a process that no longer exists.
// A process that cleared its environment and lost its parent is not found.
// The kernel could end the program together with this process (Pdeathsig),
// but not the program's descendants, and those found through their parent
// would be lost. Other Unix systems do not expose the environment of their
// shells, so Sweep finds nothing there.
package host
