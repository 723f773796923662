package gateway

import (
	"github.com/chela-ai/chela/wire"
)

// Clients of protocol 3 know less: what they are told is made here of what
// others are told.

// older returns the payload of an event.
func older(payload any) any {
	if p, ok := payload.(wire.Chat); ok {
		p.Delta, p.Replace, p.AgentID = "", false, ""
		return p
	}
	return payload
}

// olderError returns an error: a scope that is missing was a bad request.
func olderError(e *wire.Error) *wire.Error {
	if e.Detail() != wire.DetailMissingScope {
		return e
	}
	return wire.Errorf(wire.InvalidRequest, "%s", e.Message)
}
