package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// job is a resolved call.
type job struct {
	plan    sandbox.Plan
	text    string        // the command as given
	timeout time.Duration // 0: no limit
	tty     bool          // in a terminal

	background bool          // from the start
	yield      time.Duration // time after which it goes to the background; 0: never
	awaited    bool          // it does not go to the background after that time
	note       string        // note about an option that could not be honoured
	shell      sandbox.Plan  // plan that runs the command in a shell if the program has no known format

	used []allowlist.Use // allowlist entries that allow it

	sources  []source       // files whose content was approved
	reads    bool           // it changes no file of the workspace
	searches bool           // it only reads, and comes across private files
	home     bool           // it changes settings in the home folder
	repeat   bool           // in the sandbox: it can be run again from its beginning
	moves    bool           // it may work in other folders than that of the plan
	cage     sandbox.Broker // confines it; nil: it is not confined
}

// Plan judges a call and resolves what it would run.
func (t *execTool) Plan(ctx context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	rules, err := t.rules(c.Agent)
	if err != nil {
		return tool.Plan{}, err
	}
	policy, err := rules.Policy.Narrow(c.Exec.Security, c.Exec.Ask)
	if err != nil {
		return tool.Plan{}, fmt.Errorf("/exec: %w", err)
	}
	if policy, err = policy.Narrow(a.Security, a.Ask); err != nil {
		return tool.Plan{}, err
	}
	if name, ok := t.onNode(a); ok {
		return t.planOnNode(ctx, c, a, name, rules, policy)
	}
	if err := t.checkHost(a); err != nil {
		return tool.Plan{}, err
	}
	a.Host = t.hostOf(c.Exec.Host, a)
	box, refusal := t.sandboxed(ctx, c.Sandbox, a, c.Exec.Host == run.HostSandbox)
	if refusal != "" {
		return tool.Plan{Effect: tool.Acts, Deny: refusal}, nil
	}
	policy = box.policy(policy)
	if c.ReadOnly {
		if box.container() {
			return tool.Plan{Effect: tool.Acts, Deny: "commands in a container could change something"}, nil
		}
		if policy.Security != allowlist.Deny {
			policy.Security = allowlist.Listed
		}
		policy.Ask, policy.Reads, policy.Work = allowlist.Off, true, false
	}
	if box.leaves {
		c.Dir = c.Sandbox.AgentWorkspace
	}
	scratch := box.scratch(&a)
	dir, inside, err := workdir(c.Dir, box.hostPath(startIn(c.Folder, a.Workdir)))
	if err != nil {
		return tool.Plan{}, err
	}
	if t.Shell == "" {
		return tool.Plan{}, errors.New("no POSIX shell was found; on Windows install Git for Windows")
	}
	vars, err := callEnv(a.Env)
	if err != nil {
		return tool.Plan{}, err
	}
	home, _ := os.UserHomeDir() // on failure ~ is still treated as a home folder
	judge := shell.Judge{Deny: t.deny, Dir: dir, Home: home}
	sp := judge.Parse(a.Command)
	if sp.Changes != "" || sp.Unclear {
		if err := pathpolicy.CheckCommand(a.Command); err != nil {
			return tool.Plan{}, err
		}
	}
	env, path := slices.Clip(t.env), strings.TrimPrefix(t.env[0], "PATH=")
	p := t.judge(request{
		shell: sp, home: home, rules: rules, policy: policy, inside: inside, env: vars, own: t.own(), notes: t.notes(c),
		programs: allowlist.Env{Path: filepath.SplitList(path), Workspace: c.Dir, Home: home},
		confined: box.kept() || inside && c.Sandbox == nil && t.Cage != nil && (policy.Security == allowlist.Listed ||
			sp.Unclear) && t.Cage.Level(ctx).Complete,
		leaves: box.leaves || a.leaves(), sandboxed: box.kept(),
	})
	switch {
	case box.kept() && !inside:
		return tool.Plan{}, fmt.Errorf("working directory %s: it is not in the sandbox", shell.Escape(dir))
	case box.kept():
		p.confine = true // whatever was decided
	case box.leaves:
		p.confine = false
	}
	detached := sp.Detached && !box.container() && t.canDetach(c)
	a.Background = a.Background || detached
	j := t.job(a, c)
	if j.background && p.Effect == tool.Reads {
		p.Effect = tool.Acts // it keeps running
	}
	if j.tty {
		env = append(env, "TERM=xterm-256color") // instead of the gateway's
	}
	command, argv := a.Command, sp.Program
	if p.match.Command != "" {
		command, argv = p.match.Command, judge.Parse(p.match.Command).Program
	}
	if detached { // it ends with what it leaves running
		command += "\nwait"
	}
	j.plan = sandbox.Plan{Path: t.Shell, Argv: []string{filepath.Base(t.Shell), "-c", command}, Dir: dir}
	file := p.direct
	switch {
	case box.container():
		j.inContainer(c.Sandbox, a.Command, scratch)
		file, env = "", []string{"CHELA_SHELL=exec", "OPENCLAW_SHELL=exec"}
	case file == "" && len(argv) > 0:
		j.shell, file = j.plan, directProgram(argv[0], path)
	}
	if file != "" {
		j.plan.Path, j.plan.Argv = file, argv
		env = append(env, "PWD="+dir) // a shell would set it
	}
	added, err := callEnv(c.Env)
	if err != nil {
		return tool.Plan{}, fmt.Errorf("hook: %w", err)
	}
	j.plan.Env = slices.Concat(env, added, vars)
	j.used = p.match.Used
	if p.confine {
		j.searches, j.home = sp.Changes == "", setsHome(sp)
		if !box.container() {
			j.plan.Env = append(j.plan.Env, quietEnv[:]...)
		}
		j.repeat = sp.Changes == "" || repeatable(sp)
		j.moves = slices.ContainsFunc(sp.Segments, func(s shell.Segment) bool { return s.Dir != dir })
		if j.plan.Rights, err = t.rights(ctx, c, p.Effect != tool.Reads && !shows(sp) &&
			(c.Sandbox == nil || c.Sandbox.Writable()), slices.ContainsFunc(sp.Segments, asksPackages)); err != nil {
			return tool.Plan{}, err
		}
		if j.cage = t.Cage; box.cage != nil {
			j.cage = box.cage
		}
	}
	j.reads = p.Effect == tool.Reads && !p.Ask || j.plan.Rights != nil && !j.plan.Rights.Write &&
		len(j.plan.Rights.Change) == 0
	p.Value, p.Text = j, approvalText(sp, j, vars)
	if p.confine && len(c.Rights) > 0 {
		p.Reason = "the sandbox did not let it " + describe(c.Rights)
		p.Text += "\nin the sandbox, with the right to " + describe(c.Rights)
	}
	if err := j.bindApproval(&p.Plan, sp, slices.Concat(vars, t.env[:1]), c.Dir); err != nil {
		return tool.Plan{}, err
	}
	p.Value = j
	return p.Plan, nil
}

