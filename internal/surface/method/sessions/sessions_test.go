package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// fill creates n sessions; the last one is the newest.
func fill(h *methodtest.Fixture, n int) {
	h.Put(func(tx store.Tx) error {
		now := time.Now().Add(-time.Hour)
		for i := range n {
			at := now.Add(time.Duration(i) * time.Second)
			m := session.Meta{
				Key: chela.SessionKey(fmt.Sprintf("agent:main:s%d", i)), ID: fmt.Sprint("t", i), Agent: "main",
				Title: fmt.Sprint("talk ", i), Created: at, Started: at, Updated: at, Active: at,
			}
			if err := tx.Sessions().Put(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestKeepLast cuts conversations to their last lines, also within their only turn.
func TestKeepLast(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 3)
	call := llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage("{}")}
	turn := func(id string) []*session.Entry {
		var out []*session.Entry
		for i, m := range []*llm.Message{
			llm.User("look " + id), {Role: llm.RoleAssistant, Parts: []llm.Part{{Kind: llm.PartCall, Call: &call}}},
			{Role: llm.RoleTool, CallID: "c1", ToolName: "read", Parts: []llm.Part{llm.Text("found " + id)}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("done " + id)}},
		} {
			out = append(out, &session.Entry{
				ID:      fmt.Sprint(id, i),
				Kind:    session.KindMessage,
				Time:    time.Now(),
				Run:     chela.RunID(id),
				Message: m,
				NanoUSD: -1,
			})
		}
		return out
	}
	h.Put(func(tx store.Tx) error {
		return errors.Join(tx.Sessions().Append("t0", turn("a")...),
			tx.Sessions().Append("t1", append(turn("a"), turn("b")...)...), tx.Sessions().Append("t2", turn("a")...))
	})
	for _, tc := range []struct {
		key   string
		lines int
		kept  int
		want  string // what is sent to the model, without the note about what was left out
	}{
		{"s0", 2, 2, "done a"}, {"s1", 5, 5, "look b found b done b"}, {"s1", 4, 4, "found b done b"}, {"s1", 3, 2, "done b"},
		{"s2", 3, 2, "done a"},
	} {
		out := methodtest.Do[wire.SessionCompacted](t, h, wire.MethodSessionsCompact,
			wire.SessionsCompact{Key: tc.key, MaxLines: tc.lines})
		_, es := stored(t, h, chela.SessionKey("agent:main:"+tc.key))
		var sent []string
		for i, m := range session.Compile(es) {
			if i == 0 && m.Role != llm.RoleUser {
				t.Errorf("%s: the conversation begins with a message of the %s", tc.key, m.Role)
			}
			if text := m.PlainText(); text != "" && !strings.Contains(text, "left out") {
				sent = append(sent, text)
			}
		}
		if got := strings.Join(sent, " "); !out.Compacted || out.Kept != tc.kept || got != tc.want {
			t.Errorf("%s, %d lines: %+v, the model is sent %q, want %q", tc.key, tc.lines, out, got, tc.want)
		}
		if n := len(es); n < 4 {
			t.Errorf("%s: the transcript has %d entries", tc.key, n)
		}
	}
	if out := methodtest.Do[wire.SessionCompacted](t, h, wire.MethodSessionsCompact,
		wire.SessionsCompact{Key: "s0", MaxLines: 2}); out.Compacted || out.Reason != "" || out.Kept != 2 {
		t.Errorf("again: %+v", out)
	}
}

func keys(rows []wire.Session) (out []string) {
	for _, r := range rows {
		out = append(out, strings.TrimPrefix(r.Key, "agent:main:"))
	}
	return out
}

func TestList(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	h.Put(func(tx store.Tx) error {
		at := time.Now().Add(-2 * time.Hour)
		return errors.Join(tx.Sessions().Put(session.Meta{Key: "agent:helper:cron:y", ID: "y", Agent: "helper", Updated: at}),
			tx.Sessions().Put(session.Meta{Key: "agent:helper:subagent:x", ID: "x", Agent: "helper",
				Updated: at.Add(time.Second)}))
	})
	fill(h, 5)
	for _, tc := range []struct {
		in   wire.SessionsList
		want string
		next int // -1: last page
	}{
		{wire.SessionsList{AgentID: "main"}, "[s4 s3 s2 s1 s0]", -1},
		{wire.SessionsList{AgentID: "main", Limit: 2}, "[s4 s3]", 2},
		{wire.SessionsList{AgentID: "main", Limit: 2, Offset: 4}, "[s0]", -1},
		{wire.SessionsList{Search: "TALK 3"}, "[s3]", -1},
		{wire.SessionsList{AgentID: "other"}, "[]", -1},
		{wire.SessionsList{ActiveMinutes: 5}, "[]", -1},
		{wire.SessionsList{AgentID: "helper"}, "[agent:helper:subagent:x agent:helper:cron:y]", -1},
		{wire.SessionsList{AgentID: "helper", NoCron: true}, "[agent:helper:subagent:x]", -1},
		{wire.SessionsList{AgentID: "helper", NoSubagents: true}, "[agent:helper:cron:y]", -1},
		{wire.SessionsList{AgentID: "helper", NoSubagents: true, NoCron: true}, "[]", -1},
	} {
		got := methodtest.Do[wire.SessionList](t, h, wire.MethodSessionsList, tc.in)
		next := -1
		if got.Next != nil {
			next = *got.Next
		}
		if s := fmt.Sprint(keys(got.Sessions)); s != tc.want || next != tc.next || got.HasMore != (next >= 0) ||
			got.Count != len(got.Sessions) {
			t.Errorf("%+v: %s, next %d; want %s, next %d", tc.in, s, next, tc.want, tc.next)
		}
	}
	for _, tc := range []struct {
		method, params, want string
	}{
		{wire.MethodSessionsList, `{"limit":-1}`, "at /limit: must be >= 1"},
		{wire.MethodSessionsList, `{"limit":null}`, "at /limit: must be integer"},
		{wire.MethodSessionsList, `{"limit":0,"offset":-1}`, "at /limit: must be >= 1; at /offset: must be >= 0"},
		{wire.MethodSessionsList, `{"activeMinutes":0}`, "at /activeMinutes: must be >= 1"},
		{wire.MethodSessionsPreview, `{"keys":["main"],"maxChars":-5}`, "at /maxChars: must be >= 1"},
		{wire.MethodSessionsSearch, `{"query":"x","limit":0}`, "at /limit: must be >= 1"},
		{wire.MethodSessionsCompact, `{"key":"main","maxLines":0}`, "at /maxLines: must be >= 1"},
	} {
		err := h.Call(t.Context(), tc.method, json.RawMessage(tc.params), nil)
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.InvalidRequest ||
			e.Message != "invalid "+tc.method+" params: "+tc.want {
			t.Errorf("%s %s: %v, want %s", tc.method, tc.params, err, tc.want)
		}
	}
	got := methodtest.Do[wire.SessionList](t, h, wire.MethodSessionsList,
		map[string]any{"includeGlobal": true, "includeDerivedTitles": true})
	if diff := cmp.Diff(wire.SessionModel{Provider: "mock", Model: "m1", ContextWindow: 100_000,
		Options: []string{"off", "high"}}, got.Defaults); diff != "" {
		t.Error(diff)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("It is sunny."), llmtest.Say("NO_REPLY")))
	for _, text := range []string{"what is the weather", "say nothing"} {
		id, err := h.Send(t.Context(), "main", text)
		if err != nil {
			t.Fatal(err)
		}
		h.End(id)
	}
	got := methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe,
		wire.SessionsDescribe{Key: "main", Preview: true}).Session
	if got == nil {
		t.Fatal("an unknown session")
	}
	if got.Title != "what is the weather" || got.Preview != "say nothing" || got.Active || got.Kind != "direct" ||
		got.OutputTokens == 0 || got.TotalTokens == 0 || got.Cost == nil || got.ContextWindow != 100_000 {
		t.Errorf("session %+v", got)
	}
	none := methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe, wire.SessionKey{Key: "nope"})
	if none.Session != nil {
		t.Errorf("an unknown session: %+v", none.Session)
	}
	methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate, wire.SessionsCreate{Key: "new"})
	p := methodtest.Do[wire.SessionPreviews](t, h, wire.MethodSessionsPreview,
		wire.SessionsPreview{Keys: []string{"main", "nope", "new"}, MaxChars: 7})
	want := []wire.SessionPreview{
		{Key: "main", Status: "ok", Items: []wire.PreviewItem{
			{Role: "user", Text: "what is…"}, {Role: "assistant", Text: "It is s…"}, {Role: "user", Text: "say not…"},
		}},
		{Key: "nope", Status: "missing", Items: []wire.PreviewItem{}},
		{Key: "new", Status: "empty", Items: []wire.PreviewItem{}},
	}
	if diff := cmp.Diff(want, p.Previews); diff != "" {
		t.Error(diff)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 3)
	methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch,
		wire.SessionsPatch{Key: "s1", Label: wire.Some("Kitchen")})
	for _, tc := range []struct {
		in   wire.SessionsResolve
		want string // a key or an error
	}{
		{wire.SessionsResolve{Key: "s0"}, "agent:main:s0"},
		{wire.SessionsResolve{SessionID: "t2"}, "agent:main:s2"},
		{wire.SessionsResolve{Label: "Kitchen"}, "agent:main:s1"},
		{wire.SessionsResolve{Label: "Kitchen", AgentID: "other"}, "sessions.resolve: no such session: not found"},
		{wire.SessionsResolve{Label: "Kitchens", Missing: true}, ""},
		{wire.SessionsResolve{Key: "s0", Label: "Kitchen"}, "sessions.resolve: invalid sessions.resolve params: one of key, sessionId, label, shortId and reference must be set"},
		{wire.SessionsResolve{Reference: &wire.SessionReference{Key: "agent:main:s2", Slug: "s2"}, AgentID: "main"},
			"agent:main:s2"},
		{wire.SessionsResolve{Reference: &wire.SessionReference{Key: "agent:main:kitchen", Slug: "kitchen"}},
			"agent:main:s1"},
		{wire.SessionsResolve{Reference: &wire.SessionReference{Key: "agent:main:cellar", Slug: "cellar"}, Missing: true},
			""},
		{wire.SessionsResolve{Label: "Kitch"}, "sessions.resolve: no such session: not found"},
		{wire.SessionsResolve{Key: "agent:main:", Missing: true},
			`sessions.resolve: invalid sessions.resolve params: session key "agent:main:": want agent:<agent>:<name>`},
		{wire.SessionsResolve{Key: "s9"}, "sessions.resolve: no such session: not found"},
		{wire.SessionsResolve{}, "sessions.resolve: invalid sessions.resolve params: one of key, sessionId, label, shortId and reference must be set"},
	} {
		var r wire.SessionResolved
		var got string
		if err := h.Call(t.Context(), wire.MethodSessionsResolve, tc.in, &r); err != nil {
			got = err.Error()
		} else {
			got = r.Key
		}
		if got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestCreateAndPatch(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("Hello yourself")))
	made := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate,
		wire.SessionsCreate{Key: "work", Label: "Work", Thinking: "high", Message: "hello", SendKey: "k1"})
	if made.Key != "agent:main:work" || made.SessionID == "" || made.Entry.Label != "Work" ||
		!made.RunStarted || made.RunID != "k1" {
		t.Errorf("created %+v", made)
	}
	if end := h.End("k1"); end.State != wire.StateFinal || end.SessionKey != "agent:main:work" {
		t.Errorf("ended with %+v", end)
	}
	again := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate, wire.SessionsCreate{Key: "work"})
	if again.SessionID != made.SessionID || again.Entry.Label != "Work" || again.RunStarted {
		t.Errorf("created again %+v", again)
	}
	fresh := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate, wire.SessionsCreate{Fast: false})
	if fresh.Entry.Fast != false {
		t.Errorf("created with fastMode false: %v", fresh.Entry.Fast)
	}
	for method, params := range map[string]map[string]any{
		wire.MethodSessionsPatch: {"key": "work", "fastMode": "loud"}, wire.MethodSessionsCreate: {"fastMode": 1},
		wire.MethodChatSend: {"sessionKey": "work", "message": "x", "idempotencyKey": "x", "fastMode": "loud"},
	} {
		if err := h.Call(t.Context(), method, params, nil); err == nil ||
			!strings.Contains(err.Error(), "at /fastMode: must be true, false or auto") {
			t.Errorf("%s %v: %v", method, params, err)
		}
	}
	methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate, wire.SessionsCreate{Key: "main"})
	const mainStays = "cannot archive the main session (agent:main:main); reset it instead"
	if err := h.Call(t.Context(), wire.MethodSessionsPatch, map[string]any{"key": "main", "archived": true}, nil); err ==
		nil || !strings.Contains(err.Error(), mainStays) {
		t.Errorf("archive the main session: %v", err)
	}
	many := methodtest.Do[wire.SessionsPatchedMany](t, h, wire.MethodSessionsPatchMany,
		map[string]any{
			"targets": []map[string]any{{"key": "main"}, {"key": "work"}},
			"patch":   map[string]any{"archived": true},
		})
	if o := many.Outcomes; len(o) != 2 || o[0].OK || !strings.Contains(o[0].Error.Message, mainStays) || !o[1].OK {
		t.Errorf("archive many: %+v", o)
	}
	methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch, map[string]any{"key": "main", "archived": false})
	methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch, map[string]any{"key": "work", "archived": false})
	if !strings.HasPrefix(fresh.Key, "agent:main:chat-") {
		t.Errorf("a session without a name has the key %q", fresh.Key)
	}

	patched := methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch, map[string]any{
		"key":           "work",
		"label":         nil,
		"model":         "mock/m2",
		"agentRuntime":  nil,
		"fastMode":      "auto",
		"execHost":      "sandbox",
		"execSecurity":  "deny",
		"execAsk":       "always",
		"verboseLevel":  "full",
		"queueMode":     "collect",
		"responseUsage": "tokens",
		"sendPolicy":    "deny",
	})
	want := wire.SessionEntry{
		Model:       "mock/m2",
		Thinking:    "high",
		Fast:        "auto",
		SessionExec: wire.SessionExec{ExecHost: "sandbox", ExecSecurity: "deny", ExecAsk: "always"},
		Verbose:     "full",
		UsageLine:   "tokens",
		QueueMode:   "collect",
		SendPolicy:  "deny",
	}
	if other := methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch,
		map[string]any{"key": "work", "thinkingLevel": "Highest"}); other.Entry.Thinking != "high" {
		t.Errorf("another name of a level: %q", other.Entry.Thinking)
	}
	if diff := cmp.Diff(want, patched.Entry, cmpopts.IgnoreFields(wire.SessionEntry{}, "SessionID", "CreatedAt", "SinceAt",
		"UpdatedAt", "ReadAt")); diff != "" {
		t.Errorf("patched (-want +got):\n%s", diff)
	}

	for _, tc := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"key": "work", "verboseLevel": "loud"},
			"invalid sessions.patch params: at /verboseLevel: must be one of off, on, full"},
		{map[string]any{"key": "work", "sendPolicy": "off"},
			"invalid sessions.patch params: at /sendPolicy: must be one of allow, deny"},
		{map[string]any{"key": "work", "permissionMode": "full"},
			"invalid sessions.patch params: at root: property 'permissionMode' is not supported"},
		{map[string]any{"key": "work", "thinkingLevel": "hard"},
			"invalid sessions.patch params: at /thinkingLevel: \"hard\" is not a level of mock/m1; use one of off, high"},
		{map[string]any{"key": "work", "thinkingLevel": "medium"},
			"invalid sessions.patch params: at /thinkingLevel: \"medium\" is not a level of mock/m1; use one of off, high"},
		{map[string]any{"key": "nope", "label": "x"}, "no session agent:main:nope: not found"},
		{map[string]any{"key": "work", "mood": "x"}, "invalid sessions.patch params: at root: unexpected property 'mood'"},
		{map[string]any{"key": "work", "label": strings.Repeat("x", 201)},
			"invalid sessions.patch params: at /label: must NOT have more than 200 characters"},
	} {
		err := h.Call(t.Context(), wire.MethodSessionsPatch, tc.params, nil)
		if we, ok := errors.AsType[*wire.Error](err); !ok || we.Message != tc.want {
			t.Errorf("patch %v: %v, want %s", tc.params, err, tc.want)
		}
	}
}

