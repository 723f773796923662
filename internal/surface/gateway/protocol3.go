package gateway

import (
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Conversions for clients of protocol 3.

// downgrade converts the payload of an event.
func downgrade(payload any) any {
	switch p := payload.(type) {
	case wire.Chat:
		p.Delta, p.Replace, p.AgentID = "", false, ""
		p.ErrorKind, p.ErrorDetail = "", nil
		return p
	case wire.Agent:
		p.AgentID = ""
		return p
	}
	return payload
}

// inProtocol3 reports whether protocol 3 has a step of a run.
func inProtocol3(e chela.Event) bool {
	switch e.Stream {
	case chela.StreamAssistant, chela.StreamTool:
		return true
	case chela.StreamLifecycle:
		return e.Phase == chela.PhaseStart || e.Phase == chela.PhaseEnd || e.Phase == chela.PhaseError
	}
	return false
}

// downgradeError converts an error: protocol 3 reports a missing scope as an
// invalid request.
func downgradeError(e *wire.Error) *wire.Error {
	if e.Detail() != wire.DetailMissingScope {
		return e
	}
	return wire.Errorf(wire.InvalidRequest, "%s", e.Message)
}
