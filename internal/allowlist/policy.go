package allowlist

import (
	"cmp"
	"fmt"
	"slices"
)

// Security is which commands may run.
type Security string

// The kinds of security, from the strictest.
const (
	Deny   Security = "deny"      // none
	Listed Security = "allowlist" // those of the allowlist, and what a person allows
	Full   Security = "full"      // all
)

// Ask is when a person is asked.
type Ask string

// When a person is asked, from the strictest.
const (
	Always Ask = "always"  // about every command
	OnMiss Ask = "on-miss" // about what is not on the allowlist; else it is refused
	Off    Ask = "off"     // never
)

// Policy is what may run, and when a person is asked.
type Policy struct {
	Security Security
	Ask      Ask
	Fallback Security // in place of an answer when nobody can be asked; "": Deny
	// Reads puts every command that is known to only read on the allowlist.
	Reads bool
}

// Default returns the policy of a new installation: what only reads runs, all
// else asks.
func Default() Policy { return Policy{Security: Listed, Ask: OnMiss, Fallback: Deny, Reads: true} }

// Open returns OpenClaw's default: everything runs.
func Open() Policy { return Policy{Security: Full, Ask: Off, Fallback: Deny, Reads: true} }

// ParseMode reads one word for the pair, as tools.exec.mode has it. In each of
// them what only reads is on the allowlist. The words of a call's security are
// understood, too.
func ParseMode(word string) (Policy, error) {
	p := Default()
	switch word {
	case "", "ask", "auto", "review", "on-miss", "sudo":
	case "full", "off":
		p = Open()
	case "always":
		p.Ask = Always
	case "allowlist":
		p.Ask = Off
	case "deny":
		p.Security, p.Ask = Deny, Off
	default:
		return Policy{}, fmt.Errorf("exec mode %q is none of full, ask, always, allowlist, deny", word)
	}
	return p, nil
}

// WithSecurity returns p with the security that word names. "allowlist" is the
// list alone: what only reads is not on it by itself. The older words mean a
// pair.
func (p Policy) WithSecurity(word string) (Policy, error) {
	switch word {
	case "":
	case string(Deny):
		p.Security = Deny
	case string(Listed):
		p.Security, p.Reads = Listed, false
	case string(Full):
		p.Security = Full
	case "off":
		p.Security, p.Ask = Full, Off
	case "ask", "review", "sudo":
		p.Security, p.Ask = Listed, OnMiss
	default:
		return p, fmt.Errorf("security %q is none of deny, allowlist, full", word)
	}
	return p, nil
}

// WithAsk returns p with the ask that v names: a word, or true for always;
// false and "" are no wish.
func (p Policy) WithAsk(v any) (Policy, error) {
	switch v := v.(type) {
	case nil:
	case bool:
		if v {
			p.Ask = Always
		}
	case string:
		switch v {
		case "", "false":
		case "true":
			p.Ask = Always
		case string(Off), string(OnMiss), string(Always):
			p.Ask = Ask(v)
		default:
			return p, fmt.Errorf("ask %q is none of off, on-miss, always", v)
		}
	default:
		return p, fmt.Errorf("ask %v is no word", v)
	}
	return p, nil
}

// WithFallback returns p with the fallback that word names.
func (p Policy) WithFallback(word string) (Policy, error) {
	switch Security(word) {
	case "":
	case Deny, Listed, Full:
		p.Fallback = Security(word)
	default:
		return p, fmt.Errorf("askFallback %q is none of deny, allowlist, full", word)
	}
	return p, nil
}

// Stricter returns what is the stricter of two policies, in each of its parts.
func (p Policy) Stricter(o Policy) Policy {
	return Policy{
		Security: strictest(p.Security, o.Security, Deny, Listed, Full),
		Ask:      strictest(p.Ask, o.Ask, Always, OnMiss, Off),
		Fallback: strictest(cmp.Or(p.Fallback, Deny), cmp.Or(o.Fallback, Deny), Deny, Listed, Full),
		Reads:    p.Reads && o.Reads,
	}
}

// strictest returns which of two stands first in the order; a word that is not
// in it goes before all.
func strictest[T comparable](a, b T, order ...T) T {
	if slices.Index(order, a) <= slices.Index(order, b) {
		return a
	}
	return b
}
