package inbound

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// ExecRule is what /exec chooses from in a session, as the rules about commands say.
type ExecRule struct {
	Host      string           // configured host; "": auto
	Policy    allowlist.Policy // of the agent
	NoSandbox string           // why commands cannot be confined; "": they can
	NoHost    string           // why they may not run outside of the sandbox; "": they may
}

// execValues are the settings of /exec with their values, in the order of its answer.
var execValues = [...]struct {
	name   string
	values []string
}{
	{"host", []string{run.HostSandbox, run.HostGateway}},
	{"security", []string{string(allowlist.Deny), string(allowlist.Listed), string(allowlist.Full)}},
	{"ask", []string{string(allowlist.Off), string(allowlist.OnMiss), string(allowlist.Always)}},
}

// execSetting parses a word such as ask=always. The value default stands for none.
func execSetting(word string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(strings.ToLower(word), "=")
	if !ok {
		return "", "", false
	}
	for _, s := range execValues {
		if s.name == name {
			return name, value, slices.Contains(s.values, value) || value == "default"
		}
	}
	return "", "", false
}

// setExec sets one of the settings of e.
func setExec(e *run.Exec, name, value string) {
	if value == "default" {
		value = ""
	}
	*map[string]*string{"host": &e.Host, "security": &e.Security, "ask": &e.Ask}[name] = value
}

// takeExec parses the settings at the beginning of a text, and returns their length.
func takeExec(s string) (e run.Exec, n int) {
	for {
		gap := len(s[n:]) - len(strings.TrimLeft(s[n:], " \t"))
		word := s[n+gap:]
		if end := strings.IndexFunc(word, unicode.IsSpace); end >= 0 {
			word = word[:end]
		}
		name, value, ok := execSetting(word)
		if !ok {
			return e, n
		}
		setExec(&e, name, value)
		n += gap + len(word)
	}
}

// readExecRule reads what /exec chooses from, before the commit.
func readExecRule(ctx context.Context, k *call) (string, error) {
	var err error
	k.rule, err = k.g.o.Exec(ctx, k.who, k.key)
	return "", err
}

// exec is /exec.
func (k *call) exec() (string, error) {
	var options strings.Builder
	for _, s := range execValues {
		fmt.Fprintf(&options, " %s=%s", s.name, strings.Join(s.values, "|"))
	}
	switch strings.ToLower(k.args) {
	case "":
		return k.execState() + " Options:" + options.String() + ", default.", nil
	case "default", "inherit", "reset":
		k.meta.Exec = run.Exec{}
	default:
		own := k.meta.Exec
		for word := range strings.FieldsSeq(k.args) {
			name, value, ok := execSetting(word)
			if !ok {
				return "", refusef("/exec has no setting %q. Options:%s, default.", word, options.String())
			}
			if err := k.rule.check(name, value); err != nil {
				return "", err
			}
			setExec(&own, name, value)
		}
		k.meta.Exec = own
	}
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhasePatched})
	return k.execState(), nil
}

// check refuses a value that the rules do not allow.
func (r ExecRule) check(name, value string) error {
	p := r.Policy
	switch {
	case value == "default":
	case value == run.HostSandbox && r.NoSandbox != "":
		return refusef("Commands cannot be kept in the sandbox: %s.", r.NoSandbox)
	case value == run.HostGateway && r.NoHost != "":
		return refusef("Commands may not run outside of the sandbox: %s.", r.NoHost)
	case name == "security":
		narrow, err := p.Narrow(value, nil)
		if err != nil || string(narrow.Security) != value {
			return refusef("security=%s would allow more than tools.exec and the approvals do: %s.", value, p.Security)
		}
	case name == "ask":
		narrow, err := p.Narrow("", value)
		if err != nil || string(narrow.Ask) != value {
			return refusef("ask=%s would ask less than tools.exec and the approvals do: %s.", value, p.Ask)
		}
	}
	return nil
}

// execState describes what applies to the commands of the session.
func (k *call) execState() string {
	e := k.meta.Exec.Within(k.meta.Bounds.Exec)
	p, err := k.rule.Policy.Narrow(e.Security, e.Ask)
	if err != nil {
		p = k.rule.Policy
	}
	own := func(s string) string {
		if s == "" {
			return " (default)"
		}
		return ""
	}
	return fmt.Sprintf("Commands: host %s%s, security %s%s, ask %s%s.",
		cmp.Or(e.Host, k.rule.Host, "auto"), own(e.Host), p.Security, own(e.Security), p.Ask, own(e.Ask))
}