// TestAsSeen changes and deletes a session only if it is as the client saw it.
func TestAsSeen(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 1)
	row := func() wire.Session {
		t.Helper()
		return *methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe, map[string]any{"key": "s0"}).Session
	}
	patch := func(unread bool, seen any) {
		t.Helper()
		methodtest.Do[json.RawMessage](t, h, wire.MethodSessionsPatch,
			map[string]any{"key": "s0", "unread": unread, "expectedMarkedUnreadAt": seen})
	}
	patch(true, nil)
	marked := row().UnreadAt
	if marked == 0 {
		t.Fatal("the session is not marked as unread")
	}
	for _, other := range []any{nil, marked + 1} {
		if patch(false, other); row().UnreadAt != marked {
			t.Errorf("the mark was removed for a client that saw %v", other)
		}
	}
	if patch(false, marked); row().UnreadAt != 0 {
		t.Error("the mark was not removed")
	}
	for params, want := range map[string]string{
		`{"key":"s0","expectedSessionUpdatedAt":1}`:           "changed; reload it and retry",
		`{"key":"s0","deleteTranscript":false}`:               "at /deleteTranscript: a session is deleted with its transcript",
		`{"key":"s0","expectedLifecycleRevision":"r1"}`:       "property 'expectedLifecycleRevision' is not supported",
		`{"key":"s0","expectedSessionId":"another-sessions"}`: "it has another transcript",
	} {
		if err := h.Call(t.Context(), wire.MethodSessionsDelete, json.RawMessage(params), nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("sessions.delete %s: %v, want %s", params, err, want)
		}
	}
	seen := map[string]any{"key": "s0", "deleteTranscript": true, "expectedSessionUpdatedAt": row().UpdatedAt}
	if got := methodtest.Do[wire.SessionDeleted](t, h, wire.MethodSessionsDelete, seen); !got.Deleted {
		t.Errorf("the session as it is was not deleted: %+v", got)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 1)
	reader := h.Dial(client.Options{Scopes: []string{wire.ScopeRead}})
	defer reader.Close()
	writer := h.Dial(client.Options{Scopes: []string{wire.ScopeWrite}})
	defer writer.Close()
	for _, tc := range []struct {
		c      *client.Client
		method string
		params any
		want   string // the missing scope; "": none
	}{
		{reader, wire.MethodSessionsList, nil, ""},
		{reader, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", Label: wire.Some("x")}, wire.ScopeWrite},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", Label: wire.Some("x")}, ""},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", Thinking: wire.Some("high")}, ""},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", Verbose: wire.Some("on")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", ExecAsk: wire.Some("always")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", ExecHost: wire.Some("")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", ExecSecurity: wire.Some("full")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", Send: wire.Some("deny")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", UsageLine: wire.Some("full")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", QueueMode: wire.Some("interrupt")}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsCreate, wire.SessionsCreate{Key: "new", Model: "mock/m2"}, ""},
		{writer, wire.MethodSessionsCompact, wire.SessionKey{Key: "s0"}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsReset, wire.SessionsReset{Key: "s0"}, wire.ScopeAdmin},
		{writer, wire.MethodSessionsDelete, wire.SessionKey{Key: "s0"}, wire.ScopeAdmin},
		{writer, wire.MethodApprovalList, nil, wire.ScopeApprovals},
		{writer, wire.MethodSystemEvent, wire.SystemEvent{Text: "x"}, wire.ScopeAdmin},
	} {
		err := tc.c.Call(t.Context(), tc.method, tc.params, nil)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.method, err)
			}
			continue
		}
		if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.Forbidden ||
			we.Message != "missing scope: "+tc.want {
			t.Errorf("%s: %v, want missing scope %s", tc.method, err, tc.want)
		}
	}
}

