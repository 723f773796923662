package exec

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
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

// request is a command to be judged.
type request struct {
	shell  shell.Plan
	home   string // the person's home folder
	rules  *allowlist.Rules
	policy allowlist.Policy // of the rules and the call
	inside bool             // it starts in the workspace
	env    []string         // variables set by the call

	own       []string      // Chela's own files and folders
	notes     []string      // files and folders that the call does not use
	programs  allowlist.Env // where programs are looked up
	confined  bool          // it can be confined
	leaves    bool          // the call asks for the host
	sandboxed bool          // it runs in the sandbox of its session, whatever it needs
}

// decision is the result of judging a request.
type decision struct {
	tool.Plan
	match   allowlist.Match // the command to run instead, if the allowlist allowed it
	confine bool            // it runs in the sandbox
	direct  string          // program to start instead of a shell, if nothing confines the command
}

// judge applies the policy to a command.
func (t *execTool) judge(q request) decision {
	changes := q.changes()
	p := decision{Plan: tool.Plan{Effect: tool.Acts, Reason: changes}}
	if changes == "" && (q.confined || len(q.shell.Program) > 0) {
		p.Effect = tool.Reads
	}
	switch {
	case q.shell.Denied != "":
		p.Deny = "This command is never allowed: " + q.shell.Denied + "."
		return p
	case q.policy.Security == allowlist.Deny:
		p.Deny = "Running commands is disabled (tools.exec.mode, or security in tools.exec or /exec, is deny)."
		return p
	case refusedCommand(q.shell) != "":
		p.Deny = refusedCommand(q.shell)
		return p
	}
	if note := q.namedOf(q.notes); note != "" {
		p.Deny = "It uses " + shell.Escape(note) + ": " + pathpolicy.UnsharedText + "."
		return p
	}
	outside, allowed := q.outside(), false
	switch {
	case q.policy.Security == allowlist.Full && !q.shell.Unclear:
		allowed = true
	case q.policy.Security == allowlist.Full:
		allowed, p.confine = q.confined, q.confined
		p.Reason = "parts of it are known only when it runs, and it could delete or overwrite anything"
	case q.confined && outside == "":
		allowed = q.policy.Work || q.policy.Reads && changes == ""
		p.confine = allowed
	case !q.confined && outside == "" && q.policy.Reads && changes == "":
		p.direct = q.direct()
		allowed = p.direct != ""
	}
	if !allowed {
		p.Effect = tool.Acts // as far as is known
		p.Reason = q.why(outside, p.Reason)
		var miss error
		if p.match, miss = q.match(outside); miss == nil {
			allowed, p.confine = true, q.confined && !p.match.Host
		} else if _, undecidable := errors.AsType[allowlist.Undecidable](miss); !q.policy.Reads ||
			undecidable && q.rules.Entries() > 0 {
			p.Reason = strings.TrimPrefix(p.Reason+"; "+miss.Error(), "; ")
		}
		if allowed && p.confine && outside != "" {
			allowed, p.confine, p.match = false, false, allowlist.Match{}
			p.Reason += ", and its entry on the allowlist does not say host"
		}
		if allowed && q.ownFile() != "" {
			allowed, p.confine, p.match = false, false, allowlist.Match{}
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
	case q.policy.Ask == allowlist.Off && q.policy.Security != allowlist.Full:
		p.Deny = "Only commands on the allowlist run here, and nobody is asked: " + p.Reason + "."
		return p
	}
	p.Ask, p.Deny = t.askOrDeny(q.policy, allowed && inline == "", inline != "", p.Reason)
	if p.Ask {
		p.match, p.confine, p.direct = allowlist.Match{}, false, "" // a person approves the command as written
		p.Unattended = inline == "" && q.policy.Fallback == allowlist.Full
		if changes != "" {
			p.Reason += "; this cannot be undone"
		}
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

// changes returns the reason why the command may do more than read, taking
// into account where it runs and with which variables, or "".
func (q request) changes() string {
	switch {
	case q.shell.Changes != "":
		return q.shell.Changes
	case !q.inside:
		return "the working directory is outside the workspace"
	case len(q.env) > 0:
		return "it sets environment variables"
	}
	return ""
}

// why returns the reason to ask about a command.
func (q request) why(outside, known string) string {
	switch {
	case known != "" && q.policy.Security == allowlist.Full:
		return known
	case outside != "":
		return outside
	case known == "" && q.policy.Reads && !q.confined:
		return "no sandbox runs here, and it needs a shell or searches a whole folder"
	}
	return known
}

// direct returns the file of a command that may run without a sandbox and
// without being asked about: a single program that only reads known files.
func (q request) direct() string {
	if !q.shell.Direct() || runtime.GOOS == "windows" &&
		slices.ContainsFunc(q.shell.Program, func(a string) bool { return strings.HasPrefix(a, "/") }) {
		return "" // on Windows / begins an option
	}
	return q.programs.Outside(q.shell.Program[0])
}

// match matches the command against the allowlist.
func (q request) match(outside string) (allowlist.Match, error) {
	for _, v := range q.env {
		if name, _, _ := strings.Cut(v, "="); !shell.Harmless(name) {
			return allowlist.Match{}, allowlist.Undecidable("it sets environment variables")
		}
	}
	reads := q.policy.Reads && q.inside && len(q.env) == 0 && q.confined && outside == ""
	return q.rules.Match(q.policy, reads, q.shell, q.programs)
}
