package wire

import (
	"encoding/json"
	"fmt"
)

// The codes of errors.
const (
	InvalidRequest   = "INVALID_REQUEST"
	Forbidden        = "FORBIDDEN"
	NotPaired        = "NOT_PAIRED"
	Unavailable      = "UNAVAILABLE"
	ApprovalNotFound = "APPROVAL_NOT_FOUND"
)

// Codes in the details of an error.
const (
	DetailProtocol     = "PROTOCOL_MISMATCH"
	DetailMissingScope = "MISSING_SCOPE"
	DetailNotFound     = "NOT_FOUND"         // what the request names is not there
	DetailNoSession    = "SESSION_NOT_FOUND" // and it is a session
)

// Error is what a gateway answers when it does not do what was asked.
type Error struct {
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	Details      json.RawMessage `json:"details,omitempty"`
	Retryable    bool            `json:"retryable,omitempty"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Errorf returns an error with the code and a formatted message.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of e with details, which must be a value that JSON can
// hold.
func (e *Error) With(details any) *Error {
	b, err := Encode(details)
	if err != nil {
		panic(err) // details are literals in our own code
	}
	c := *e
	c.Details = b
	return &c
}

// Detail returns the code in the details; "" when there is none.
func (e *Error) Detail() string {
	var d struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(e.Details, &d) != nil {
		return ""
	}
	return d.Code
}
