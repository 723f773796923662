package shape

import (
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// AgentOf returns the agent that a client means: the named one, that of the
// session, or the default one.
func AgentOf(id, session string, def chela.AgentID) (chela.AgentID, error) {
	if id != "" {
		return chela.AgentID(id), nil
	}
	if session == "" {
		return def, nil
	}
	key, err := chela.ParseSessionKey(session, def)
	return key.Agent(), err
}

// UnknownAgent returns the error about an agent that does not exist.
func UnknownAgent(id chela.AgentID) error {
	return wire.Errorf(wire.InvalidRequest, "unknown agent id %q", id).With(map[string]any{
		"code": wire.DetailUnknownAgent, "agentId": id,
	})
}

// NoSession returns the error about a session that does not exist, in the words
// of a method.
func NoSession(format string, args ...any) error {
	return wire.Errorf(wire.InvalidRequest, format, args...).With(map[string]any{"code": wire.DetailNoSession})
}
