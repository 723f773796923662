//go:build unix && !linux

package host

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// tree is a program and its descendants: its process group.
type tree struct {
	mark  string
	tty   bool // the standard input is their terminal
	group int
}

func (t *tree) run(cmd *exec.Cmd, _ *stdio.Streams) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: t.tty}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.group = cmd.Process.Pid
	return nil
}

func (t *tree) term() { syscall.Kill(-t.group, syscall.SIGTERM) }

func (t *tree) kill() { syscall.Kill(-t.group, syscall.SIGKILL) }

// reap ends the remaining processes of the group. Their number is unknown on
// this system; it returns 1 if there were any.
func (t *tree) reap(grace time.Duration) int {
	if syscall.Kill(-t.group, syscall.SIGTERM) != nil {
		return 0
	}
	end := time.Now().Add(grace)
	for wait := time.Millisecond; time.Now().Before(end); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if syscall.Kill(-t.group, 0) != nil {
			return 1
		}
	}
	t.kill()
	return 1
}
