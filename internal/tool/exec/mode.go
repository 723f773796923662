package exec

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tool"
)

// rules returns what holds for the commands of an agent.
func (t *execTool) rules(id chela.AgentID) (*allowlist.Rules, error) {
	if t.Rules == nil {
		return &allowlist.Rules{Policy: allowlist.Default()}, nil
	}
	return t.Rules(id)
}

// hardened returns the policy with the wishes of a call, which never loosen it.
func hardened(p allowlist.Policy, a args) (allowlist.Policy, error) {
	wish, err := p.WithSecurity(a.Security)
	if err != nil {
		return p, err
	}
	p = p.Stricter(wish)
	if wish, err = p.WithAsk(a.Ask); err != nil {
		return p, err
	}
	return p.Stricter(wish), nil
}

// question is a command that is to be judged.
type question struct {
	shell  shell.Plan
	judge  shell.Judge
	rules  *allowlist.Rules
	policy allowlist.Policy // of the rules, with what the call wishes
	inside bool             // it starts in the workspace
	own    []string         // variables of the call
	path   string           // PATH
}

// answer is what becomes of it.
type answer struct {
	tool.Plan
	match allowlist.Match // what is run in its place, when that is due to the allowlist
}

// judge applies the policy to a command.
func (t *execTool) judge(q question) answer {
	verdict, reasons := q.verdict()
	p := answer{Plan: tool.Plan{Effect: tool.Acts, Reason: strings.Join(reasons, "; ")}}
	if verdict == shell.ReadOnly {
		p.Effect = tool.Reads
	}
	switch {
	case verdict == shell.Deny:
		p.Deny = "This command is never run: " + p.Reason + "."
		return p
	case q.policy.Security == allowlist.Deny:
		p.Deny = "Running commands is switched off (tools.exec.mode or security is deny)."
		return p
	case ownCommand(q.shell) != "":
		p.Deny = ownCommand(q.shell)
		return p
	}
	allowed := q.policy.Security == allowlist.Full || q.policy.Reads && verdict == shell.ReadOnly
	if !allowed {
		var miss error
		if p.match, miss = q.match(); miss == nil {
			allowed = true
		} else if _, odd := errors.AsType[shell.Undecidable](miss); !q.policy.Reads || odd && q.rules.Entries() > 0 {
			p.Reason = strings.Join(append(reasons, miss.Error()), "; ")
		}
	}
	inline := q.rules.Inline(q.shell)
	switch {
	case inline != "":
		p.Reason = fmt.Sprintf("it runs code that is written in the command (%s)", shell.Escape(inline))
		p.Once = true
	case q.policy.Ask == allowlist.Always:
		p.Reason = cmp.Or(p.Reason, "every command is to be asked about")
		p.Once = true
	case allowed:
		return p
	case q.policy.Ask == allowlist.Off:
		p.Deny = "Only commands of the allowlist are run here, and nobody is asked: " + p.Reason + "."
		return p
	}
	p.Ask, p.Deny = t.unasked(q.policy, allowed && inline == "", inline != "", p.Reason)
	if p.Ask {
		p.match = allowlist.Match{} // a person decides about what is written
		p.Alone = inline == "" && q.policy.Fallback == allowlist.Full
	}
	return p
}

// unasked reports whether a person is to be asked, and, where nobody can be,
// why the command is refused.
func (t *execTool) unasked(p allowlist.Policy, listed, inline bool, reason string) (ask bool, deny string) {
	switch {
	case t.Interactive:
		return true, ""
	case !inline && p.Fallback == allowlist.Full, p.Fallback == allowlist.Listed && listed:
		return false, ""
	}
	return false, "This command needs a person's approval, and nobody can be asked here: " + reason +
		". (The person can start Chela with --yes to run commands without asking.)"
}

// verdict is what is to be done with the command, knowing where it runs.
func (q question) verdict() (shell.Verdict, []string) {
	switch {
	case q.shell.Verdict == shell.ReadOnly && !q.inside:
		return shell.Ask, []string{"the working directory is outside the workspace"}
	case q.shell.Verdict == shell.ReadOnly && len(q.own) > 0:
		return shell.Ask, []string{"it sets environment variables"}
	}
	return q.shell.Verdict, q.shell.Reasons
}

// match holds the command against the allowlist.
func (q question) match() (allowlist.Match, error) {
	for _, v := range q.own {
		if name, _, _ := strings.Cut(v, "="); !shell.Harmless(name) {
			return allowlist.Match{}, shell.Undecidable("it sets environment variables")
		}
	}
	s, err := q.judge.Script(q.shell.Command)
	if err != nil {
		return allowlist.Match{}, err
	}
	pl := allowlist.Place{Path: filepath.SplitList(q.path), Workspace: q.judge.Workspace, Home: q.judge.Home}
	policy := q.policy
	policy.Reads = policy.Reads && q.inside && len(q.own) == 0
	return q.rules.Match(policy, q.shell, s, pl)
}
