package exec

import "fmt"

// Mode says what happens to a command that is not known to only read.
type Mode string

// The modes, from the loosest.
const (
	ModeFull      Mode = "full"      // it runs
	ModeAsk       Mode = "ask"       // a person is asked
	ModeAlways    Mode = "always"    // a person is asked, also for what only reads
	ModeAllowlist Mode = "allowlist" // it is refused
	ModeDeny      Mode = "deny"      // nothing runs at all
)

// ParseMode reads a mode as configuration spells it. The older pairs and the
// short words are understood: "off" is full, "auto" and "review" are ask.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "full", "off":
		return ModeFull, nil
	case "", "ask", "auto", "review", "on-miss", "sudo":
		return ModeAsk, nil
	case "always":
		return ModeAlways, nil
	case "allowlist":
		return ModeAllowlist, nil
	case "deny":
		return ModeDeny, nil
	}
	return "", fmt.Errorf("exec mode %q is none of full, ask, always, allowlist, deny", s)
}

func (m Mode) rank() int {
	switch m {
	case ModeFull:
		return 0
	case ModeAsk:
		return 1
	case ModeAlways:
		return 2
	case ModeAllowlist:
		return 3
	}
	return 4
}

// stricter returns the stricter of two modes.
func (m Mode) stricter(o Mode) Mode {
	if o.rank() > m.rank() {
		return o
	}
	return m
}

// hardened returns the mode with the wishes of a call, which never loosen it.
func (m Mode) hardened(a args) (Mode, error) {
	if a.Security != "" {
		o, err := ParseMode(a.Security)
		if err != nil {
			return m, err
		}
		m = m.stricter(o)
	}
	switch v := a.Ask.(type) {
	case bool:
		if v {
			m = m.stricter(ModeAlways)
		}
	case string:
		o, err := ParseMode(v)
		if err != nil {
			return m, fmt.Errorf("ask: %w", err)
		}
		m = m.stricter(o)
	}
	return m, nil
}