func TestResetAndDelete(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}},
		llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}},
	))
	methodtest.Do[wire.Subscribed](t, h, wire.MethodSessionsSubscribe, nil)
	run := func() string {
		id, err := h.Send(t.Context(), "work", "hello")
		if err != nil {
			t.Fatal(err)
		}
		for e := range h.Events() { // until the model is called
			if e.Name == wire.EventAgent && strings.Contains(string(e.Payload), `"phase":"model"`) {
				return id
			}
		}
		return id
	}
	id := run()
	before := methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe, wire.SessionKey{Key: "work"}).Session
	reset := methodtest.Do[wire.SessionReset](t, h, wire.MethodSessionsReset,
		wire.SessionsReset{Key: "work", Reason: "new"})
	if end := h.End(id); end.State != wire.StateAborted {
		t.Errorf("the run aborted by a reset ended with %+v", end)
	}
	if reset.Entry.SessionID == before.SessionID {
		t.Error("the transcript is the same after the reset")
	}
	hist := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "work"})
	if len(hist.Messages) != 0 || hist.SessionID != reset.Entry.SessionID {
		t.Errorf("after the reset: %+v", hist)
	}

	id = run()
	gone := methodtest.Do[wire.SessionDeleted](t, h, wire.MethodSessionsDelete, wire.SessionKey{Key: "work"})
	if end := h.End(id); end.State != wire.StateAborted {
		t.Errorf("the run aborted by a deletion ended with %+v", end)
	}
	if !gone.Deleted {
		t.Errorf("deleted %+v", gone)
	}
	if s := methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe,
		wire.SessionKey{Key: "work"}); s.Session != nil {
		t.Errorf("after the deletion: %+v", s.Session)
	}
	again := methodtest.Do[wire.SessionDeleted](t, h, wire.MethodSessionsDelete, wire.SessionKey{Key: "work"})
	if again.Deleted {
		t.Error("a session was deleted twice")
	}
	if err := h.Call(t.Context(), wire.MethodSessionsDelete, wire.SessionKey{Key: "main"}, nil); err == nil {
		t.Error("the main session was deleted")
	}
}

