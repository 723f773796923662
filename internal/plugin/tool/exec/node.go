package exec

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// A command on a node is judged without knowing the node's files: nothing is confined
// there, and the allowlist names programs of this machine. So it runs if every command may,
// or if a person approves exactly this command on this node. The node has rules of its own,
// which it applies in addition; it is told that a person approved.

// remoteJob is a resolved call for a node.
type remoteJob struct {
	Node  string            `json:"node"` // its id
	Argv  []string          `json:"argv"`
	Text  string            `json:"text"` // the command as given
	Dir   string            `json:"dir"`
	Env   map[string]string `json:"env"`
	title string            // of the node
	limit time.Duration
	note  string
}

// onNode reports whether a call is for a node, and returns the name of the node; "": the
// configured one, or the only one.
func (t *execTool) onNode(a args) (name string, ok bool) {
	host := a.Host
	switch {
	case a.Sandbox || a.Elevated:
		return "", false
	case host == "" && a.Node != "":
		host = hostNode
	case host == "" || host == "auto":
		host = t.Host
	}
	switch host {
	case "", "auto", run.HostGateway, "local", run.HostSandbox:
		return "", false
	case hostNode:
		return cmp.Or(a.Node, t.Node), true
	}
	return host, true
}

// hostNode is the host of commands on a node.
const hostNode = "node"

// mayUseNode returns why a call may not run on a node.
func (t *execTool) mayUseNode(ctx context.Context, c tool.Call) error {
	switch {
	case t.Host == run.HostSandbox || c.Exec.Host == run.HostSandbox:
		return errors.New("commands run in the sandbox only (host is sandbox), so not on a node")
	case c.Sandbox != nil:
		return errors.New("this session is sandboxed, so its commands do not run on a node")
	case !chela.PrincipalFrom(ctx).May(chela.ScopeOwnerTools):
		return errors.New("only the owner's commands run on a node")
	}
	return nil
}

// findNode returns the node for a command.
func (t *execTool) findNode(ctx context.Context, name string) (*node.Node, error) {
	all, err := t.Nodes.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	n, err := node.Find(all, name, func(n *node.Node) bool {
		return n.Connected && t.Nodes.Allowed(n, wire.NodeRun) == nil
	}, "that is connected runs commands")
	if err != nil {
		return nil, fmt.Errorf("host node: %w", err)
	}
	if t.Node != "" && name != t.Node {
		if only, err := node.Find(all, t.Node, nil, ""); err != nil || only.ID != n.ID {
			return nil, fmt.Errorf("commands run on the node %s only (tools.exec.node)", t.Node)
		}
	}
	if err := t.Nodes.Allowed(n, wire.NodeRun); err != nil {
		return nil, err
	}
	if !n.Connected {
		return nil, chela.Errorf(chela.CodeUnavailable, "the node %s is not connected", n.Title())
	}
	return n, nil
}

