package inbound

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Senders lists the ids of people who may write, by channel. "*" matches everyone
// on the channel.
type Senders map[string][]string

// Access implements Options.Access. Clients of the gateway need the write scope.
// People on a channel must be listed: those listed by their id may also change
// settings, those matched by "*" may only write.
func (s Senders) Access(p chela.Principal, in chela.Inbound) (chela.Principal, error) {
	switch list := s[in.Address.Channel]; {
	case p.May(chela.ScopeWrite):
		return p, nil
	case in.Address.Local() || in.Sender.ID == "":
	case slices.Contains(list, in.Sender.ID) && in.Sender.ID != "*":
		p.Scopes = []chela.Scope{chela.ScopeRead, chela.ScopeWrite}
		return p, nil
	case slices.Contains(list, "*"):
		return p, nil
	}
	return p, chela.Errorf(chela.CodeForbidden, "%s may not write here", p.ID)
}