// between is a store that calls a function once, before the first synced commit
// after it was set that is not the next one.
type between struct {
	store.Store
	skip int
	call func()
}

func (b *between) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if b.call != nil && s == store.Synced {
		if b.skip--; b.skip < 0 {
			call := b.call
			b.call = nil
			call()
		}
	}
	return b.Store.Update(ctx, s, f)
}

// TestChangedMeanwhile changes a session after a request has checked it and
// stopped its run, and before the commit of the request.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st := &between{Store: db}
	h := methodtest.On(t, st, path, llmtest.NewScript())
	reset := func(tx store.Tx) error {
		_, err := session.Reset(tx.Sessions(), "agent:main:s0", "reset", time.Now())
		return err
	}
	unarchive := func(tx store.Tx) error {
		m, err := tx.Sessions().Get("agent:main:s0")
		m.Archived = time.Time{}
		return errors.Join(err, tx.Sessions().Put(m))
	}
	archive := func(tx store.Tx) error {
		m, err := tx.Sessions().Get("agent:main:s0")
		m.Archived = time.Now()
		return errors.Join(err, tx.Sessions().Put(m))
	}
	for _, c := range []struct {
		name, method string
		params       any
		change       func(store.Tx) error
		want         string
	}{
		{"a deletion of one transcript, and a reset", wire.MethodSessionsDelete,
			wire.SessionsDelete{Key: "s0", SessionID: "t0"}, reset, "another transcript"},
		{"a deletion of an archived session, and its return", wire.MethodSessionsDelete,
			wire.SessionsDelete{Key: "s0", Archived: true}, unarchive, "not archived"},
		{"a reset of one transcript, and a reset", wire.MethodSessionsReset, wire.SessionsReset{Key: "s0", SessionID: "t0"},
			reset, "another transcript"},
		{"a reset, and a deletion", wire.MethodSessionsReset, wire.SessionsReset{Key: "s0"},
			func(tx store.Tx) error { return tx.Sessions().Delete("agent:main:s0") }, "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = db.Update(t.Context(), store.Synced, func(tx store.Tx) error { return tx.Sessions().Delete("agent:main:s0") })
			fill(h, 1)
			h.Put(archive)
			var changed session.Meta
			st.skip, st.call = 1, func() {
				err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
					err := c.change(tx)
					changed, _ = tx.Sessions().Get("agent:main:s0")
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := h.Call(t.Context(), c.method, c.params, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if st.call != nil {
				t.Error("the request made one synced commit, want a stop and its own")
			}
			got, _ := store.Get(t.Context(), db,
				func(r store.Reader) (session.Meta, error) { return r.Sessions().Get("agent:main:s0") })
			if diff := cmp.Diff(changed, got); diff != "" {
				t.Errorf("the session (-changed +got):\n%s", diff)
			}
		})
	}
}

