package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/llm"
)

// ErrorBody is the error object of a response or event. Some services send only
// a string.
type ErrorBody struct {
	Type    string
	Code    any // string or number
	Message string
}

// UnmarshalJSON accepts both forms. For an error that a router passes on, it
// uses the error of the upstream service.
func (e *ErrorBody) UnmarshalJSON(b []byte) error {
	if text, ok := decodeString(b); ok {
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
	*e = ErrorBody{Type: asString(o.Type), Code: o.Code, Message: messageText(o.Message)}
	if raw := asString(o.Metadata.Raw); raw != "" {
		kind, message := ParseError([]byte(raw))
		e.Type = strings.TrimSpace(e.Type + " " + kind)
		e.Message = strings.TrimSpace(message)
	}
	return nil
}

// asString returns v if it is a string, or "".
func asString(v any) string {
	s, _ := v.(string)
	return s
}

// decodeString decodes b if it is a JSON string.
func decodeString(b []byte) (string, bool) {
	var s string
	err := json.Unmarshal(b, &s)
	return s, err == nil && len(b) > 0 && b[0] == '"'
}

// messageText returns an error message: a string, or a list of validation
// errors per field.
func messageText(b json.RawMessage) string {
	if text, ok := decodeString(b); ok {
		if inner := strings.TrimSpace(text); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
			return messageText(json.RawMessage(inner)) // JSON inside a string
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

// Kind returns type and code.
func (e *ErrorBody) Kind() string {
	if e.Code == nil {
		return e.Type
	}
	return strings.TrimSpace(e.Type + " " + fmt.Sprint(e.Code))
}

// Err returns the error of an event.
func (e *ErrorBody) Err() *llm.Error {
	status := 0
	if f, ok := e.Code.(float64); ok && f >= 400 && f < 600 {
		status = int(f)
	}
	message := cmp.Or(e.Message, e.Kind())
	return &llm.Error{Class: classify(status, e.Kind(), message), Message: message}
}

// statuses maps error names to HTTP statuses, because an error in a stream has
// no status.
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

// ParseError returns the type and message of an error response in any known
// format. A response that is not JSON is its own message, except a web page, of which
// only the title is.
func ParseError(data []byte) (kind, message string) {
	var e struct {
		Error   *ErrorBody      `json:"error"`
		Type    string          `json:"type"`
		Code    any             `json:"code"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' { // one service returns a list of errors
		data = bytes.TrimSuffix(bytes.TrimPrefix(data, []byte("[")), []byte("]"))
	}
	if err := json.Unmarshal(data, &e); err != nil {
		if isPage(data) {
			return "", pageText(data)
		}
		return "", string(data)
	}
	body := e.Error
	if body == nil {
		body = &ErrorBody{Type: e.Type, Code: e.Code, Message: messageText(e.Message)}
	}
	message = body.Message
	if message == "" && e.Detail != nil {
		message = messageText(json.RawMessage(`{"detail":` + string(e.Detail) + `}`))
		if text, ok := decodeString(e.Detail); ok {
			message = text
		}
	}
	message = cmp.Or(message, string(data))
	return body.Kind(), message
}

// isPage reports whether an answer is a web page, such as those of proxies.
func isPage(data []byte) bool {
	head := bytes.ToLower(data[:min(len(data), 512)])
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html")) ||
		bytes.Contains(head, []byte("<head"))
}

// pageTitle matches the title of a web page.
var pageTitle = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title`) })

// pageText names a web page by its title.
func pageText(data []byte) string {
	const text = "it answered with a web page"
	m := pageTitle().FindSubmatch(data)
	if m == nil {
		return text
	}
	title := strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " ")
	return fmt.Sprintf("%s: %q", text, title)
}
