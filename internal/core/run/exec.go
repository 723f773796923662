package run

import "cmp"

// Exec restricts where commands run, which of them run, and when a person is asked. It never
// allows what the rules about commands do not. Empty fields restrict nothing.
type Exec struct {
	Host     string `json:"execHost,omitempty"`     // sandbox, gateway
	Security string `json:"execSecurity,omitempty"` // deny, allowlist, full
	Ask      string `json:"execAsk,omitempty"`      // off, on-miss, always
}

// Hosts of commands.
const (
	HostSandbox = "sandbox" // commands never leave the sandbox
	HostGateway = "gateway" // commands run outside of the sandbox, after approval
)

// IsZero reports whether e restricts nothing.
func (e Exec) IsZero() bool { return e == Exec{} }

// Or returns e with the empty fields of f.
func (e Exec) Or(f Exec) Exec {
	return Exec{cmp.Or(e.Host, f.Host), cmp.Or(e.Security, f.Security), cmp.Or(e.Ask, f.Ask)}
}

// Within returns the stricter of both in each field. A host other than the sandbox is not
// stricter than none.
func (e Exec) Within(f Exec) Exec {
	if f.Host == HostSandbox {
		e.Host = f.Host
	}
	e.Security = stricter(e.Security, f.Security, "deny", "allowlist", "full")
	e.Ask = stricter(e.Ask, f.Ask, "always", "on-miss", "off")
	return e
}

// ForChild returns what is passed on to a child of a session.
func (e Exec) ForChild() Exec {
	if e.Host != HostSandbox {
		e.Host = ""
	}
	return e
}

// stricter returns the value that is first in the order; an empty one is last.
func stricter(a, b string, order ...string) string {
	for _, v := range order {
		if a == v || b == v {
			return v
		}
	}
	return cmp.Or(a, b)
}
