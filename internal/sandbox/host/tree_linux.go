package host

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// tree is the processes of one program.
type tree struct {
	mark    string // NAME=value in their environment
	session int    // id of the program's session
}

func (t *tree) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

func (t *tree) started(p *os.Process) { t.session = p.Pid }

func (t *tree) close() {}

func (t *tree) term() { t.signal(syscall.SIGTERM) }

// killAll kills until nobody is left: a process may have forked between the
// look and the signal.
func (t *tree) killAll() {
	for range 100 {
		if t.signal(syscall.SIGKILL) == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// reap ends what the program left behind, and returns how many processes that
// were.
func (t *tree) reap(grace time.Duration) int {
	left := t.signal(syscall.SIGTERM)
	if left == 0 {
		return 0
	}
	end := time.Now().Add(grace)
	for wait := time.Millisecond; time.Now().Before(end); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if len(t.alive()) == 0 {
			return left
		}
	}
	t.killAll()
	return left
}

// signal signals every process of the tree and returns how many there are.
func (t *tree) signal(s syscall.Signal) int {
	pids := t.alive()
	for _, pid := range pids {
		syscall.Kill(pid, s)
	}
	return len(pids)
}

// alive returns the processes that belong to the session or carry the mark.
// The program itself is counted until it is waited for.
func (t *tree) alive() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if t.has(name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has reports whether the process is one of the tree and not a zombie.
func (t *tree) has(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	// pid (name) state ppid pgrp session …; the name may hold anything
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 4 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return false
	}
	if session, _ := strconv.Atoi(string(f[3])); session == t.session {
		return true
	}
	env, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == t.mark {
			return true
		}
	}
	return false
}
