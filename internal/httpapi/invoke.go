package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/shape"
)

// Bounds of a request that has a body.
const (
	maxBody  = 2 << 20
	bodyTime = 30 * time.Second // for all of it to come
)

// kindInvalid is the type of an error of the request itself.
const kindInvalid = "invalid_request_error"

// toolCall is the body of POST /tools/invoke.
type toolCall struct {
	Tool       string          `json:"tool"`
	Name       string          `json:"name"` // goes before Tool
	Action     string          `json:"action"`
	Args       json.RawMessage `json:"args"`
	SessionKey string          `json:"sessionKey"`
	AgentID    string          `json:"agentId"`
	Key        string          `json:"idempotencyKey"`
}

// invoke carries out a call of one tool.
func (s server) invoke(w http.ResponseWriter, r *http.Request) {
	who := chela.PrincipalFrom(r.Context())
	if !who.May(chela.ScopeWrite) {
		access.Error(w, http.StatusForbidden, "forbidden", "missing scope: "+string(chela.ScopeWrite))
		return
	}
	var in toolCall
	if !readBody(w, r, &in) {
		return
	}
	e := invoke.Errand{Tool: in.Tool, Action: in.Action, Args: in.Args, Session: in.SessionKey, Agent: in.AgentID, Key: in.Key}
	if in.Name != "" {
		e.Tool = in.Name
	}
	if len(e.Args) > 0 && e.Args[0] != '{' {
		e.Args = nil // as if there were none
	}
	a, err := s.o.Invoke(r.Context(), who, e)
	switch {
	case r.Context().Err() != nil: // nobody is there to be answered
	case err != nil:
		s.o.Log.Error("call of a tool over HTTP", "tool", e.Tool, "err", err)
		s.write(w, http.StatusInternalServerError, refusedCall(invoke.Answer{Refusal: invoke.Broken, Text: "tool execution failed"}))
	case a.Refusal != "":
		s.write(w, statusOf(a.Refusal), refusedCall(a))
	default:
		s.write(w, http.StatusOK, map[string]any{"ok": true, "result": shape.Output(a.Result)})
	}
}

// refusedCall is the answer to a call that came to nothing.
func refusedCall(a invoke.Answer) any {
	kind := a.Refusal
	if kind == invoke.Mistaken {
		kind = invoke.Broken
	}
	e := map[string]any{"type": kind, "message": a.Text}
	if a.Refusal == invoke.Blocked {
		e["requiresApproval"] = a.Approval
	}
	return map[string]any{"ok": false, "error": e}
}

func statusOf(r invoke.Refusal) int {
	switch r {
	case invoke.Invalid, invoke.Mistaken:
		return http.StatusBadRequest
	case invoke.Missing:
		return http.StatusNotFound
	case invoke.Blocked:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// readBody reads a request's body, one JSON value, and reports whether it
// could. If not, the request is answered.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // a connection without deadlines has none
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		access.Error(w, http.StatusRequestEntityTooLarge, kindInvalid, "Payload too large")
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		access.Error(w, http.StatusRequestTimeout, kindInvalid, "Request body timeout")
		return false
	case err != nil:
		access.Error(w, http.StatusBadRequest, kindInvalid, "the body could not be read")
		return false
	}
	_ = c.SetReadDeadline(time.Time{})
	if err := json.Unmarshal(b, into); err != nil {
		access.Error(w, http.StatusBadRequest, kindInvalid, "the body is not the JSON object that is expected: "+err.Error())
		return false
	}
	return true
}

// notAllowed answers a method that a path does not have.
func notAllowed(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}
