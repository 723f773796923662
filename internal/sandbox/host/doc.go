// Package host runs plans as ordinary processes of this machine: no
// confinement, but a firm hold. When a program ends or its time is up,
// everything that it left running is ended too.
//
// On Linux its descendants are found in /proc by four signs: the program's
// session, a mark in the environment, a descriptor that all of them inherit,
// and a parent that is one of them. A process that forked twice, left the
// session and ignores TERM is found; one that also cleared its environment
// and closed all descriptors before its parent ended is not, and only a
// sandbox holds that. On other Unix systems the process group is ended, on
// Windows a job object.
//
// Where this process is the first of a container, those that lost their parent
// become its children; it waits for the ones that it ended.
//
// A program may have a terminal of its own, on Unix. What still holds it when
// the program has ended is ended like what holds its output.
//
// When this process is killed itself, nobody is there to end anything. On
// Windows the job objects die with it. On Linux the mark names the owner and
// the process that ran the command, and [Sweep] ends at the next start what
// carries the mark of an owner and of a process that is no more; what cleared
// its environment and lost its parent is not found. The kernel could end the
// program together with us (Pdeathsig), but nothing else of its tree, and what
// is found by its parent would be lost with it. Other Unix systems do not show
// the environment of their own shells to anybody, and a sweep finds nothing
// there.
package host