// TestChildren checks that a list can be limited to the sessions that a session started.
func TestChildren(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	err := h.Store.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		for i, by := range []chela.SessionKey{"", "agent:main:s0", "agent:main:s0", "agent:main:s1"} {
			at := time.Now().Add(time.Duration(i) * time.Minute)
			m := session.Meta{
				Key:     chela.SessionKey(fmt.Sprintf("agent:main:s%d", i)),
				ID:      fmt.Sprintf("t%d", i),
				Agent:   "main",
				Created: at,
				Started: at,
				Updated: at,
			}
			m.Bounds.SpawnedBy = by
			if err := tx.Sessions().Put(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		in    wire.SessionsList
		want  string
		total int
		more  bool
	}{
		{wire.SessionsList{SpawnedBy: "agent:main:s0"}, "s2 s1", 2, false},
		{wire.SessionsList{SpawnedBy: "s0", Limit: 1}, "s2", 2, true},
		{wire.SessionsList{SpawnedBy: "s0", Limit: 1, Offset: 1}, "s1", 2, false},
		{wire.SessionsList{SpawnedBy: "agent:main:s1"}, "s3", 1, false},
		{wire.SessionsList{SpawnedBy: "agent:main:s3"}, "", 0, false},
	} {
		list := methodtest.Do[wire.SessionList](t, h, wire.MethodSessionsList, tc.in)
		var names []string
		for _, s := range list.Sessions {
			names = append(names, strings.TrimPrefix(s.Key, "agent:main:"))
		}
		if got := strings.Join(names, " "); got != tc.want || list.Total != tc.total || list.HasMore != tc.more {
			t.Errorf("%+v: %q of %d, more %v; want %q of %d, more %v", tc.in, got, list.Total, list.HasMore,
				tc.want, tc.total, tc.more)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("ok"), llmtest.Say("ok")))
	fill(h, 3)
	row := func(key string) *wire.Session {
		return methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe, wire.SessionKey{Key: key}).Session
	}
	patch := func(p map[string]any) {
		t.Helper()
		methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch, p)
	}
	keys := func(in wire.SessionsList) string {
		var names []string
		for _, s := range methodtest.Do[wire.SessionList](t, h, wire.MethodSessionsList, in).Sessions {
			names = append(names, strings.TrimPrefix(s.Key, "agent:main:"))
		}
		return strings.Join(names, " ")
	}
	at := row("s1").UpdatedAt
	patch(map[string]any{"key": "s1", "pinned": true, "category": "House", "icon": "lamp"})
	patch(map[string]any{"key": "s2", "archived": true, "unread": true})
	if s := row("s1"); !s.Pinned || s.PinnedAt == 0 || s.Category != "House" || s.Icon != "lamp" || s.UpdatedAt <= at {
		t.Errorf("s1: %+v", s)
	}
	if s := row("s2"); !s.Archived || !s.Unread || s.UnreadAt == 0 {
		t.Errorf("s2: %+v", s)
	}
	yes := true
	for _, tc := range []struct {
		in   wire.SessionsList
		want string
	}{
		{wire.SessionsList{}, "s1 s0"},
		{wire.SessionsList{Archived: wire.ArchivedOnly}, "s2"},
		{wire.SessionsList{Archived: wire.ArchivedAll}, "s1 s2 s0"},
		{wire.SessionsList{Pinned: &yes}, "s1"},
		{wire.SessionsList{Category: "House"}, "s1"},
		{wire.SessionsList{SpawnedBy: "agent:main:s1"}, ""},
		{wire.SessionsList{HasBoard: true}, ""},
		{wire.SessionsList{BoardFace: "chat"}, "s1 s0"},
		{wire.SessionsList{ActiveOnly: true}, ""},
	} {
		if got := keys(tc.in); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.in, got, tc.want)
		}
	}
	if err := h.Call(t.Context(), wire.MethodSessionsList, map[string]any{"archived": "some"}, nil); err == nil {
		t.Error("archived: some: accepted")
	}
	if err := h.Call(t.Context(), wire.MethodSessionsDelete, wire.SessionsDelete{Key: "s0", Archived: true},
		nil); err == nil {
		t.Error("a session that is not archived was deleted as one")
	}
	writer := h.Dial(client.Options{Scopes: []string{wire.ScopeWrite}})
	defer writer.Close()
	if err := writer.Call(t.Context(), wire.MethodSessionsDelete, wire.SessionsDelete{Key: "s2", Archived: true},
		nil); err != nil {
		t.Errorf("an archived session: %v", err)
	}

	t.Run("an answer is unread until it is marked as read", func(t *testing.T) {
		for range 2 {
			id, err := h.Send(t.Context(), "s0", "hello")
			if err != nil {
				t.Fatal(err)
			}
			h.End(id)
			if !row("s0").Unread {
				t.Error("after an answer: read")
			}
			before := row("s0").UpdatedAt
			patch(map[string]any{"key": "s0", "unread": false})
			if s := row("s0"); s.Unread || s.ReadAt == 0 || s.UpdatedAt != before {
				t.Errorf("after it was marked as read: %+v", s)
			}
		}
	})
	t.Run("several at once", func(t *testing.T) {
		got := methodtest.Do[wire.SessionsPatchedMany](t, h, wire.MethodSessionsPatchMany, map[string]any{
			"targets": []any{map[string]any{"key": "s0"}, map[string]any{"key": "nope"},
				map[string]any{"key": "s1", "expectedSessionId": "t9"}},
			"patch": map[string]any{"category": "Old"},
		}).Outcomes
		if len(got) != 3 || !got[0].OK || got[1].OK || got[2].OK || got[1].Error == nil || row("s0").Category != "Old" ||
			row("s1").Category != "House" {
			t.Errorf("outcomes: %+v", got)
		}
	})
	t.Run("at most a hundred at once, or none", func(t *testing.T) {
		for n, ok := range map[int]bool{0: false, 1: true, 100: true, 101: false} {
			targets := slices.Repeat([]any{map[string]any{"key": "nope"}}, n)
			err := h.Call(t.Context(), wire.MethodSessionsPatchMany,
				map[string]any{"targets": targets, "patch": map[string]any{"category": "Old"}}, nil)
			if ok != (err == nil) {
				t.Errorf("%d targets: %v", n, err)
			}
		}
	})
	t.Run("changes of another transcript are refused", func(t *testing.T) {
		for _, tc := range []struct {
			method string
			params any
		}{
			{wire.MethodSessionsPatch, wire.SessionsPatch{Key: "s0", SessionID: "t9", Label: wire.Some("x")}},
			{wire.MethodSessionsReset, wire.SessionsReset{Key: "s0", SessionID: "t9"}},
			{wire.MethodSessionsDelete, wire.SessionsDelete{Key: "s0", SessionID: "t9"}},
		} {
			if err := h.Call(t.Context(), tc.method, tc.params, nil); err == nil || !strings.Contains(err.Error(), "changed") {
				t.Errorf("%s: %v", tc.method, err)
			}
		}
	})
}

