// Package host runs plans as ordinary processes of this machine: no
// confinement, but a firm hold. A program gets a session of its own, and with
// it a mark in its environment; when it ends or its time is up, everything
// that carries the mark or belongs to the session is ended too, also what
// forked twice, left the session and ignores TERM.
//
// On Linux descendants are found in /proc. Elsewhere on Unix they are found by
// process group; on Windows they are in a job object.
package host
