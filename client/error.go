package client

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/chela-ai/chela/wire"
)

// Errors returned by Err and Call.
var (
	// ErrClosed reports that Close was called.
	ErrClosed = errors.New("client closed")
	// ErrSilent reports that the gateway sent nothing for two tick
	// intervals.
	ErrSilent = errors.New("gateway not responding")
	// ErrOffline reports that there is no connection. Nothing was sent.
	ErrOffline = errors.New("not connected to the gateway")
	// ErrLost reports that the connection was lost before the answer. The
	// call may have been executed. See [Client.Repeat].
	ErrLost = errors.New("connection lost before the answer")
	// ErrInsecure reports that a credential would be sent without
	// encryption to a host outside of private networks.
	ErrInsecure = errors.New("refusing to send a credential without encryption")
)

// CloseError reports that the gateway closed the connection.
type CloseError struct {
	Code   int // wire.CloseRestart, …
	Reason string
}

// Error returns the reason, or the code if there is none.
func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("gateway closed the connection (code %d)", e.Code)
	}
	return "gateway closed the connection: " + e.Reason
}

// StatusError reports the HTTP status with which the gateway refused the
// WebSocket.
type StatusError struct{ Code int }

// Error returns the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("gateway answered %d %s", e.Code, http.StatusText(e.Code))
}

// starting returns the retry delay that a gateway asks for while it starts; 0
// if err is another error.
func starting(err error) time.Duration {
	we, ok := errors.AsType[*wire.Error](err)
	if !ok || we.Code != wire.Unavailable || !we.Retryable {
		return 0
	}
	return time.Duration(we.RetryAfterMs) * time.Millisecond
}

// final reports whether reconnecting is useless because the gateway rejects
// this client.
func final(err error) bool {
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return we.Code != wire.Unavailable && !we.Retryable
	}
	if ce, ok := errors.AsType[*CloseError](err); ok {
		return ce.Code == wire.CloseAuth || ce.Code == wire.CloseProtocol
	}
	if se, ok := errors.AsType[*StatusError](err); ok {
		return se.Code >= 400 && se.Code < 500 && se.Code != http.StatusTooManyRequests &&
			se.Code != http.StatusRequestTimeout
	}
	return errors.Is(err, ErrInsecure)
}

// CallError is the error of a call, with the method that was called.
type CallError struct {
	Method string
	Err    error
}

func (e *CallError) Error() string { return e.Method + ": " + e.Err.Error() }
func (e *CallError) Unwrap() error { return e.Err }