func TestParent(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 1)
	methodtest.Do[wire.SessionPatched](t, h, wire.MethodSessionsPatch, wire.SessionsPatch{
		Key:          "s0",
		Thinking:     wire.Some("high"),
		Label:        wire.Some("old"),
		ExecSecurity: wire.Some("allowlist"),
		ExecAsk:      wire.Some("always"),
	})
	got := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate,
		wire.SessionsCreate{Key: "new", Parent: "s0", DisplayName: "Child"})
	if got.Entry.Thinking != "high" || got.Entry.Label != "Child" || got.Entry.ExecSecurity != "allowlist" ||
		got.Entry.ExecAsk != "always" {
		t.Errorf("created: %+v", got.Entry)
	}
	failed := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate,
		wire.SessionsCreate{Key: "new2", Message: strings.Repeat("x", 2<<20)})
	if failed.RunStarted || failed.RunError == nil {
		t.Errorf("created with a message that is too long: %+v", failed)
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two")))
	send := func(key string) {
		id, err := h.Send(t.Context(), key, "hello")
		if err != nil {
			t.Fatal(err)
		}
		h.End(id)
	}
	send("old")
	got := methodtest.Do[wire.SessionCreated](t, h, wire.MethodSessionsCreate,
		wire.SessionsCreate{Key: "new", Parent: "old", Fork: true})
	send("new")
	for key, want := range map[string]string{"old": "hello one", "new": "hello one hello two"} {
		var words []string
		for _, m := range methodtest.Do[wire.History](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: key}).Messages {
			words = append(words, m.Text())
		}
		if s := strings.Join(words, " "); s != want {
			t.Errorf("%s: %q, want %q", key, s, want)
		}
	}
	if !got.OK || got.SessionID == "" {
		t.Errorf("created: %+v", got)
	}
	for _, in := range []wire.SessionsCreate{
		{Key: "x", Fork: true}, {Key: "x", Fork: true, Parent: "nope"}, {Key: "new", Fork: true, Parent: "old"},
	} {
		if err := h.Call(t.Context(), wire.MethodSessionsCreate, in, nil); err == nil {
			t.Errorf("%+v: accepted", in)
		}
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("ok"), llmtest.Say("ok"),
		llmtest.Say("The user said hello many times."), llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}))
	c := h.Dial(client.Options{})
	defer c.Close()
	if err := c.Call(t.Context(), wire.MethodSessionsSubscribe, nil, nil); err != nil {
		t.Fatal(err)
	}
	compact := func() wire.SessionCompacted {
		return methodtest.Do[wire.SessionCompacted](t, h, wire.MethodSessionsCompact, wire.SessionKey{Key: "work"})
	}
	for i := range 2 {
		id, err := h.Send(t.Context(), "work", strings.Repeat("hello ", 400))
		if err != nil {
			t.Fatal(err)
		}
		h.End(id)
		if got := compact(); !got.OK || got.Key != "agent:main:work" || got.Compacted != (i > 0) ||
			got.Compacted == (got.Reason != "") {
			t.Errorf("after %d turns: %+v", i+1, got)
		}
	}
	var phases []string
	for e := range c.Events() {
		var op wire.SessionOperation
		if e.Name != wire.EventSessionOperation || e.Decode(&op) != nil {
			continue
		}
		phases = append(phases, fmt.Sprint(op.Operation, " ", op.Phase, " ", op.Completed))
		if op.Completed {
			break
		}
	}
	want := []string{"compact start false", "compact end true"} // the first time there is nothing to do
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Send(t.Context(), "work", "hang"); err != nil {
		t.Fatal(err)
	}
	for e := range h.Events() { // until the model is called
		if e.Name == wire.EventAgent && strings.Contains(string(e.Payload), `"phase":"model"`) {
			break
		}
	}
	if got := compact(); got.Compacted || got.Reason != "a run is in progress" {
		t.Errorf("during a run: %+v", got)
	}
}

