package exec

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
)

// rules returns the rules for the commands of an agent.
func (t *execTool) rules(id chela.AgentID) (*allowlist.Rules, error) {
	if t.Rules == nil {
		return &allowlist.Rules{Policy: allowlist.Default()}, nil
	}
	return t.Rules(id)
}

// harden returns the policy combined with the settings of a call. A call can
// only make it stricter.
func harden(p allowlist.Policy, a args) (allowlist.Policy, error) {
	requested, err := p.WithSecurity(a.Security)
	if err != nil {
		return p, err
	}
	p = p.Stricter(requested)
	if requested, err = p.WithAsk(a.Ask); err != nil {
		return p, err
	}
	return p.Stricter(requested), nil
}

// request is a command to be judged.
type request struct {
	shell  shell.Plan
	judge  shell.Judge
	rules  *allowlist.Rules
	policy allowlist.Policy // of the rules and the call
	inside bool             // it starts in the workspace
	env    []string         // variables set by the call
	path   string           // PATH
}

// decision is the result of judging a request.
type decision struct {
	tool.Plan
	match allowlist.Match // the command to run instead, if the allowlist allowed it
}

// judge applies the policy to a command.
func (t *execTool) judge(q request) decision {
	verdict, reasons := q.verdict()
	p := decision{Plan: tool.Plan{Effect: tool.Acts, Reason: strings.Join(reasons, "; ")}}
	if verdict == shell.ReadOnly {
		p.Effect = tool.Reads
	}
	switch {
	case verdict == shell.Deny:
		p.Deny = "This command is never allowed: " + p.Reason + "."
		return p
	case q.policy.Security == allowlist.Deny:
		p.Deny = "Running commands is disabled (tools.exec.mode or security is deny)."
		return p
	case refusedCommand(q.shell) != "":
		p.Deny = refusedCommand(q.shell)
		return p
	}
	allowed := q.policy.Security == allowlist.Full || q.policy.Reads && verdict == shell.ReadOnly
	if !allowed {
		var miss error
		if p.match, miss = q.match(); miss == nil {
			allowed = true
		} else if _, undecidable := errors.AsType[shell.Undecidable](miss); !q.policy.Reads || undecidable && q.rules.Entries() > 0 {
			p.Reason = strings.Join(append(reasons, miss.Error()), "; ")
		}
	}
	inline := q.rules.Inline(q.shell)
	switch {
	case inline != "":
		p.Reason = fmt.Sprintf("it runs inline code (%s)", shell.Escape(inline))
		p.Once = true
	case q.policy.Ask == allowlist.Always:
		p.Reason = cmp.Or(p.Reason, "every command needs approval")
		p.Once = true
	case allowed:
		return p
	case q.policy.Ask == allowlist.Off:
		p.Deny = "Only commands on the allowlist run here, and nobody is asked: " + p.Reason + "."
		return p
	}
	p.Ask, p.Deny = t.askOrDeny(q.policy, allowed && inline == "", inline != "", p.Reason)
	if p.Ask {
		p.match = allowlist.Match{} // a person approves the command as written
		p.Unattended = inline == "" && q.policy.Fallback == allowlist.Full
	}
	return p
}

// askOrDeny reports whether a person is to be asked. If nobody can be asked,
// it returns the reason for the refusal, or "" if the command runs.
func (t *execTool) askOrDeny(p allowlist.Policy, listed, inline bool, reason string) (ask bool, deny string) {
	switch {
	case t.Interactive:
		return true, ""
	case !inline && p.Fallback == allowlist.Full, p.Fallback == allowlist.Listed && listed:
		return false, ""
	}
	return false, "This command needs a person's approval, and nobody can be asked here: " + reason +
		". (The person can start Chela with --yes to run commands without asking.)"
}

// verdict returns the verdict on the command, taking into account where it
// runs and with which variables.
func (q request) verdict() (shell.Verdict, []string) {
	switch {
	case q.shell.Verdict == shell.ReadOnly && !q.inside:
		return shell.Ask, []string{"the working directory is outside the workspace"}
	case q.shell.Verdict == shell.ReadOnly && len(q.env) > 0:
		return shell.Ask, []string{"it sets environment variables"}
	}
	return q.shell.Verdict, q.shell.Reasons
}

// match matches the command against the allowlist.
func (q request) match() (allowlist.Match, error) {
	for _, v := range q.env {
		if name, _, _ := strings.Cut(v, "="); !shell.Harmless(name) {
			return allowlist.Match{}, shell.Undecidable("it sets environment variables")
		}
	}
	s, err := q.judge.Script(q.shell.Command)
	if err != nil {
		return allowlist.Match{}, err
	}
	pl := allowlist.Env{Path: filepath.SplitList(q.path), Workspace: q.judge.Workspace, Home: q.judge.Home}
	policy := q.policy
	policy.Reads = policy.Reads && q.inside && len(q.env) == 0
	return q.rules.Match(policy, q.shell, s, pl)
}
