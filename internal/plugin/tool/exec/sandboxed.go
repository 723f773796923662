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
	only    bool           // the command runs in the cage, because its session allows nothing else
}

// kept reports whether the command runs in a sandbox, whatever it needs.
func (b box) kept() bool { return b.cage != nil || b.only }

// leaves reports whether a call asks for the host.
func (a args) leaves() bool { return a.Elevated || a.Host == "gateway" || a.Host == "local" }

// sandboxed returns how the sandbox of a session affects a call, or why the call
// is refused. only says that the session allows no command outside of a sandbox.
func (t *execTool) sandboxed(ctx context.Context, s *sandbox.Session, a args, only bool) (b box, refusal string) {
	switch {
	case only && a.leaves():
		return box{}, "The commands of this session may not leave the sandbox: /exec host=sandbox is set."
	case only && s == nil:
		return t.onlyCaged(ctx)
	case s == nil:
		return box{}, ""
	case only:
	case s.Elevated.Leaves(a.leaves()):
		return box{session: s, leaves: true}, ""
	case a.leaves():
		return box{}, "This session is sandboxed, and commands may not leave the sandbox: " + s.Elevated.Reason + "."
	}
	backend := t.Backends[s.Backend]
	if backend == nil {
		return box{}, "This session is sandboxed, but the sandbox backend " + s.Backend +
			" is not available here. Commands are not run without it."
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

// onlyCaged is sandboxed for a session without a sandbox of its own, whose commands run in the
// cage only.
func (t *execTool) onlyCaged(ctx context.Context) (b box, refusal string) {
	if t.Cage == nil {
		return box{},
			"The commands of this session run in the sandbox only (/exec host=sandbox), but commands are not sandboxed here."
	}
	if level := t.Cage.Level(ctx); !level.Complete {
		return box{},
			"The commands of this session run in the sandbox only (/exec host=sandbox), but the sandbox does not work here: " +
				level.Reason + "."
	}
	return box{only: true}, ""
}

// policy returns the policy for a command. One that leaves the sandbox needs
// approval, unless the sender has full elevated rights and nothing else asks.
func (b box) policy(p allowlist.Policy) allowlist.Policy {
	full := b.session != nil && b.session.Elevated.Level == "full" &&
		p.Security == allowlist.Full && p.Ask == allowlist.Off
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
	j.plan = sandbox.Plan{Path: "/bin/sh", Argv: []string{"sh", "-lc", command},
		Dir: cmp.Or(scratch, filepath.ToSlash(dir), s.Workdir), Session: s}
}
