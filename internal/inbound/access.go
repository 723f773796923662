package inbound

import (
	"slices"

	"github.com/chela-ai/chela/internal/chela"
)

// Senders is who may write on channels: the ids of people, by channel. "*"
// stands for everybody on it.
type Senders map[string][]string

// Access is an Options.Access. Clients of the gateway need the write scope.
// People on a channel need to be listed: those listed by their id may change
// settings too, those let in by "*" may only write.
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