// bindApproval sets the plan's hash, to which an approval is bound: the
// program, the variables of the call, and the content of the files that it
// executes, with the scripts of the workspace that these name.
func (j *job) bindApproval(p *tool.Plan, sp shell.Plan, env []string, workspace string) error {
	shown := j.plan
	shown.Env = env
	if j.tty || j.background { // accepting input is a further right
		shown.Argv = append(slices.Clone(shown.Argv), "with input")
	}
	var files []source
	if p.Ask {
		var err error
		if shown.Dir, err = filepath.EvalSymlinks(j.plan.Dir); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
		p.Text += recipes(sp, j.plan.Dir)
		named := sources(sp, j.plan.Dir)
		for _, f := range named {
			p.Text += fmt.Sprintf("\nwith the current content of %s (sha256 %.12s)", shell.Escape(f.path), f.sum)
		}
		var all bool
		files, all = called(named, j.plan.Dir, workspace)
		p.Text += calledText(files[len(named):], j.plan.Dir, all)
		j.sources = files
	}
	p.Hash = hashWithFiles(shown.Hash(), files)
	return nil
}

// calledText says which scripts are held because others name them.
func calledText(files []source, dir string, all bool) string {
	if len(files) == 0 && all {
		return ""
	}
	words := make([]string, len(files))
	for i, f := range files {
		words[i] = f.path
		if rel, err := filepath.Rel(dir, f.path); err == nil && filepath.IsLocal(rel) {
			words[i] = rel
		}
		words[i] = shell.Escape(words[i])
	}
	text := "\nand of the scripts that these name: " + strings.Join(words, ", ")
	if !all {
		text += " (there are more, which can change until it runs)"
	}
	return text
}

// checkHost returns an error if the configuration or the call requests a host
// that commands cannot run on. A call cannot replace the configured host.
func (t *execTool) checkHost(a args) error {
	if _, elsewhere := t.onNode(args{}); !elsewhere {
		if err := t.checkHostName(t.Host); err != nil {
			return fmt.Errorf("tools.exec.host: %w", err)
		}
	}
	if a.Sandbox {
		a.Host = "sandbox"
	}
	return t.checkHostName(a.Host)
}

// hostOf returns the host that a call asks for. A call that names none asks for that of its
// session, unless the configuration keeps commands in the sandbox.
func (t *execTool) hostOf(session string, a args) string {
	named := a.Sandbox || a.Elevated || a.Host != "" && a.Host != "auto"
	if named || session != run.HostGateway || t.Host == run.HostSandbox {
		return a.Host
	}
	return session
}

