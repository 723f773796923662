package client

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/chela-ai/chela/wire"
)

// Errors that Err and Call give.
var (
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("client is closed")
	// ErrSilent says that the gateway was not heard of for two ticks.
	ErrSilent = errors.New("gateway is silent")
	// ErrOffline says that there is no connection, and nothing was sent.
	ErrOffline = errors.New("not connected to the gateway")
	// ErrLost says that the connection was lost before the answer came: what was
	// asked for may have been done. See [Client.Repeat].
	ErrLost = errors.New("connection lost before the answer")
	// ErrInsecure says that a credential would be sent without encryption to a
	// machine that is not of a private network.
	ErrInsecure = errors.New("refusing to send a credential without encryption")
)

// CloseError says with which code the gateway closed the connection.
type CloseError struct {
	Code   int // wire.CloseRestart, …
	Reason string
}

// Error names the reason, or the code when there is none.
func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("gateway closed the connection (code %d)", e.Code)
	}
	return "gateway closed the connection: " + e.Reason
}

// StatusError says with which HTTP status the gateway refused to open a
// WebSocket.
type StatusError struct{ Code int }

// Error names the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("gateway answered %d %s", e.Code, http.StatusText(e.Code))
}

// starting returns when a gateway that is not up yet asks to be tried again; 0:
// err is no such answer.
func starting(err error) time.Duration {
	we, ok := errors.AsType[*wire.Error](err)
	if !ok || we.Code != wire.Unavailable || !we.Retryable {
		return 0
	}
	return time.Duration(we.RetryAfterMs) * time.Millisecond
}

// final reports whether another attempt to connect would end the same way: the
// gateway does not let this client in.
func final(err error) bool {
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return we.Code != wire.Unavailable && !we.Retryable
	}
	if ce, ok := errors.AsType[*CloseError](err); ok {
		return ce.Code == wire.CloseAuth || ce.Code == wire.CloseProtocol
	}
	if se, ok := errors.AsType[*StatusError](err); ok {
		return se.Code >= 400 && se.Code < 500 && se.Code != http.StatusTooManyRequests && se.Code != http.StatusRequestTimeout
	}
	return errors.Is(err, ErrInsecure)
}
