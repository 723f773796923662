package rpc

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// PayloadError is an error that is answered together with a payload.
type PayloadError struct {
	Payload any
	Err     error
}

// Error returns the message of the error.
func (f *PayloadError) Error() string { return f.Err.Error() }

// Unwrap returns the error.
func (f *PayloadError) Unwrap() error { return f.Err }

// Error converts err to an error of the protocol. The code tells a client whether to repeat the
// call: an error that may pass is retryable, an invalid request is not. What has no code is
// Unavailable: the fault is on this side.
func Error(err error) *wire.Error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e
	}
	if _, ok := errors.AsType[*RoleError](err); ok {
		return wire.Errorf(wire.InvalidRequest, "%v", err)
	}
	e := &wire.Error{Message: err.Error(), Code: wire.Unavailable}
	if h := chela.HintOf(err); h != "" {
		e.Message += " (" + h + ")"
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, chela.ErrClosed):
		e.Retryable = true
		return e
	case errors.Is(err, chela.ErrNotFound), chela.CodeOf(err) == chela.CodeNotFound:
		e.Code = wire.InvalidRequest
		return e.With(map[string]any{"code": wire.DetailNotFound})
	}
	switch chela.CodeOf(err) {
	case chela.CodeInvalid, chela.CodeConflict:
		e.Code = wire.InvalidRequest
	case chela.CodeForbidden:
		e.Code = wire.Forbidden
	case chela.CodeUnavailable:
		e.Retryable = true
	}
	return e
}
