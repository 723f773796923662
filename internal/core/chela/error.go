package chela

import (
	"errors"
	"fmt"
)

// Code classifies an error for programs. Surfaces map codes to gateway error codes, exit
// codes and HTTP statuses.
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

// Error is an error with a code for programs, a message for people, and an optional
// hint: a command to run.
type Error struct {
	Code    Code
	Message string
	Hint    string // for example "chela doctor"; empty: none
	Err     error  // the cause; may be nil
}

// Error returns the message, followed by the cause if there is one.
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

// Errorf returns an *Error with the code and a formatted message. An error formatted
// with %w is its cause.
func Errorf(c Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: c, Message: err.Error(), Err: cause(err)}
}

// cause returns the error that err wraps, so that the chain continues and its text
// is not printed twice; nil if err wraps nothing.
func cause(err error) error {
	if in := errors.Unwrap(err); in != nil {
		return quiet{in}
	}
	return nil
}

// quiet wraps a cause that is not printed, because the message contains its text.
type quiet struct{ err error }

func (q quiet) Error() string { return "" }
func (q quiet) Unwrap() error { return q.err }

// CodeOf returns the code of the first *Error in the chain of err, or [CodeInternal] if
// there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// InternalText is what people are told of an error whose text is for the log only.
const InternalText = "an internal error ended this; the log has the details (chela logs)"

// PeopleText returns the text of err for people in chats. Only the text of an error with a
// code was written for them: that of any other error, and of a failure of the storage, may
// contain paths and statements of a database, and they are told [InternalText] instead.
// The caller logs the error if IsInternal.
func PeopleText(err error) string {
	switch {
	case errors.Is(err, ErrFull):
		return ErrFull.Error()
	case IsInternal(err):
		return InternalText
	}
	return err.Error()
}

// IsInternal reports whether the text of err is for the log only.
func IsInternal(err error) bool { return CodeOf(err) == CodeInternal || errors.Is(err, ErrStorage) }

// HintOf returns the first hint in the chain of err, or "".
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
	// ErrFenced reports that another run or process holds the lease now. Nothing was
	// written.
	ErrFenced = errors.New("superseded by another owner of the session")
	// ErrNotFound reports that the requested row does not exist.
	ErrNotFound = errors.New("not found")
	// ErrFull reports that the storage has no space left; nothing was stored.
	ErrFull = errors.New("no space left for the state directory")
	// ErrStorage reports that the storage failed. Its text is for the log.
	ErrStorage = errors.New("the storage failed")
	// ErrClosed reports that the component was stopped.
	ErrClosed = errors.New("closed")
)
