package allowlist

import (
	"cmp"
	"fmt"
	"slices"
)

// Security is which commands may run.
type Security string

// The security levels, the strictest first.
const (
	Deny   Security = "deny"      // no command
	Listed Security = "allowlist" // commands on the allowlist, and those that a person approves
	Full   Security = "full"      // every command
)

// Ask is when a person is asked.
type Ask string

// The values of Ask, the strictest first.
const (
	Always Ask = "always"  // about every command
	OnMiss Ask = "on-miss" // about commands that are not on the allowlist
	Off    Ask = "off"     // never
)

// Policy is which commands may run and when a person is asked.
type Policy struct {
	Security Security
	Ask      Ask
	Fallback Security // applied when nobody can be asked; "": Deny
	// Reads allows every command that is known to be read-only.
	Reads bool
	// Work allows every command that runs in a complete sandbox.
	Work bool
}

// Default returns the policy of a new installation, mode auto: commands run in
// the sandbox. Where there is none, read-only commands run, and all others need
// approval.
func Default() Policy {
	return Policy{Security: Listed, Ask: OnMiss, Fallback: Deny, Reads: true, Work: true}
}

// Permissive returns OpenClaw's default: everything runs.
func Permissive() Policy { return Policy{Security: Full, Ask: Off, Fallback: Deny, Reads: true} }

// ParseMode returns the policy for a value of tools.exec.mode. In every mode
// read-only commands are on the allowlist; in mode auto those in the sandbox are. The security values of a call are
// accepted too.
func ParseMode(word string) (Policy, error) {
	p := Default()
	switch word {
	case "", "auto":
	case "ask", "review", "on-miss", "sudo":
		p.Work = false
	case "full", "off":
		p = Permissive()
	case "always":
		p.Ask, p.Work = Always, false
	case "allowlist":
		p.Ask, p.Work = Off, false
	case "deny":
		p.Security, p.Ask, p.Work = Deny, Off, false
	default:
		return Policy{}, fmt.Errorf("exec mode %q: want auto, ask, always, allowlist, full or deny", word)
	}
	return p, nil
}

// WithSecurity returns p with the given security. With "allowlist" read-only
// commands are not allowed unless they are listed. The legacy values set
// security and ask.
func (p Policy) WithSecurity(word string) (Policy, error) {
	switch word {
	case "":
	case string(Deny):
		p.Security, p.Work = Deny, false
	case string(Listed):
		p.Security, p.Reads, p.Work = Listed, false, false
	case string(Full):
		p.Security, p.Work = Full, false
	case "off":
		p.Security, p.Ask, p.Work = Full, Off, false
	case "ask", "review", "sudo":
		p.Security, p.Ask, p.Work = Listed, OnMiss, false
	default:
		return p, fmt.Errorf("security %q: want deny, allowlist or full", word)
	}
	return p, nil
}

// WithAsk returns p with the given ask: a string, or true for always. false
// and "" change nothing.
func (p Policy) WithAsk(v any) (Policy, error) {
	switch v := v.(type) {
	case nil:
	case bool:
		if v {
			p.Ask, p.Work = Always, false
		}
	case string:
		switch v {
		case "", "false":
		case "true":
			p.Ask, p.Work = Always, false
		case string(Off):
			p.Ask = Off
		case string(OnMiss), string(Always): // the person wants to be asked
			p.Ask, p.Work = Ask(v), false
		default:
			return p, fmt.Errorf("ask %q: want off, on-miss or always", v)
		}
	default:
		return p, fmt.Errorf("ask %v: want a string", v)
	}
	return p, nil
}

// WithFallback returns p with the given fallback.
func (p Policy) WithFallback(word string) (Policy, error) {
	switch Security(word) {
	case "":
	case Deny, Listed, Full:
		p.Fallback = Security(word)
	default:
		return p, fmt.Errorf("askFallback %q: want deny, allowlist or full", word)
	}
	return p, nil
}

// Narrow returns p combined with a security and an ask, of a call or of a session. It can only
// be stricter.
func (p Policy) Narrow(security string, ask any) (Policy, error) {
	requested, err := p.WithSecurity(security)
	if err != nil {
		return p, err
	}
	p = p.Stricter(requested)
	if requested, err = p.WithAsk(ask); err != nil {
		return p, err
	}
	return p.Stricter(requested), nil
}

// Stricter returns a policy with the stricter of each setting.
func (p Policy) Stricter(o Policy) Policy {
	return Policy{
		Security: strictest(p.Security, o.Security, Deny, Listed, Full),
		Ask:      strictest(p.Ask, o.Ask, Always, OnMiss, Off),
		Fallback: strictest(cmp.Or(p.Fallback, Deny), cmp.Or(o.Fallback, Deny), Deny, Listed, Full),
		Reads:    p.Reads && o.Reads,
		Work:     p.Work && o.Work,
	}
}

// strictest returns the value that is first in the order. Values that are not
// in the order come before all others.
func strictest[T comparable](a, b T, order ...T) T {
	if slices.Index(order, a) <= slices.Index(order, b) {
		return a
	}
	return b
}
