package dialect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
)

// ErrorBody is the error object in an answer or an event: an object, or in
// some services only a text.
type ErrorBody struct {
	Type    string `json:"type"`
	Code    any    `json:"code"` // text or number
	Message string `json:"message"`
}

// UnmarshalJSON takes both forms.
func (e *ErrorBody) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*e = ErrorBody{Message: text}
		return nil
	}
	type plain ErrorBody
	if json.Unmarshal(b, (*plain)(e)) != nil {
		*e = ErrorBody{Message: string(b)}
	}
	return nil
}

// Kind returns type and code together.
func (e *ErrorBody) Kind() string {
	if e.Code == nil {
		return e.Type
	}
	return strings.TrimSpace(e.Type + " " + fmt.Sprint(e.Code))
}

// Err returns the error that an event of a stream is.
func (e *ErrorBody) Err() *llm.Error {
	status := 0
	if f, ok := e.Code.(float64); ok && f >= 400 && f < 600 {
		status = int(f)
	}
	message := e.Message
	if message == "" {
		message = e.Kind()
	}
	return &llm.Error{Class: classify(status, e.Kind(), message), Message: message}
}

// statuses are the statuses that the names of errors stand for. An error in a
// stream has no status of its own.
var statuses = [...]struct {
	word   string
	status int
}{
	{"authentication", 401}, {"permission", 403}, {"rate_limit", 429}, {"not_found", 404},
	{"request_too_large", 413}, {"invalid_request", 400}, {"billing", 402}, {"overloaded", 529},
	{"timeout", 408},
}

func classify(status int, kind, message string) llm.Class {
	for _, s := range statuses {
		if status == 0 && strings.Contains(kind, s.word) {
			status = s.status
		}
	}
	return llm.Classify(status, kind, message)
}
