//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modelClients are the clients of model services that programs use.
func modelClients() kit {
	return kit{name: "models", Needs: map[string]string{
		"openai": "7.59.0", "@anthropic-ai/sdk": "1.14.0", "@ai-sdk/openai-compatible": "3.0.92", "ai": "7.0.173",
	}}
}

// TestModelClients uses the gateway as a model, with the clients of OpenAI, Anthropic and
// Vercel, as they are.
func TestModelClients(t *testing.T) {
	t.Parallel()
	on := section{"enabled": true}
	g := newGateway(t,
		section{"gateway": section{"http": section{"endpoints": section{"chatCompletions": on, "responses": on,
			"messages": on}}}})
	cmd := exec.CommandContext(t.Context(), node(t), "testdata/models.mjs", packages(t, modelClients()), g.HTTP(), token)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, errs.String(), out)
	}
	got := map[string]any{}
	for line := range strings.Lines(string(out)) {
		var l []json.RawMessage
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l) != 2 {
			t.Fatalf("the output is %q", line)
		}
		var name string
		var v any
		if err := json.Unmarshal(l[0], &name); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(l[1], &v); err != nil {
			t.Fatal(err)
		}
		if e, ok := v.(map[string]any); ok { // the texts of errors are tested elsewhere
			text, _ := e["message"].(string)
			for _, part := range [...]string{"Unauthorized", "Use chela", "n is not supported", "scripted refusal"} {
				if strings.Contains(text, part) {
					e["message"] = part
				}
			}
		}
		got[name] = v
	}
	type list = []any
	failed := func(class string, status any, code any, message string) map[string]any {
		e := map[string]any{"error": class, "message": message}
		if status != nil {
			e["status"] = status
		}
		if code != nil {
			e["code"] = code
		}
		return e
	}
	names := list{"chela", "chela/default", "chela/main", "openclaw", "openclaw/default", "openclaw/main"}
	want := map[string]any{
		"openai models":            names,
		"openai model":             "chela/main",
		"openai chat":              list{counted(), "stop", true, true},
		"openai chat stream":       list{counted(), "stop", true, "assistant"},
		"openai chat iterator":     list{counted(), true},
		"openai image":             "seen",
		"openai responses":         list{counted(), "completed", true, "again", true},
		"openai responses stream":  list{counted(), true, "completed", true},
		"openai responses failure": list{"failed", "mock/m refused the request: scripted refusal"},
		"openai no token":          failed("AuthenticationError", 401.0, "invalid_api_key", "Unauthorized"),
		"openai model name":        failed("BadRequestError", 400.0, "model_not_found", "Use chela"),
		"openai n":                 failed("BadRequestError", 400.0, nil, "n is not supported"),
		"openai failure":           failed("InternalServerError", 500.0, "run_error", "scripted refusal"),
		"openai failure stream":    failed("APIError", nil, "run_error", "scripted refusal"),
		"anthropic models":         names,
		"anthropic message":        list{counted(), "end_turn", true, "assistant"},
		"anthropic stream":         list{counted(), "end_turn", true, true},
		"anthropic image":          "seen",
		"anthropic x-api-key":      "end_turn",
		"anthropic no token":       failed("AuthenticationError", 401.0, nil, "Unauthorized"),
		"anthropic model name":     failed("BadRequestError", 400.0, nil, "Use chela"),
		"anthropic failure":        failed("InternalServerError", 500.0, nil, "scripted refusal"),
		"anthropic failure stream": failed("APIError", nil, nil, "scripted refusal"),
		"vercel text":              list{counted(), "stop", true},
		"vercel stream":            list{counted(), "stop", true},
		"vercel no token":          failed("APICallError", 401.0, nil, "Unauthorized"),
		"vercel image":             "seen",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s\n%s", d, errs.String())
	}
	fails := 0
	for _, r := range g.Model.Requests() {
		if _, text := last(r.Body); strings.HasPrefix(text, "fail") {
			fails++
		}
	}
	if fails != 5 { // one for each of the five requests
		t.Errorf("the model was asked to fail %d times: a client repeated a request whose run had failed", fails)
	}
}
