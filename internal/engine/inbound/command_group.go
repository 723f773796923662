package inbound

import (
	"github.com/chela-ai/chela/internal/core/chela"
)

// The values of session.Meta.Activation.
const (
	Mention = "mention" // only messages that address the agent are answered
	Always  = "always"  // all are
)

func groupCommands() []Command {
	return []Command{
		{
			Name: "activation", Group: "session", Args: "[mention | always | default]", Scope: chela.ScopeWrite, home: true,
			Help: "in a group, answer all messages or only those that mention the agent",
			run:  (*call).activation,
		},
	}
}

// activation is /activation.
func (k *call) activation() (string, error) {
	a := k.in.Address
	if a.Local() || a.Peer.Kind == chela.Direct || a.Peer.Kind == "" {
		return "", refuse{"/activation is for groups: every message of a direct chat is answered."}
	}
	inherited := Mention
	if k.g.unprompted(k.in) {
		inherited = Always
	}
	return k.set(setting{"Activation", &k.meta.Activation, inherited, []string{Mention, Always}})
}
