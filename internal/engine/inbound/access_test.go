package inbound

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestSenders(t *testing.T) {
	t.Parallel()
	s := Senders{"fake": {"friend"}, "open": {"*", "boss"}}
	person := chela.Principal{ID: "fake:bot:x", Credential: "channel"}
	for _, c := range []struct {
		name            string
		who             chela.Principal
		channel, sender string
		may, settings   bool
	}{
		{"listed", person, "fake", "friend", true, true},
		{"not listed", person, "fake", "other", false, false},
		{"listed elsewhere", person, "third", "friend", false, false},
		{"matched by *", person, "open", "other", true, false},
		{"listed in addition to *", person, "open", "boss", true, true},
		{"a sender with the id *", person, "open", "*", true, false},
		{"no sender", person, "open", "", false, false},
		{"a client with the scope", chela.Owner("process"), chela.LocalChannel, "", true, true},
		{"a client without the scope", person, chela.LocalChannel, "friend", false, false},
	} {
		in := chela.Inbound{Address: chela.Address{Channel: c.channel}, Sender: chela.Sender{ID: c.sender}}
		got, err := s.Access(c.who, in)
		if (err == nil) != c.may || err == nil && got.May(chela.ScopeWrite) != c.settings {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}
