package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tool"
)

// job is a resolved call.
type job struct {
	plan    sandbox.Plan
	timeout time.Duration
}

// Plan judges a call and resolves what it would run.
func (t *execTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Plan{}, fmt.Errorf("arguments: %w", err)
	}
	mode, err := t.Mode.hardened(a)
	if err != nil {
		return tool.Plan{}, err
	}
	if err := t.checkHost(a); err != nil {
		return tool.Plan{}, err
	}
	dir, inside, err := workdir(c.Dir, a.Workdir)
	if err != nil {
		return tool.Plan{}, err
	}
	if t.Shell == "" {
		return tool.Plan{}, errors.New("no POSIX shell was found; on Windows install Git for Windows")
	}
	own, err := callEnv(a.Env)
	if err != nil {
		return tool.Plan{}, err
	}
	home, _ := os.UserHomeDir() // without one, ~ is still somebody's
	sp := shell.Judge{Deny: t.deny, Dir: dir, Workspace: c.Dir, Home: home}.Parse(a.Command)
	p := t.judge(sp, mode, inside, len(own) > 0)
	env := environment(t.Environ, t.PathPrepend)
	if p.Effect == tool.Reads {
		env = append(env, readOnlyEnv()...)
	}
	j := job{
		plan: sandbox.Plan{
			Path: t.Shell,
			Argv: []string{filepath.Base(t.Shell), "-c", a.Command},
			Dir:  dir,
			Env:  append(env, own...),
		},
		timeout: t.timeout(a.Timeout),
	}
	p.Value = j
	p.Text = text(sp, j, own)
	// What a person decides on: not the variables that every command gets.
	shown := j.plan
	shown.Env = slices.Concat(own, env[:min(1, len(env))])
	p.Hash = shown.Hash()
	return p, nil
}

// judge applies the mode to the verdict.
func (t *execTool) judge(sp shell.Plan, mode Mode, inside, env bool) tool.Plan {
	reasons := sp.Reasons
	verdict := sp.Verdict
	if verdict == shell.ReadOnly && !inside {
		verdict, reasons = shell.Ask, []string{"the working directory is outside the workspace"}
	}
	if verdict == shell.ReadOnly && env {
		verdict, reasons = shell.Ask, []string{"it sets environment variables"}
	}
	p := tool.Plan{Effect: tool.Acts, Reason: strings.Join(reasons, "; ")}
	if verdict == shell.ReadOnly {
		p.Effect = tool.Reads
	}
	switch {
	case verdict == shell.Deny:
		p.Deny = "This command is never run: " + p.Reason + "."
	case mode == ModeDeny:
		p.Deny = "Running commands is switched off (tools.exec.mode is deny)."
	case ownCommand(sp) != "":
		p.Deny = ownCommand(sp)
	case mode == ModeFull || verdict == shell.ReadOnly && mode != ModeAlways:
	case mode == ModeAllowlist:
		p.Deny = "Only commands that are known to read and do nothing else are run here: " + p.Reason + "."
	case !t.Interactive:
		p.Deny = "This command needs a person's approval, and nobody can be asked here: " + p.Reason +
			". (The person can start Chela with --yes to run commands without asking.)"
	default:
		p.Ask = true
		if p.Reason == "" {
			p.Reason = "every command is to be asked about"
		}
	}
	return p
}

// checkHost refuses a place to run that is not the broker's.
func (t *execTool) checkHost(a args) error {
	confined := t.Broker.Name() != "host"
	host := a.Host
	if a.Sandbox {
		host = "sandbox"
	}
	switch host {
	case "", "auto":
	case "sandbox":
		if !confined {
			return errors.New("host sandbox: commands are not sandboxed here")
		}
	case "gateway", "local":
		if confined {
			return errors.New("host gateway: commands run in the sandbox here")
		}
	default:
		return fmt.Errorf("host %q: no such node", host)
	}
	return nil
}

// workdir returns the absolute working directory, and whether it is inside the
// workspace.
func workdir(workspace, dir string) (string, bool, error) {
	abs := workspace
	if dir != "" {
		if home, err := os.UserHomeDir(); err == nil && (dir == "~" || strings.HasPrefix(dir, "~/")) {
			dir = home + dir[1:]
		}
		if abs = filepath.Clean(dir); !filepath.IsAbs(dir) {
			abs = filepath.Join(workspace, dir)
		}
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return "", false, fmt.Errorf("working directory %q does not exist", abs)
	}
	if abs == workspace {
		return abs, true, nil
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return "", false, fmt.Errorf("workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", false, fmt.Errorf("working directory: %w", err)
	}
	rel, err := filepath.Rel(root, real)
	return abs, err == nil && filepath.IsLocal(rel), nil
}

// timeout returns how long a call may run that asks for so many seconds.
func (t *execTool) timeout(seconds float64) time.Duration {
	if seconds <= 0 {
		return min(t.Timeout, t.MaxTimeout)
	}
	return time.Duration(min(seconds*float64(time.Second), float64(t.MaxTimeout)))
}

// ownCommand says why a command that steers Chela itself is not run by it.
func ownCommand(sp shell.Plan) string {
	if strings.HasPrefix(strings.TrimSpace(sp.Command), "/approve") {
		return "Approvals are given by a person, in the chat or with the command line; they cannot be given through exec."
	}
	for _, s := range sp.Segments {
		if len(s.Argv) < 3 {
			continue
		}
		name := filepath.Base(s.Argv[0].Text)
		if (name == "chela" || name == "openclaw") && s.Argv[1].Text == "channels" && s.Argv[2].Text == "login" {
			return "Signing in to a channel needs a person at a terminal: ask them to run `" + name + " channels login` themselves."
		}
	}
	return ""
}

// text is the plan for people: whole.
func text(sp shell.Plan, j job, own []string) string {
	var b strings.Builder
	b.WriteString(sp.Text())
	fmt.Fprintf(&b, "in %s, for at most %v", shell.Escape(j.plan.Dir), j.timeout)
	for _, v := range own {
		b.WriteString("\nwith " + shell.Escape(v))
	}
	return b.String()
}