// planOnNode judges a call for a node and resolves what it would run there.
func (t *execTool) planOnNode(ctx context.Context, c tool.Call, a args, name string, rules *allowlist.Rules,
	policy allowlist.Policy) (tool.Plan, error) {
	if t.Nodes == nil {
		return tool.Plan{}, fmt.Errorf("host %q: no such node", cmp.Or(name, hostNode))
	}
	if err := t.mayUseNode(ctx, c); err != nil {
		return tool.Plan{Effect: tool.Acts, Deny: sentence(err.Error())}, nil
	}
	if c.ReadOnly {
		return tool.Plan{Effect: tool.Acts, Deny: "Commands on a node could change something."}, nil
	}
	n, err := t.findNode(ctx, name)
	if err != nil {
		return tool.Plan{}, err
	}
	vars, err := callEnv(a.Env)
	if err != nil {
		return tool.Plan{}, err
	}
	j := remoteJob{
		Node:  n.ID,
		title: n.Title(),
		Text:  a.Command,
		Argv:  shellOf(n, a.Command),
		Dir:   a.Workdir,
		Env:   a.Env,
		limit: min(t.timeout(a.Timeout, t.Timeout), node.MaxTimeout-remoteGrace),
	}
	if a.Background || a.PTY {
		j.note = "commands on a node run in the foreground and without a terminal"
	}
	sp := shell.Judge{Deny: t.deny, Dir: a.Workdir}.Parse(a.Command)
	p := t.judgeOnNode(sp, rules, policy)
	p.Value, p.Text = j, j.approvalText(sp, vars)
	b, err := json.Marshal(j)
	if err != nil {
		return tool.Plan{}, err
	}
	sum := sha256.Sum256(b)
	p.Hash = "node:" + hex.EncodeToString(sum[:])
	return p, nil
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// judgeOnNode applies the policy to a command on a node.
func (t *execTool) judgeOnNode(sp shell.Plan, rules *allowlist.Rules, policy allowlist.Policy) tool.Plan {
	p := tool.Plan{Effect: tool.Acts, Reason: "it runs on a node, where nothing confines it"}
	inline := rules.Inline(sp)
	switch {
	case sp.Denied != "":
		p.Deny = "This command is never allowed: " + sp.Denied + "."
		return p
	case policy.Security == allowlist.Deny:
		p.Deny = "Running commands is disabled (tools.exec.mode, or security in tools.exec or /exec, is deny)."
		return p
	case refusedCommand(sp) != "":
		p.Deny = refusedCommand(sp)
		return p
	case inline != "":
		p.Reason = fmt.Sprintf("it runs inline code (%s)", shell.Escape(inline))
		p.Once = true
	case policy.Ask == allowlist.Always:
		p.Once = true
	case policy.Security == allowlist.Full && !sp.Unclear:
		return p
	case policy.Ask == allowlist.Off && policy.Security != allowlist.Full:
		p.Deny = "Only commands on the allowlist run here, and nobody is asked. The allowlist names programs of this machine, so it allows none on a node."
		return p
	case policy.Security == allowlist.Full:
		p.Reason = "parts of it are known only when it runs, and it could delete or overwrite anything"
	}
	if !t.Interactive {
		p.Deny = "This command needs a person's approval, and nobody can be asked here: " + p.Reason + "."
		return p
	}
	p.Ask = true
	if sp.Changes != "" {
		p.Reason += "; this cannot be undone"
	}
	return p
}

// shellOf returns the program that runs a command on a node.
func shellOf(n *node.Node, command string) []string {
	if strings.HasPrefix(strings.ToLower(n.Platform), "win") {
		return []string{"cmd.exe", "/d", "/s", "/c", command}
	}
	return []string{"/bin/sh", "-lc", command}
}

// approvalText returns the complete plan for a person who approves it.
func (j remoteJob) approvalText(sp shell.Plan, vars []string) string {
	var b strings.Builder
	if what := summary(sp); what != "" {
		b.WriteString(what + "\n\n")
	}
	b.WriteString(sp.Text())
	fmt.Fprintf(&b, "on the node %s (%.12s), ", shell.Escape(j.title), j.Node)
	if j.Dir != "" {
		fmt.Fprintf(&b, "in %s, ", shell.Escape(j.Dir))
	}
	fmt.Fprintf(&b, "for at most %s", humanize.Span(j.limit))
	for _, v := range vars {
		b.WriteString("\nwith " + shell.Escape(v))
	}
	return b.String()
}

// Times for a node besides that of the command.
const (
	remoteGrace = 15 * time.Second // until its answer arrives
	prepareTime = 15 * time.Second // for system.run.prepare
)

// runOnNode runs a job on its node.
func (t *execTool) runOnNode(ctx context.Context, j remoteJob, c tool.Call) (tool.Result, error) {
	n, err := t.findNode(ctx, j.Node)
	if err != nil {
		return tool.Result{}, err
	}
	q := wire.NodeRunParams{
		Command:    j.Argv,
		RawCommand: j.Text,
		Dir:        j.Dir,
		Env:        j.Env,
		Timeout:    j.limit.Milliseconds(),
		Agent:      string(c.Agent),
		Session:    string(c.Session),
		RunID:      c.ID,
		Quiet:      true,
	}
	if c.Plan != nil && c.Plan.Ask { // a person approved exactly this
		q.Approved, q.Decision = true, "allow-once"
		if slices.Contains(n.Approved, wire.NodePrepare) {
			if err := t.prepareOnNode(ctx, j, &q, c); err != nil {
				return tool.Result{}, remoteError(j, err)
			}
		}
	}
	var out wire.NodeRunResult
	began := time.Now()
	if err := t.callNode(ctx, j, wire.NodeRun, q, j.limit+remoteGrace, c, &out); err != nil {
		return tool.Result{}, remoteError(j, err)
	}
	return t.remoteResult(j, out, time.Since(began)), nil
}

// callNode calls a command of the node of a job.
func (t *execTool) callNode(ctx context.Context, j remoteJob, command string, params any, limit time.Duration,
	c tool.Call, out any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer, err := t.Nodes.Invoke(ctx, node.Request{
		Node:     j.Node,
		Command:  command,
		Params:   raw,
		Timeout:  limit,
		Session:  c.Session,
		Progress: c.Update,
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the node %s answered something else than it should: %w", j.title, err)
	}
	return nil
}

// prepareOnNode adds to a call what the node says that it would run, which must be what was
// approved.
func (t *execTool) prepareOnNode(ctx context.Context, j remoteJob, q *wire.NodeRunParams, c tool.Call) error {
	ask := *q
	ask.Timeout, ask.RunID, ask.Approved, ask.Decision, ask.Quiet = 0, "", false, "", false
	var prepared wire.NodePrepared
	if err := t.callNode(ctx, j, wire.NodePrepare, ask, prepareTime, c, &prepared); err != nil {
		return err
	}
	var would wire.NodePlan
	if err := json.Unmarshal(prepared.Plan, &would); err != nil {
		return fmt.Errorf("the node %s answered something else than it should: %w", j.title, err)
	}
	if !slices.Equal(would.Argv, j.Argv) || j.Dir != "" && would.Dir != j.Dir {
		return fmt.Errorf("not run: the node %s would run %s in %q, which is not what was approved", j.title,
			shell.Escape(strings.Join(would.Argv, " ")), would.Dir)
	}
	q.Plan, q.Dir, q.RawCommand = prepared.Plan, would.Dir, cmp.Or(would.Text, q.RawCommand)
	return nil
}

// remoteError returns the error of a call of a node for the model.
func remoteError(j remoteJob, err error) error {
	f, ok := errors.AsType[*node.Fault](err)
	switch {
	case !ok:
		return err
	case f.Code == wire.NodeNotConnected:
		return chela.Errorf(chela.CodeUnavailable, "the node %s is not connected; the command was not sent", j.title)
	case f.Unknown():
		return fmt.Errorf("node %s: %w. Do not run it again before you know", j.title, err)
	case f.Code == wire.NodeRunDenied:
		return fmt.Errorf("the node %s refuses it by its own rules: %w", j.title, err)
	}
	return fmt.Errorf("node %s: %w", j.title, err)
}

// remoteResult returns the result of a command that ran on a node.
func (t *execTool) remoteResult(j remoteJob, r wire.NodeRunResult, took time.Duration) tool.Result {
	text := r.Stdout
	for _, more := range [...]string{r.Stderr, r.Error} {
		if more != "" && text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += more
	}
	cut := newOutput(t.MaxOutput, nil)
	_, _ = cut.Write([]byte(text)) // it never fails
	shown, short := cut.text()
	rep := report{
		duration: took,
		timedOut: r.TimedOut,
		timeout:  j.limit,
		text:     shown,
		cut:      short || r.Truncated,
		note:     j.note,
	}
	switch {
	case r.ExitCode != nil:
		rep.Code = *r.ExitCode
	case !r.Success:
		rep.Code = 1
	}
	res := rep.result()
	var d map[string]any
	if json.Unmarshal(res.Details, &d) == nil {
		d["nodeId"] = j.Node
		res.Details, _ = json.Marshal(d)
	}
	return res
}
