package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// How long Sweep waits. Tests are more patient.
var (
	graceTime = stdio.DefaultGrace
	// killTime is how long a process may take to die after KILL. A process that
	// waits for a disk dies when the disk has answered, and on a busy machine a
	// process must be scheduled first.
	killTime = 2 * time.Second
)

// Sweep ends the commands under the mark whose owner process no longer
// exists, with their descendants: TERM, grace period, KILL. It returns the
// number of processes found. If ctx ends, the grace period is cut short. With
// an empty mark Sweep does nothing.
//
// Sweep does not touch processes of other users, of other marks, of running
// owners, or the ancestors of this process.
func Sweep(ctx context.Context, log *slog.Logger, mark string) (int, error) {
	if mark == "" {
		return 0, nil
	}
	s := sweep{log: log, prefix: markName + "=" + mark + ".", found: map[proc]*os.Process{}}
	defer s.release()
	if !s.signal(syscall.SIGTERM) {
		return 0, nil
	}
	grace, cancel := context.WithTimeout(ctx, graceTime)
	defer cancel()
	for wait := time.Millisecond; grace.Err() == nil; wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-grace.Done():
		}
		if s.gone(syscall.SIGTERM) { // processes forked in the meantime get TERM too
			return len(s.found), nil
		}
	}
	for end := time.Now().Add(killTime); !s.gone(syscall.SIGKILL); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return len(s.found), errors.New("sweep: a command left by a killed process does not die")
		}
	}
	return len(s.found), nil
}

// sweep is the state of a Sweep.
type sweep struct {
	log    *slog.Logger
	prefix string               // of the marks to look for
	found  map[proc]*os.Process // by identity
}

// gone signals the remaining processes and reports whether there are none. It
// scans twice, because one scan can miss a process that forks and exits.
func (s *sweep) gone(sig syscall.Signal) bool {
	for range 2 {
		if s.signal(sig) {
			return false
		}
	}
	return true
}

// signal sends a signal to all orphans, TERM only once per process, and
// reports whether there are any.
func (s *sweep) signal(sig syscall.Signal) bool {
	var orphans []proc
	for range 3 { // an orphan may have started another one and ended before it was looked at
		newest := newestID()
		if orphans = s.orphans(); len(orphans) > 0 || newestID() == newest {
			break
		}
	}
	for _, p := range orphans {
		if handle, ok := s.found[p.identity()]; ok {
			if sig == syscall.SIGKILL {
				_ = handle.Signal(sig) // the process may have ended
			}
			continue
		}
		s.begin(p, sig)
	}
	return len(orphans) > 0
}

// begin sends the first signal to a new process. The handle refers to the
// process and not to its id, which may have been reused before a second
// signal.
func (s *sweep) begin(p proc, sig syscall.Signal) {
	handle, err := os.FindProcess(p.id)
	if err != nil {
		return
	}
	if now, ok := readProcess(p.id); !ok || now.began != p.began {
		_ = handle.Release() // cleanup only
		return
	}
	s.found[p.identity()] = handle
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.id))
	s.log.Warn("ending a command that outlived the process that ran it", "pid", p.id,
		"program", strings.TrimSpace(string(name)))
	_ = handle.Signal(sig) // the process may have ended
}

func (s *sweep) release() {
	for _, handle := range s.found {
		_ = handle.Release() // cleanup only
	}
}

// identity returns the process without its parent, which changes when the
// parent ends.
func (p proc) identity() proc { return proc{id: p.id, began: p.began} }

// orphans returns the processes with the mark of an owner that no longer
// runs, and their descendants.
func (s *sweep) orphans() []proc {
	pids := processes()
	marked := map[int]bool{}
	for _, pid := range pids {
		if ownedByUser(pid) && s.orphan(pid) {
			marked[pid] = true
		}
	}
	if len(marked)+len(s.found) == 0 {
		return nil
	}
	all := map[int]proc{}
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok {
			all[pid] = p
		}
	}
	// This process and its ancestors are not ended even if they have the mark:
	// a command may have started this process.
	for pid := os.Getpid(); pid != 0; {
		parent := all[pid].parent
		delete(all, pid)
		pid = parent
	}
	var ours, others []proc
	for pid, p := range all {
		_, found := s.found[p.identity()] // its parent may have ended since, and with it the criterion
		switch {
		case marked[pid] || found:
			ours = append(ours, p)
		case ownedByUser(pid):
			others = append(others, p)
		}
	}
	// The oldest first: a shell whose command ends before the shell itself would
	// start its next command.
	slices.SortFunc(ours, func(a, b proc) int { return cmp.Or(cmp.Compare(a.began, b.began), a.id-b.id) })
	return family(ours, others)
}

// orphan reports whether the environment of a process has the mark with the
// name of a process that no longer exists.
func (s *sweep) orphan(pid int) bool {
	for v := range bytes.SplitSeq(environ(pid), []byte{0}) {
		if rest, ok := bytes.CutPrefix(v, []byte(s.prefix)); ok {
			owner, _, ok := strings.Cut(string(rest), ".")
			return ok && !running(owner)
		}
	}
	return false
}

// self returns a name for this process that is unique as long as the system
// runs.
func self() string {
	p, _ := readProcess(os.Getpid())
	return fmt.Sprintf("%d-%d", p.id, p.began)
}

// running reports whether the process with that name runs. Malformed names
// count as running.
func running(name string) bool {
	var id int
	var began uint64
	if _, err := fmt.Sscanf(name, "%d-%d", &id, &began); err != nil {
		return true
	}
	p, ok := readProcess(id)
	return ok && p.began == began
}

// ownedByUser reports whether a process belongs to this user.
func ownedByUser(pid int) bool {
	var st syscall.Stat_t
	return syscall.Stat(filepath.Join("/proc", fmt.Sprint(pid)), &st) == nil && int(st.Uid) == os.Geteuid()
}
