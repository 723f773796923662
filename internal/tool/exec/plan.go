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

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tool"
)

// job is a resolved call.
type job struct {
	plan    sandbox.Plan
	text    string        // the command as it was given
	timeout time.Duration // 0: none
	tty     bool          // in a terminal

	background bool          // from the beginning
	yield      time.Duration // after which it goes to the background; 0: never
	note       string        // what is not as it was asked for
	shell      sandbox.Plan  // what runs the command when the plan is a program that the system does not know

	used []allowlist.Use // entries that it is due to
}

// Plan judges a call and resolves what it would run.
func (t *execTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Plan{}, fmt.Errorf("arguments: %w", err)
	}
	rules, err := t.rules(c.Agent)
	if err != nil {
		return tool.Plan{}, err
	}
	policy, err := hardened(rules.Policy, a)
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
	judge := shell.Judge{Deny: t.deny, Dir: dir, Workspace: c.Dir, Home: home}
	sp := judge.Parse(a.Command)
	env, path := slices.Clip(t.env), strings.TrimPrefix(t.env[0], "PATH=")
	p := t.judge(question{sp, judge, rules, policy, inside, own, path})
	j := t.job(a, c)
	if j.background && p.Effect == tool.Reads {
		p.Effect = tool.Acts // it leaves something running
	}
	if p.Effect == tool.Reads {
		env = append(env, readOnlyEnv()...)
	}
	if j.tty {
		env = append(env, "TERM=xterm-256color") // in place of ours
	}
	command, argv := a.Command, sp.Program
	if p.match.Command != "" {
		command, argv = p.match.Command, judge.Parse(p.match.Command).Program
	}
	j.plan = sandbox.Plan{Path: t.Shell, Argv: []string{filepath.Base(t.Shell), "-c", command}, Dir: dir}
	if j.direct(argv, path) {
		env = append(env, "PWD="+dir) // which a shell sets
	}
	j.plan.Env = append(env, own...)
	j.used = p.match.Used
	p.Value, p.Text = j, text(sp, j, own)
	if err := j.bind(&p.Plan, sp, slices.Concat(own, t.env[:1])); err != nil {
		return tool.Plan{}, err
	}
	return p.Plan, nil
}

// direct has a program that is found run by itself and not by a shell.
func (j *job) direct(argv []string, path string) bool {
	if len(argv) == 0 {
		return false
	}
	file := program(argv[0], path)
	if file == "" {
		return false
	}
	j.shell = j.plan
	j.plan.Path, j.plan.Argv = file, argv
	return true
}

// bind binds a plan to what a person decides on: what runs, with these variables
// and not those that every command gets, and the files that it is made of.
func (j *job) bind(p *tool.Plan, sp shell.Plan, env []string) error {
	shown := j.plan
	shown.Env = env
	if j.tty || j.background { // it can be typed into, which is more
		shown.Argv = append(slices.Clone(shown.Argv), "with input")
	}
	var files []source
	if p.Ask {
		var err error
		if shown.Dir, err = filepath.EvalSymlinks(j.plan.Dir); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
		files = sources(sp, j.plan.Dir)
		for _, f := range files {
			p.Text += fmt.Sprintf("\nwith %s as it is now (sha256 %.12s)", shell.Escape(f.path), f.sum)
		}
	}
	p.Hash = bound(shown.Hash(), files)
	return nil
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

// maxYield bounds how long a call waits for a command that may go on without
// it.
const maxYield = 2 * time.Minute

// job returns how a call's command is run.
func (t *execTool) job(a args, c tool.Call) job {
	j := job{text: a.Command, tty: a.PTY}
	if t.Commands == nil || c.Offered != nil && !c.Offered("process") {
		if a.Background || a.PTY {
			j.tty = false
			j.note = "without the tool process commands run in the foreground, without a terminal"
		}
		j.timeout = t.timeout(a.Timeout, t.Timeout)
		return j
	}
	j.background = a.Background
	j.yield = t.Yield
	if a.Yield != nil {
		j.yield = time.Duration(max(0, min(*a.Yield, float64(maxYield.Milliseconds()))) * float64(time.Millisecond))
		j.background = j.background || j.yield == 0
	}
	if a.Timeout == nil || *a.Timeout != 0 {
		j.timeout = t.timeout(a.Timeout, t.MaxTimeout)
	}
	return j
}

// timeout returns how long a call may run that asks for so many seconds.
func (t *execTool) timeout(seconds *float64, otherwise time.Duration) time.Duration {
	if seconds == nil || *seconds <= 0 {
		return min(otherwise, t.MaxTimeout)
	}
	return time.Duration(min(*seconds*float64(time.Second), float64(t.MaxTimeout)))
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
	fmt.Fprintf(&b, "in %s, ", shell.Escape(j.plan.Dir))
	if j.timeout > 0 {
		fmt.Fprintf(&b, "for at most %s", figure.Span(j.timeout))
	} else {
		b.WriteString("without a time limit")
	}
	switch {
	case j.tty:
		b.WriteString(", in a terminal that can be typed into while it runs")
	case j.background:
		b.WriteString(", in the background; it can be written to while it runs")
	}
	for _, v := range own {
		b.WriteString("\nwith " + shell.Escape(v))
	}
	return b.String()
}
