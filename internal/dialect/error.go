package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
)

// ErrorBody is the error object in an answer or an event: an object, or in
// some services only a text.
type ErrorBody struct {
	Type    string
	Code    any // text or number
	Message string
}

// UnmarshalJSON takes both forms. Of an error that a router passes on, it takes
// the words of the service behind it.
func (e *ErrorBody) UnmarshalJSON(b []byte) error {
	if text, ok := textOf(b); ok {
		*e = ErrorBody{Message: text}
		return nil
	}
	var o struct {
		Type     any             `json:"type"`
		Code     any             `json:"code"`
		Message  json.RawMessage `json:"message"`
		Metadata struct {
			Raw any `json:"raw"`
		} `json:"metadata"`
	}
	if json.Unmarshal(b, &o) != nil {
		*e = ErrorBody{Message: string(b)}
		return nil
	}
	*e = ErrorBody{Type: words(o.Type), Code: o.Code, Message: sentence(o.Message)}
	if raw := words(o.Metadata.Raw); raw != "" {
		kind, message := Words([]byte(raw))
		e.Type = strings.TrimSpace(e.Type + " " + kind)
		e.Message = strings.TrimSpace(message)
	}
	return nil
}

// words returns a text; "" for anything else.
func words(v any) string {
	s, _ := v.(string)
	return s
}

// textOf returns the text that b is, if it is one.
func textOf(b []byte) (string, bool) {
	var s string
	err := json.Unmarshal(b, &s)
	return s, err == nil && len(b) > 0 && b[0] == '"'
}

// sentence returns a message: a text, or in services that check fields first an
// object or a list with what is wrong with each.
func sentence(b json.RawMessage) string {
	if text, ok := textOf(b); ok {
		if inner := strings.TrimSpace(text); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
			return sentence(json.RawMessage(inner)) // one in a text
		}
		return text
	}
	var o struct {
		Detail []struct {
			Where []any  `json:"loc"`
			What  string `json:"msg"`
		} `json:"detail"`
	}
	if json.Unmarshal(b, &o) != nil || len(o.Detail) == 0 {
		if string(b) == "null" {
			return ""
		}
		return string(b)
	}
	var all []string
	for _, d := range o.Detail {
		where := make([]string, 0, len(d.Where))
		for _, w := range d.Where {
			if s := fmt.Sprint(w); s != "body" {
				where = append(where, s)
			}
		}
		all = append(all, strings.Trim(strings.Join(where, ".")+": "+d.What, ": "))
	}
	return strings.Join(all, "; ")
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

// Words returns the type and the text of an error in the shapes that services
// give it; what is no JSON is its own text.
func Words(data []byte) (kind, message string) {
	var e struct {
		Error   *ErrorBody      `json:"error"`
		Type    string          `json:"type"`
		Code    any             `json:"code"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' { // one service wraps its errors in a list
		data = bytes.TrimSuffix(bytes.TrimPrefix(data, []byte("[")), []byte("]"))
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return "", string(data)
	}
	body := e.Error
	if body == nil {
		body = &ErrorBody{Type: e.Type, Code: e.Code, Message: sentence(e.Message)}
	}
	message = body.Message
	if message == "" && e.Detail != nil {
		message = sentence(json.RawMessage(`{"detail":` + string(e.Detail) + `}`))
		if text, ok := textOf(e.Detail); ok {
			message = text
		}
	}
	if message == "" {
		message = string(data)
	}
	return body.Kind(), message
}
