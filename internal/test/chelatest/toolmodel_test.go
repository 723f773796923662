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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// toolModel is a model server. It requests the tools that the newest message names,
// and answers "done N" after their results.
type toolModel struct {
	seen   func(modelRequest, []modelCall)     // called with each request and the calls in its answer; nil: none
	wait   func(context.Context, modelRequest) // delays the answer after that; nil: not at all
	child  func(n int, id, kind string) int    // numbers the task of the subagent that a call for message n is to start
	serial atomic.Int64                        // of answers with calls: no id is used twice
}

// modelCall is a call in an answer of the model.
type modelCall struct{ id, name string }

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
	session string            // key of the session, if it is that of a subagent
	told    []announcement    // results of subagents
	news    []announcement    // those of told that are newer than all answers
	last    string            // the newest result of a call
}

// announcement is what a request says about the end of a subagent.
type announcement struct{ id, status, session, result string }

// kinds are the messages that the model understands, with the commands that it
// answers them with. %s is the id of the call.
var kinds = map[string][]struct{ name, args string }{
	"plain":  nil,
	"read":   {{"read", `{"path":"notes.txt"}`}},
	"effect": {{"exec", `{"command":"echo %s | tee -a effects.txt"}`}},
	"pair": {{"exec", `{"command":"echo %s | tee -a effects.txt"}`},
		{"exec", `{"command":"echo %s | tee -a effects.txt"}`}},

	"ask":        {{"exec", `{"command":"echo %s | tee -a effects.txt"}`}},
	"background": {{"exec", `{"command":"echo %s | tee -a effects.txt","background":true}`}},
	"base":       {{"read", `{"path":"notes.txt"}`}}, // followed by one of the next
	"steer":      nil,
	"interrupt":  nil,

	// Subagents. The message of the one in the middle of a tree is "boss" or "chief".
	"start": {spawns("effect"), spawns("read")},
	"nest":  {spawns("boss"), spawns("pair")},
	"yield": {spawns("chief"), spawns("effect"), {"sessions_yield", `{}`}},
	"boss":  {spawns("effect"), spawns("plain")},
	"chief": {spawns("read"), spawns("effect"), {"sessions_yield", `{}`}},
}

// spawns returns the call that starts a subagent. %d is the number of its task, which is
// a message like those of persons.
func spawns(kind string) struct{ name, args string } {
	return struct{ name, args string }{"sessions_spawn", `{"task":"` + kind + ` %d","label":"%s"}`}
}

var (
	messagePattern = regexp.MustCompile(
		`\b(plain|read|effect|pair|ask|background|base|steer|interrupt|start|nest|yield|boss|chief) (\d+)`)
	eventPattern = regexp.MustCompile(`(?s)background command .*?(?:has ended|was running).*?(call_\d+_\d+_\d+)`)
	donePattern  = regexp.MustCompile(`^done (\d+)$`)
	tellPattern  = regexp.MustCompile(
		`(?s)The subagent "(call_\d+_\d+_\d+)" (.*?)\.\nSession: (\S+) .*?\n<result>\n(.*?)\n</result>`)
	toldPattern  = regexp.MustCompile(`^The subagent "(call_\d+_\d+_\d+)" `) // the same in the history
	childPattern = regexp.MustCompile(`Your session: (\S+)`)
	taskPattern  = regexp.MustCompile(`"task":"(\w+) %d"`)
)

// serveModel starts a toolModel and returns the configuration that uses it.
func serveModel(t testing.TB, m *toolModel) Config {
	t.Helper()
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	return toolModelConfig(srv.URL)
}

// toolModelConfig returns the configuration that uses a toolModel at a URL. Commands have
// any time to end in the foreground.
func toolModelConfig(url string) Config {
	return Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m", "skipBootstrap": true}`),
		"messages":        json.RawMessage(`{"queue": {"mode": "followup", "cap": 10000}}`),
		"tools":           json.RawMessage(`{"exec": {"mode": "full", "backgroundMs": 600000}}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": "openai-completions", "models": [{"id": "m", "contextWindow": 1000000}]}}}`, url+"/v1")),
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
		case "system":
			if found := childPattern.FindStringSubmatch(contentText(m.Content)); found != nil {
				r.session = found[1]
			}
		case "user":
			for _, found := range tellPattern.FindAllStringSubmatch(contentText(m.Content), -1) {
				a := announcement{found[1], found[2], found[3], found[4]}
				r.told, r.news = append(r.told, a), append(r.news, a)
			}
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
			r.news = nil
			if found := donePattern.FindStringSubmatch(contentText(m.Content)); found != nil {
				n, _ := strconv.Atoi(found[1])
				r.done[n] = true
			}
			for _, c := range m.ToolCalls {
				r.calls = append(r.calls, c.ID)
			}
		case "tool":
			r.last = contentText(m.Content)
			r.results[m.ToolCallID], r.ended = r.last, true
		}
	}
	return r, nil
}

// contentText returns the text of a message.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal(raw, &parts) // else there is no text
	for _, p := range parts {
		text += p.Text + "\n"
	}
	return text
}

// waits reports whether subagents that the newest message asked for have not been told,
// and the message is of a kind that waits for them.
func (r *modelRequest) waits() bool {
	uses := kinds[r.kind]
	if !r.ended || len(uses) == 0 || uses[len(uses)-1].name != "sessions_yield" ||
		strings.Contains(r.last, "nothing to wait for") {
		return false
	}
	return slices.ContainsFunc(r.calls, func(id string) bool {
		return strings.HasPrefix(id, fmt.Sprintf("call_%d_", r.n)) && strings.Contains(r.results[id], `"accepted"`) &&
			!slices.ContainsFunc(r.told, func(a announcement) bool { return a.id == id })
	})
}

// ServeHTTP implements http.Handler.
func (m *toolModel) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, err := parseModelRequest(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	delta, finish := fmt.Sprintf(`{"content":"done %d"}`, r.n), "stop"
	uses := kinds[r.kind]
	switch {
	case r.heard != "":
		delta, uses = fmt.Sprintf(`{"content":"heard %s"}`, r.heard), nil
	case len(r.news) > 0 && r.done[r.n]:
		delta, uses = fmt.Sprintf(`{"content":"heard %s"}`, r.news[len(r.news)-1].id), nil
	case r.waits():
		uses = uses[len(uses)-1:]
	case r.ended:
		uses = nil
	}
	var made []modelCall
	if len(uses) > 0 {
		serial := m.serial.Add(1)
		var calls []string
		for i, u := range uses {
			id := fmt.Sprintf("call_%d_%d_%d", r.n, serial, i)
			if found := taskPattern.FindStringSubmatch(u.args); found != nil {
				u.args = strings.ReplaceAll(u.args, "%d", strconv.Itoa(m.child(r.n, id, found[1])))
			}
			args, _ := json.Marshal(strings.ReplaceAll(u.args, "%s", id))
			made = append(made, modelCall{id, u.name})
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, i,
				id, u.name, args))
		}
		delta, finish = `{"tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	if m.seen != nil {
		m.seen(r, made)
	}
	if m.wait != nil {
		m.wait(req.Context(), r)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range [...]string{`"delta":` + delta + `,"finish_reason":null`,
		`"delta":{},"finish_reason":"` + finish + `"`} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s}]}\n\n", choice)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}
