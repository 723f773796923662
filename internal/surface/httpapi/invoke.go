package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/wireview"
)

// Limits of a request body.
const (
	maxBody  = 2 << 20
	bodyTime = 30 * time.Second // to read all of it
)

// kindInvalid is the type of an error caused by the request.
const kindInvalid = "invalid_request_error"

// toolCall is the body of POST /tools/invoke.
type toolCall struct {
	Tool       string          `json:"tool"`
	Name       string          `json:"name"` // takes precedence over Tool
	Action     string          `json:"action"`
	Args       json.RawMessage `json:"args"`
	SessionKey string          `json:"sessionKey"`
	AgentID    string          `json:"agentId"`
	Key        string          `json:"idempotencyKey"`
}

// invoke executes one tool call.
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
	e := invoke.DirectCall{
		Tool:    in.Tool,
		Action:  in.Action,
		Args:    in.Args,
		Session: in.SessionKey,
		Agent:   in.AgentID,
		Key:     in.Key,
	}
	if in.Name != "" {
		e.Tool = in.Name
	}
	if len(e.Args) > 0 && e.Args[0] != '{' {
		e.Args = nil // treated as absent
	}
	a, err := s.o.Invoke(r.Context(), who, e)
	switch {
	case r.Context().Err() != nil: // the client is gone
	case err != nil:
		s.o.Log.Error("tool call over HTTP failed", "tool", e.Tool, "err", err)
		access.WriteJSON(w, http.StatusInternalServerError,
			refusedCall(invoke.Answer{Refusal: invoke.Failed, Text: "tool execution failed"}))
	case a.Refusal != "":
		access.WriteJSON(w, statusOf(a.Refusal), refusedCall(a))
	default:
		access.WriteJSON(w, http.StatusOK, map[string]any{"ok": true, "result": wireview.Output(a.Result)})
	}
}

// refusedCall returns the answer to a refused or failed call.
func refusedCall(a invoke.Answer) any {
	kind := a.Refusal
	if kind == invoke.BadInput {
		kind = invoke.Failed
	}
	e := map[string]any{"type": kind, "message": a.Text}
	if a.Refusal == invoke.Blocked {
		e["requiresApproval"] = a.Approval
	}
	return map[string]any{"ok": false, "error": e}
}

func statusOf(r invoke.Refusal) int {
	switch r {
	case invoke.Invalid, invoke.BadInput:
		return http.StatusBadRequest
	case invoke.Missing:
		return http.StatusNotFound
	case invoke.Blocked:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// readBody decodes a request's body, one JSON value, and reports whether it
// succeeded. Otherwise it answers the request.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	b, status, why := access.Body(w, r, maxBody, bodyTime)
	if status != 0 {
		access.Error(w, status, kindInvalid, why)
		return false
	}
	if err := json.Unmarshal(b, into); err != nil {
		access.Error(w, http.StatusBadRequest, kindInvalid, "invalid request body: "+err.Error())
		return false
	}
	return true
}

// notAllowed answers requests with other methods than those that are allowed.
func notAllowed(allow ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		access.Error(w, http.StatusMethodNotAllowed, kindInvalid, "want "+strings.Join(allow, " or "))
	}
}
