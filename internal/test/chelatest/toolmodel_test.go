//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// toolModel is a model server. It requests the tools that the newest message names,
// and answers "done N" after their results.
type toolModel struct {
	wait   func(context.Context, modelRequest) // delays the answer; nil: not at all
	seen   func(modelRequest, []string)        // called with each request and the ids of the calls in its answer; nil: none
	serial atomic.Int64                        // of answers with calls: no id is used twice
}

// modelRequest is a request that reached the model.
type modelRequest struct {
	kind    string            // of the newest message
	n       int               // number of the newest message
	users   []int             // numbers of all messages
	calls   []string          // ids of all calls
	results map[string]string // by id of the call
	ended   bool              // there are results after the newest message
	done    map[int]bool      // the messages that were answered
	events  []string          // ids of the calls whose commands in the background have ended
	heard   string            // the last of events, if it is newer than all messages and their answers
}

// kinds are the messages that the model understands, with the commands that it
// answers them with. %s is the id of the call.
var kinds = map[string][]struct{ name, args string }{
	"plain":  nil,
	"read":   {{"read", `{"path":"notes.txt"}`}},
	"effect": {{"exec", `{"command":"echo %s | tee -a effects.txt"}`}},
	"pair":   {{"exec", `{"command":"echo %s | tee -a effects.txt"}`}, {"exec", `{"command":"echo %s | tee -a effects.txt"}`}},

	"ask":        {{"exec", `{"command":"echo %s | tee -a effects.txt"}`}},
	"background": {{"exec", `{"command":"echo %s | tee -a effects.txt","background":true}`}},
	"base":       {{"read", `{"path":"notes.txt"}`}}, // followed by one of the next
	"steer":      nil,
	"interrupt":  nil,
}

var (
	messagePattern = regexp.MustCompile(`\b(plain|read|effect|pair|ask|background|base|steer|interrupt) (\d+)`)
	eventPattern   = regexp.MustCompile(`background command .*?(?:has ended|was running).*?(call_\d+_\d+_\d+)`)
	donePattern    = regexp.MustCompile(`^done (\d+)$`)
)

// serveModel starts a toolModel and returns the configuration that uses it.
func serveModel(t testing.TB, m *toolModel) Config {
	t.Helper()
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	return Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m", "skipBootstrap": true}`),
		"messages":        json.RawMessage(`{"queue": {"mode": "followup", "cap": 10000}}`),
		"tools":           json.RawMessage(`{"exec": {"mode": "full"}}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": "openai-completions", "models": [{"id": "m", "contextWindow": 1000000}]}}}`, srv.URL+"/v1")),
	}
}

// parseModelRequest reads a request.
func parseModelRequest(body io.Reader) (modelRequest, error) {
	r := modelRequest{results: map[string]string{}, done: map[int]bool{}}
	var in struct {
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return r, err
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			for _, found := range messagePattern.FindAllStringSubmatch(string(m.Content), -1) {
				r.kind = found[1]
				r.n, _ = strconv.Atoi(found[2])
				r.users, r.ended, r.heard = append(r.users, r.n), false, ""
			}
			for _, found := range eventPattern.FindAllStringSubmatch(string(m.Content), -1) {
				r.events = append(r.events, found[1])
				if r.done[r.n] {
					r.heard = found[1]
				}
			}
		case "assistant":
			var text string
			if json.Unmarshal(m.Content, &text) == nil {
				if found := donePattern.FindStringSubmatch(text); found != nil {
					n, _ := strconv.Atoi(found[1])
					r.done[n] = true
				}
			}
			for _, c := range m.ToolCalls {
				r.calls = append(r.calls, c.ID)
			}
		case "tool":
			r.results[m.ToolCallID], r.ended = string(m.Content), true
		}
	}
	return r, nil
}

// ServeHTTP implements http.Handler.
func (m *toolModel) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, err := parseModelRequest(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.wait != nil {
		m.wait(req.Context(), r)
	}
	delta, finish := fmt.Sprintf(`{"content":"done %d"}`, r.n), "stop"
	if r.heard != "" {
		delta = fmt.Sprintf(`{"content":"heard %s"}`, r.heard)
	}
	var ids []string
	if uses := kinds[r.kind]; len(uses) > 0 && !r.ended && r.heard == "" {
		serial := m.serial.Add(1)
		var calls []string
		for i, u := range uses {
			id := fmt.Sprintf("call_%d_%d_%d", r.n, serial, i)
			args, _ := json.Marshal(strings.ReplaceAll(u.args, "%s", id))
			ids = append(ids, id)
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, i, id, u.name, args))
		}
		delta, finish = `{"tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	if m.seen != nil {
		m.seen(r, ids)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range [...]string{`"delta":` + delta + `,"finish_reason":null`, `"delta":{},"finish_reason":"` + finish + `"`} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s}]}\n\n", choice)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}
