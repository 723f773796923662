package session

import "github.com/chela-ai/chela/internal/core/chela"

// LastAddress returns the last address that matches: of the session itself, of the main
// session of its agent, or of the agent's other sessions, the latest first.
func LastAddress(r Reader, here Meta, match func(chela.Address) bool) (chela.Address, bool) {
	list := []Meta{here}
	if main, err := Lookup(r, chela.MainSession(here.Agent)); err == nil {
		list = append(list, main)
	}
	if others, _, err := r.List(Query{Agent: here.Agent, Interacted: true, Order: ByActive}); err == nil {
		list = append(list, others...)
	}
	for _, m := range list {
		if !m.Address.Local() && match(m.Address) {
			return m.Address, true
		}
	}
	return chela.Address{}, false
}
