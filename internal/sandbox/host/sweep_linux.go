package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killTime is how long a process may take to die of KILL: one that waits for a
// disk dies when the disk has answered, and on a busy machine none dies before
// it is its turn.
const killTime = 2 * time.Second

// Sweep ends the commands that processes which are no more left running under
// the mark, with their descendants: TERM, grace, KILL. It returns how many
// processes it found. The end of ctx cuts the grace short. An empty mark finds
// nothing.
//
// It touches no process of another user, none that another mark or a living
// process stands behind, and not those that this process descends from.
func Sweep(ctx context.Context, log *slog.Logger, mark string) (int, error) {
	if mark == "" {
		return 0, nil
	}
	s := sweep{log: log, prefix: markName + "=" + mark + ".", found: map[proc]*os.Process{}}
	defer s.release()
	if !s.signal(syscall.SIGTERM) {
		return 0, nil
	}
	grace, cancel := context.WithTimeout(ctx, defaultGrace)
	defer cancel()
	for wait := time.Millisecond; grace.Err() == nil; wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-grace.Done():
		}
		if s.gone(syscall.SIGTERM) { // one that was forked meanwhile gets its TERM
			return len(s.found), nil
		}
	}
	for end := time.Now().Add(killTime); !s.gone(syscall.SIGKILL); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return len(s.found), errors.New("sweep: a command of a process that was killed does not die")
		}
	}
	return len(s.found), nil
}

// sweep is the work of Sweep.
type sweep struct {
	log    *slog.Logger
	prefix string               // how the mark begins
	found  map[proc]*os.Process // by what they were when they were found
}

// gone signals who is left, and reports whether nobody is. It looks twice: one
// that forks and ends at once can be missed by one look.
func (s *sweep) gone(sig syscall.Signal) bool {
	for range 2 {
		if s.signal(sig) {
			return false
		}
	}
	return true
}

// signal sends a signal to all that run, TERM once, and reports whether there
// are any.
func (s *sweep) signal(sig syscall.Signal) bool {
	orphans := s.orphans()
	for _, p := range orphans {
		if handle, ok := s.found[p.identity()]; ok {
			if sig == syscall.SIGKILL {
				_ = handle.Signal(sig) // it may be gone
			}
			continue
		}
		s.begin(p, sig)
	}
	return len(orphans) > 0
}

// begin sends a process that was not seen before its first signal. The handle
// holds the process and not its id, which may be another's by the time of a
// second signal.
func (s *sweep) begin(p proc, sig syscall.Signal) {
	handle, err := os.FindProcess(p.id)
	if err != nil {
		return
	}
	if now, ok := look(p.id); !ok || now.began != p.began {
		_ = handle.Release() // there is nothing to do about it
		return
	}
	s.found[p.identity()] = handle
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.id))
	s.log.Warn("a command outlived the process that ran it; ending it", "pid", p.id, "program", strings.TrimSpace(string(name)))
	_ = handle.Signal(sig) // it may be gone
}

func (s *sweep) release() {
	for _, handle := range s.found {
		_ = handle.Release() // there is nothing to do about it
	}
}

// identity is the process without its parent, which changes when that dies.
func (p proc) identity() proc { return proc{id: p.id, began: p.began} }

// orphans returns the processes that run under the mark for an owner that does
// not, with their descendants.
func (s *sweep) orphans() []proc {
	pids := processes()
	marked := map[int]bool{}
	buf := new(bytes.Buffer)
	for _, pid := range pids {
		if own(pid) && s.orphan(pid, buf) {
			marked[pid] = true
		}
	}
	if len(marked)+len(s.found) == 0 {
		return nil
	}
	all := map[int]proc{}
	for _, pid := range pids {
		if p, ok := look(pid); ok {
			all[pid] = p
		}
	}
	// We, and those that we descend from, are not ended even under the mark:
	// a command may have started us.
	for pid := os.Getpid(); pid != 0; {
		parent := all[pid].parent
		delete(all, pid)
		pid = parent
	}
	var ours, others []proc
	for pid, p := range all {
		_, found := s.found[p.identity()] // it may have lost its parent since, and with it the sign
		switch {
		case marked[pid] || found:
			ours = append(ours, p)
		case own(pid):
			others = append(others, p)
		}
	}
	// The oldest first: a shell whose command was ended before itself would go
	// on to its next one.
	slices.SortFunc(ours, func(a, b proc) int { return cmp.Or(cmp.Compare(a.began, b.began), a.id-b.id) })
	return family(ours, others)
}

// orphan reports whether a process has the mark in its environment, with the
// name of a process that is no more.
func (s *sweep) orphan(pid int, buf *bytes.Buffer) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	buf.Reset()
	if _, err := io.Copy(buf, f); err != nil {
		return false
	}
	for v := range bytes.SplitSeq(buf.Bytes(), []byte{0}) {
		if rest, ok := bytes.CutPrefix(v, []byte(s.prefix)); ok {
			who, _, ok := strings.Cut(string(rest), ".")
			return ok && !lives(who)
		}
	}
	return false
}

// self names this process as no other process before or after it is named, as
// long as the system runs.
func self() string {
	p, _ := look(os.Getpid())
	return fmt.Sprintf("%d-%d", p.id, p.began)
}

// lives reports whether the process with the name runs. What is no name of a
// process is taken for one that lives.
func lives(name string) bool {
	var id int
	var began uint64
	if _, err := fmt.Sscanf(name, "%d-%d", &id, &began); err != nil {
		return true
	}
	p, ok := look(id)
	return ok && p.began == began
}

// own reports whether a process is this user's.
func own(pid int) bool {
	var st syscall.Stat_t
	return syscall.Stat(filepath.Join("/proc", fmt.Sprint(pid)), &st) == nil && int(st.Uid) == os.Geteuid()
}