func TestSubscribedEvents(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("Hello yourself"), llmtest.Say("Hello yourself")))
	c := h.Dial(client.Options{})
	defer c.Close()
	if err := c.Call(t.Context(), wire.MethodSessionsMessagesSubscribe, wire.SessionKey{Key: "work"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Send(t.Context(), "work", "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Send(t.Context(), "other", "hello"); err != nil {
		t.Fatal(err)
	}
	var roles []string
	settled := false
	for !settled {
		e := <-c.Events()
		switch e.Name {
		case wire.EventSessionMessage:
			var m wire.SessionMessage
			if err := e.Decode(&m); err != nil {
				t.Fatal(err)
			}
			if m.SessionKey != "agent:main:work" {
				t.Errorf("received a message in %s", m.SessionKey)
			}
			roles = append(roles, m.Message.Role)
		case wire.EventSessionsChanged:
			var s wire.SessionsChanged
			if err := e.Decode(&s); err != nil {
				t.Fatal(err)
			}
			if s.SessionKey != "agent:main:work" {
				t.Errorf("received a change in %s", s.SessionKey)
			}
			settled = s.Phase == wire.PhaseEnd && !s.Active && s.Session != nil && s.Session.OutputTokens > 0
		}
	}
	if diff := cmp.Diff([]string{"user", "assistant"}, roles); diff != "" {
		t.Error(diff)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 1)
	h.Put(func(tx store.Tx) error {
		return tx.Sessions().Append("t0", &session.Entry{
			ID: "e1", Kind: session.KindMessage, Time: time.Now(), Message: llm.User("hello"), NanoUSD: -1,
		})
	})
	got := methodtest.Do[wire.SessionExported](t, h, wire.MethodSessionsExport, wire.SessionKey{Key: "s0"})
	lines := strings.Split(strings.TrimSpace(got.JSONL), "\n")
	if got.FileName != "t0.jsonl" || len(lines) != 2 || !strings.Contains(lines[1], "hello") {
		t.Errorf("export %+v", got)
	}
	err := h.Call(t.Context(), wire.MethodSessionsExport, wire.SessionKey{Key: "nope"}, nil)
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.InvalidRequest ||
		e.Detail() != wire.DetailNoSession {
		t.Errorf("an unknown session: %v", err)
	}
}

func BenchmarkList100Of10000(b *testing.B) {
	h := methodtest.New(b, llmtest.NewScript())
	fill(h, 10_000)
	b.ResetTimer()
	for range b.N {
		var got wire.SessionList
		if err := h.Call(context.Background(), wire.MethodSessionsList, wire.SessionsList{}, &got); err != nil ||
			len(got.Sessions) != 100 {
			b.Fatal(len(got.Sessions), err)
		}
	}
}
