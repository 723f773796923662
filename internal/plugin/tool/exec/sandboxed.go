package exec

import (
	"cmp"
	"context"
	"path"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// box is how the sandbox of a session affects a call. The zero box is that of a
// session without one.
type box struct {
	session *sandbox.Session
	cage    sandbox.Broker // the command runs in it; nil: it does not run in the session's sandbox
	leaves  bool           // the command runs on the host, because elevated rights apply
}

// leaves reports whether a call asks for the host.
func (a args) leaves() bool { return a.Elevated || a.Host == "gateway" || a.Host == "local" }

// sandboxed returns how the sandbox of a session affects a call, or why the call
// is refused.
func (t *execTool) sandboxed(ctx context.Context, s *sandbox.Session, a args) (b box, refusal string) {
	if s == nil {
		return box{}, ""
	}
	switch {
	case s.Elevated.Leaves(a.leaves()):
		return box{session: s, leaves: true}, ""
	case a.leaves():
		return box{}, "This session is sandboxed, and commands may not leave the sandbox: " + s.Elevated.Reason + "."
	}
	backend := t.Backends[s.Backend]
	if backend == nil {
		return box{}, "This session is sandboxed, but the sandbox backend " + s.Backend + " is not available here. Commands are not run without it."
	}
	level := backend.Level(ctx)
	if !level.Complete {
		text := "This session is sandboxed, but the sandbox does not work here: " + level.Reason + "."
		if level.Hint != "" {
			text += " The person can try: " + level.Hint
		}
		return box{}, text
	}
	return box{session: s, cage: backend}, ""
}

// policy returns the policy for a command. One that leaves the sandbox needs
// approval, unless the sender has full elevated rights and nothing else asks.
func (b box) policy(p allowlist.Policy) allowlist.Policy {
	full := b.session != nil && b.session.Elevated.Level == "full" && p.Security == allowlist.Full && p.Ask == allowlist.Off
	if b.leaves && !full {
		p.Ask = allowlist.Always
	}
	return p
}

// hostPath returns a working directory as a path on the host.
func (b box) hostPath(dir string) string {
	if b.cage != nil {
		if path, ok := b.session.HostPath(dir); ok {
			return path
		}
	}
	return dir
}

// container reports whether the command runs in a container, which has programs
// of its own.
func (b box) container() bool { return b.cage != nil && b.session.Container != "" }

// scratch returns the folder in the container in which the command of a call
// starts, and removes it from the call; "": it starts in the workspace.
func (b box) scratch(a *args) string {
	if !b.container() {
		return ""
	}
	dir := cmp.Or(a.Workdir, b.session.Scratch)
	if !b.session.InScratch(dir) {
		return ""
	}
	a.Workdir = ""
	return path.Clean(dir)
}

// inContainer makes a job run its command in the container of a session, in a
// scratch folder unless that is empty.
func (j *job) inContainer(s *sandbox.Session, command, scratch string) {
	dir, _ := s.ContainerPath(j.plan.Dir) // it is inside
	j.plan = sandbox.Plan{Path: "/bin/sh", Argv: []string{"sh", "-lc", command}, Dir: cmp.Or(scratch, filepath.ToSlash(dir), s.Workdir), Session: s}
}
