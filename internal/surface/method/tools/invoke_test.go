package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// fails is a tool that fails.
type fails struct{ named }

func (fails) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("no such disk")
}

// asks is a tool that requires approval.
type asks struct{ named }

func (asks) Plan(context.Context, tool.Call) (tool.Plan, error) {
	return tool.Plan{Effect: tool.Acts, Ask: true, Reason: "it acts"}, nil
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(), named{Name: "read"}, named{Name: "exec", InRuns: true},
		fails{named{Name: "boom"}}, asks{named{Name: "danger"}})
	writer := h.Dial(client.Options{Scopes: []string{"operator.write"}})
	defer writer.Close()
	type outcome struct{ Text, Code string }
	for _, tt := range []struct {
		in   wire.ToolsInvoke
		want outcome
	}{
		{wire.ToolsInvoke{Name: "read", Args: json.RawMessage(`{"apiKey":"sesame"}`)}, outcome{Text: "done"}},
		{wire.ToolsInvoke{Name: "exec"}, outcome{Code: "not_found"}},
		{wire.ToolsInvoke{Name: "nope"}, outcome{Code: "not_found"}},
		{wire.ToolsInvoke{Name: "boom"}, outcome{Code: "internal_error"}},
		{wire.ToolsInvoke{Name: "danger"}, outcome{Code: "requires_approval"}},
		{wire.ToolsInvoke{Name: "read", SessionKey: "agent:main:x", AgentID: "other"}, outcome{Code: "validation_error"}},
		{wire.ToolsInvoke{Name: "read", Args: json.RawMessage(`[1]`)}, outcome{Code: "validation_error"}},
	} {
		var got wire.ToolsInvoked
		if err := writer.Call(t.Context(), wire.MethodToolsInvoke, tt.in, &got); err != nil {
			t.Fatal(err)
		}
		o := outcome{}
		if got.Output != nil {
			o.Text = got.Output.Content[0].Text
		}
		if got.Error != nil {
			o.Code = got.Error.Code
		}
		if o != tt.want || got.OK != (tt.want.Code == "") || got.Name != tt.in.Name ||
			got.NeedsApproval != (o.Code == "requires_approval") {
			t.Errorf("%s: %+v %+v, want %+v", tt.in.Name, got, o, tt.want)
		}
	}

	all := methodtest.Do[wire.ToolsCalls](t, h, wire.MethodToolsCalls, wire.ToolsCallsGet{Limit: 4})
	var rows []string
	for _, c := range all.Calls {
		rows = append(rows, strings.Join([]string{c.Principal, c.Tool, c.Decision, c.Rule, c.Outcome}, " "))
	}
	if diff := cmp.Diff([]string{
		"owner danger denied approval error", "owner boom allowed default error", "owner nope refused unknown-tool error",
		"owner exec refused policy direct gateway.tools.deny error",
	}, rows); diff != "" || !all.More {
		t.Errorf("%+v\n%s", all, diff)
	}
	older := methodtest.Do[wire.ToolsCalls](t, h, wire.MethodToolsCalls, wire.ToolsCallsGet{Before: all.Calls[3].Seq})
	if len(older.Calls) != 1 || older.More || older.Calls[0].Args != `{"apiKey":"[redacted]"}` ||
		older.Calls[0].SessionKey != "agent:main:main" {
		t.Errorf("older ones: %+v", older)
	}
	for in, want := range map[wire.ToolsCallsGet]int{
		{Tool: "boom"}:               1,
		{Decision: "refused"}:        2,
		{Outcome: "ok"}:              1,
		{SessionKey: "agent:main:x"}: 0,
		{RunID: "r"}:                 0,
		{Since: 1}:                   5,
	} {
		if got := methodtest.Do[wire.ToolsCalls](t, h, wire.MethodToolsCalls, in); len(got.Calls) != want {
			t.Errorf("%+v: %d calls, want %d", in, len(got.Calls), want)
		}
	}
	for want, in := range map[string]wire.ToolsCallsGet{
		"limit must be": {Limit: 501},
		"unknown agent": {SessionKey: "agent:nope:x"},
	} {
		if err := h.Call(t.Context(), wire.MethodToolsCalls, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", in, err, want)
		}
	}
}
