package wire

import (
	"encoding/json"
	"fmt"
)

// Error codes.
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
	DetailNotFound     = "NOT_FOUND"         // the object of the request does not exist
	DetailNoSession    = "SESSION_NOT_FOUND" // the session does not exist
)

// Error is the error in a response.
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

// With returns a copy of e with details, which must be encodable as JSON.
func (e *Error) With(details any) *Error {
	b, err := Encode(details)
	if err != nil {
		panic(err) // details are constants of this program
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