// checkHostName returns an error if commands cannot run on a host.
func (t *execTool) checkHostName(host string) error {
	switch host {
	case "", "auto", "gateway", "local":
	case "sandbox":
		if t.Cage == nil {
			return errors.New("host sandbox: commands are not sandboxed here")
		}
	default:
		return fmt.Errorf("host %q: no such node", host)
	}
	return nil
}

// workdir returns the absolute working directory, and whether it is inside
// the workspace.
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
	return abs, pathpolicy.Inside(real, root), nil
}

// startIn returns the working directory that a call names. It is relative to the folder
// in which the session's commands start.
func startIn(folder, dir string) string {
	if folder == "" || filepath.IsAbs(dir) || dir == "~" || strings.HasPrefix(dir, "~/") {
		return dir
	}
	return filepath.Join(folder, dir)
}

// maxYield limits how long a call waits for a command that may go to the
// background.
const maxYield = 2 * time.Minute

// job returns how the command of a call is run.
func (t *execTool) job(a args, c tool.Call) job {
	j := job{text: a.Command, tty: a.PTY}
	if !t.canDetach(c) {
		if a.Background || a.PTY {
			j.tty = false
			j.note = "commands run in the foreground and without a terminal because the process tool is not available"
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
	j.awaited = c.Awaited && !j.background
	if a.Timeout == nil || *a.Timeout != 0 || j.awaited {
		j.timeout = t.timeout(a.Timeout, t.MaxTimeout)
	}
	return j
}

// canDetach reports whether the command of a call can continue in the background.
func (t *execTool) canDetach(c tool.Call) bool {
	return t.Commands != nil && (c.HasTool == nil || c.HasTool("process"))
}

// timeout returns the time limit for a requested number of seconds.
func (t *execTool) timeout(seconds *float64, fallback time.Duration) time.Duration {
	if seconds == nil || *seconds <= 0 {
		return min(fallback, t.MaxTimeout)
	}
	return time.Duration(min(*seconds*float64(time.Second), float64(t.MaxTimeout)))
}

// refusedCommand returns a reason if a command controls Chela in a way that
// is reserved for people.
func refusedCommand(sp shell.Plan) string {
	if strings.HasPrefix(strings.TrimSpace(sp.Command), "/approve") {
		return "Approvals are given by a person in the chat or on the command line. They cannot be given through exec."
	}
	for _, s := range sp.Segments {
		if len(s.Argv) < 3 {
			continue
		}
		name := filepath.Base(s.Argv[0].Text)
		if (name == "chela" || name == "openclaw") && s.Argv[1].Text == "channels" && s.Argv[2].Text == "login" {
			return "Signing in to a channel requires a person at a terminal. Ask them to run `" + name +
				" channels login` themselves."
		}
	}
	return ""
}

// approvalText returns the complete plan for a person who approves it: what
// the command does in words, and then the command.
func approvalText(sp shell.Plan, j job, vars []string) string {
	var b strings.Builder
	if what := summary(sp); what != "" {
		b.WriteString(what + "\n\n")
	}
	b.WriteString(sp.Text())
	fmt.Fprintf(&b, "in %s, ", shell.Escape(j.plan.Dir))
	if j.timeout > 0 {
		fmt.Fprintf(&b, "for at most %s", humanize.Span(j.timeout))
	} else {
		b.WriteString("without a time limit")
	}
	switch {
	case j.tty:
		b.WriteString(", in a terminal that accepts input while it runs")
	case j.background:
		b.WriteString(", in the background, accepting input while it runs")
	}
	for _, v := range vars {
		b.WriteString("\nwith " + shell.Escape(v))
	}
	return b.String()
}

// directProgram returns the file of a command that is a single program, so
// that it can run without the cost of starting a shell. It returns "" if
// running it without a shell could make a difference.
func directProgram(name, path string) string {
	if !filepath.IsAbs(name) && (name == "" || strings.ContainsAny(name, `/\`) || builtin(name)) {
		return ""
	}
	return allowlist.Env{Path: filepath.SplitList(path)}.Search(name)
}

// builtin reports whether a shell implements the command itself, possibly
// unlike a program of that name.
func builtin(name string) bool {
	switch name {
	case ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen",
		"complete", "compopt", "continue",
		"declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts",
		"hash", "help", "history",
		"jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
		"readarray", "readonly", "return",
		"set", "shift", "shopt", "source", "suspend", "test", "time", "times", "trap", "type", "typeset",
		"ulimit", "umask", "unalias",
		"unset", "wait":
		return true
	}
	return false
}
