package chela

import (
	"errors"
	"fmt"
)

// Code classifies an error for machines. Surfaces map codes to their own
// (gateway error codes, exit codes, HTTP statuses).
type Code string

// The codes.
const (
	CodeInvalid     Code = "invalid_request" // the caller must change the request
	CodeForbidden   Code = "forbidden"
	CodeNotFound    Code = "not_found"
	CodeConflict    Code = "conflict" // changed since it was read; read again and retry
	CodeUnavailable Code = "unavailable"
	CodeFull        Code = "storage_full"
	CodeInternal    Code = "internal"
)

// Error is an error with a code for machines, a message for people, and
// optionally a hint that can be typed.
type Error struct {
	Code    Code
	Message string
	Hint    string // for example "chela doctor"; empty: none
	Err     error  // the cause; may be nil
}

// Error returns the message, with the cause when there is one.
func (e *Error) Error() string {
	if _, ok := e.Err.(quiet); ok || e.Err == nil { //nolint:errorlint // the cause itself, not what it wraps
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an *Error with the code and a formatted message. A %w verb
// keeps the cause for errors.Is and errors.As.
func Errorf(c Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: c, Message: err.Error(), Err: cause(err)}
}

// cause wraps what err wraps, so that the chain goes on without err's text
// being printed twice; nil when err wraps nothing.
func cause(err error) error {
	if in := errors.Unwrap(err); in != nil {
		return quiet{in}
	}
	return nil
}

// quiet keeps a cause reachable and prints nothing.
type quiet struct{ err error }

func (q quiet) Error() string { return "" }
func (q quiet) Unwrap() error { return q.err }

// CodeOf returns the code of the first *Error in err's chain, or
// [CodeInternal] when there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the first hint in err's chain.
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// Sentinels that callers branch on.
var (
	// ErrFenced says that the writer was superseded: another run or another
	// process owns the session now. Nothing was written.
	ErrFenced = errors.New("superseded by another owner of the session")
	// ErrNotFound says that the row asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrFull says that the storage has no room; nothing was stored.
	ErrFull = errors.New("no space left for the state directory")
	// ErrClosed says that the part was stopped.
	ErrClosed = errors.New("closed")
)
