package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// testService is a service and a thinking model of it.
type testService struct {
	name, base, model string
	levels            []llm.Level
}

var testServices = [...]testService{
	{"openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-x:thinking", []llm.Level{llm.Low, llm.High}},
	{"groq", "https://api.groq.com/openai/v1", "qwen/qwen3-32b", []llm.Level{llm.Adaptive}},
	{"deepseek", "https://api.deepseek.com", "deepseek-v4-pro", []llm.Level{llm.High, llm.Max}},
	{"mistral", "https://api.mistral.ai/v1", "mistral-small-latest", []llm.Level{llm.High}},
	{"vllm", "http://box:8000/v1", "Qwen/Qwen3-8B", []llm.Level{llm.Adaptive}},
	{"llamacpp", "http://box:8080/v1", "Qwen/Qwen3-8B", []llm.Level{llm.Adaptive}},
	{"lmstudio", "http://box:1234/v1", "openai/gpt-oss-20b", []llm.Level{llm.Low, llm.Medium, llm.High}},
	{"ollama", "http://box:11434/v1", "qwen3:8b", llm.Levels[:]},
}

func (p testService) open(srv *llmtest.Server) *Provider {
	url, hc := srv.Pipe()
	srv.Service = wiretest.Named(p.name)
	return New(Options{
		Name: p.name, BaseURL: p.base, Key: secret.New("k"), HTTP: llmtest.RerouteClient(url, hc),
		Model: func(id string) llm.Model { return llm.Model{ID: id, Levels: p.levels} },
	})
}

// long is a conversation with everything that some service handles differently:
// messages of another service and its own, calls, and steering after them.
func (p testService) long(own *llm.Message) *llm.Request {
	foreign := llmtest.ToolCall("call_from_elsewhere", "look", `{"at":1}`)
	r := llmtest.Ask("")
	r.Model, r.Thinking, r.MaxTokens = p.model, llm.XHigh, 1000
	r.Temperature, r.HasTemperature = 1.9, true
	r.System = []llm.Block{{Text: "You are Chela.", Cache: true}}
	r.Tools = []llm.ToolSpec{llmtest.Tool("look")}
	r.Messages = []*llm.Message{
		llm.User("One"), llm.User("two"),
		{Role: llm.RoleAssistant, Provider: "another", Parts: []llm.Part{{Kind: llm.PartCall, Call: &foreign}}},
		named(llmtest.Result(foreign.ID, "x")), llm.User("Wait."), llm.User("Go on."),
		{Role: llm.RoleAssistant, Provider: "another", Parts: []llm.Part{llm.Text("Going on.")}},
		llm.User("Well?"),
	}
	if own != nil {
		r.Messages = append(r.Messages, own)
		for _, c := range own.Calls() {
			r.Messages = append(r.Messages, named(llmtest.Result(c.ID, "y")))
		}
	}
	return r
}

func named(m *llm.Message) *llm.Message { m.ToolName = "look"; return m }

// TestServices runs a turn with thinking, a call and its result at each service.
// The fake rejects what the service would reject and responds in its format.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, p := range testServices {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			step := llmtest.Think("Hm, \"let\" me <see>.", "c2ln",
				llmtest.Calls(llmtest.ToolCall("abcDEF123", "look", `{"at":1}`)))
			step.Parts = append(step.Parts[:1:1], append([]llm.Part{llm.Text("Looking.")}, step.Parts[1:]...)...)
			step.Usage, step.Chunk = &llm.Usage{Input: 100, Output: 20, CacheRead: 30}, 3
			srv := llmtest.NewServer(t, llmtest.OpenAI, step, llmtest.Say("done"), llmtest.Say("off"))
			prov := p.open(srv)
			ask := func(r *llm.Request) *llmtest.Collected {
				t.Helper()
				c, err := llmtest.Collect(t.Context(), prov, r)
				if err != nil || c.Err != nil {
					t.Fatalf("%v, %v", err, c.Err)
				}
				return c
			}
			c := ask(p.long(nil))
			want := []llm.Part{{Kind: llm.PartThinking, Text: step.Parts[0].Text}, step.Parts[1], step.Parts[2]}
			got := append([]llm.Part(nil), c.Message.Parts...)
			got[0].Signature = "" // in the service's own form
			if d := cmp.Diff(want, got); d != "" || c.Message.Stop != llm.StopTools {
				t.Errorf("stop %s, parts (-want +got):\n%s", c.Message.Stop, d)
			}
			t.Run("PROV-17 usage is recorded, wherever the service reports it", func(t *testing.T) {
				if c.Usage != *step.Usage {
					t.Errorf("usage %+v, want %+v", c.Usage, *step.Usage)
				}
			})
			r := p.long(c.Message)
			ask(r)
			if p.name == "openrouter" {
				t.Run("the thinking is sent back as it was received", func(t *testing.T) {
					sent := srv.Requests()[1].Body
					want := `"reasoning_details":[{"type":"reasoning.text","text":"Hm, \"let\" me \u003csee\u003e.","signature":"c2ln","format":"anthropic-claude-v1","index":0}]`
					if !bytes.Contains(sent, []byte(want)) {
						t.Errorf("no %s in %s", want, sent)
					}
				})
			}
			if p.name != "openrouter" && p.name != "lmstudio" { // their models always think
				r.Thinking = llm.Off
				ask(r)
			}
		})
	}
}

// TestQuirks checks that without each quirk its service rejects the request and
// names the field.
func TestQuirks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		service, quirk string
		off            func(*quirks)
		field          string
	}{
		{"openrouter", "form", func(q *quirks) { q.form = noForm }, "reasoning"},
		{"openrouter", "replay", func(q *quirks) { q.thinkingField = "reasoning_content" }, "messages.9.reasoning_content"},
		{"groq", "limit", func(q *quirks) { q.limit = "" }, "max_tokens"},
		{"groq", "words", func(q *quirks) { q.modelWords = nil }, "reasoning_effort"},
		{"deepseek", "form", func(q *quirks) { q.form = effort }, "thinking"},
		{"deepseek", "words", func(q *quirks) { q.words = map[llm.Level]string{llm.XHigh: "xhigh"} }, "reasoning_effort"},
		{"deepseek", "replay", func(q *quirks) { q.thinkingField = "" }, "messages.3.reasoning_content"},
		{"deepseek", "demands", func(q *quirks) { q.demands = ofNone }, "messages.3.reasoning_content"},
		{"mistral", "usage", func(q *quirks) { q.noUsage = false }, "stream_options"},
		{"mistral", "ids", func(q *quirks) { q.callID = 0 }, "messages.3.tool_calls.id"},
		{"mistral", "bridge", func(q *quirks) { q.bridge = false }, "messages.5.role"},
		{"mistral", "temperature", func(q *quirks) { q.maxTemp, q.ownTemperature = 0, ownNone }, "temperature"},
		{"mistral", "temperature of what thinks", func(q *quirks) { q.ownTemperature = ownNone }, "temperature"},
		{"mistral", "words",
			func(q *quirks) { q.words = nil; q.modelWords = map[string]quirkWords{"": {llm.XHigh: "xhigh"}} },
			"reasoning_effort"},
		{"vllm", "bridge", func(q *quirks) { q.bridge = false }, "messages.4.role"},
		{"vllm", "merge", func(q *quirks) { q.merge = false }, "messages.2.role"},
		{"vllm", "form", func(q *quirks) { q.form = effort }, "chat_template_kwargs"},
		{"llamacpp", "bridge", func(q *quirks) { q.bridge = false }, "messages.4.role"},
		{"llamacpp", "merge", func(q *quirks) { q.merge = false }, "messages.2.role"},
		{"llamacpp", "form", func(q *quirks) { q.form = noForm }, "chat_template_kwargs"},
		{"lmstudio", "bridge", func(q *quirks) { q.bridge = false }, "messages.4.role"},
		{"lmstudio", "merge", func(q *quirks) { q.merge = false }, "messages.2.role"},
		{"lmstudio", "form", func(q *quirks) { q.form = noForm }, "reasoning_effort"},
		{"ollama", "empty", func(q *quirks) { q.empty = "" }, "messages.3.content"},
		{"ollama", "words", func(q *quirks) { q.words = map[llm.Level]string{llm.XHigh: "xhigh"} }, "reasoning_effort"},
	} {
		t.Run(tt.service+" "+tt.quirk, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.service, tt.off, tt.field)
		})
	}
	for _, p := range testServices {
		t.Run(p.name+" as an unknown server", func(t *testing.T) {
			t.Parallel()
			refused(t, p.name, func(q *quirks) { *q = quirks{} }, "")
		})
	}
	t.Run("openrouter header", func(t *testing.T) {
		t.Parallel()
		p := testServices[0]
		srv := llmtest.NewServer(t, llmtest.OpenAI)
		srv.Lenient, srv.Service = true, wiretest.Named(p.name)
		url, hc := srv.Pipe()
		plain := New(Options{Name: "mine", BaseURL: "http://box/v1", HTTP: llmtest.RerouteClient(url, hc)})
		_, _ = llmtest.Collect(t.Context(), plain, p.long(nil))
		if no := refusal(srv); no == nil || no.Field != "HTTP-Referer" {
			t.Errorf("rejected for %v", no)
		}
	})
}

// refused calls a service without a quirk and checks that it names the field; ""
// accepts any.
func refused(t *testing.T, service string, off func(*quirks), field string) {
	t.Helper()
	for _, p := range testServices {
		if p.name != service {
			continue
		}
		srv := llmtest.NewServer(t, llmtest.OpenAI)
		srv.Lenient = true
		prov := p.open(srv)
		off(&prov.quirks)
		call := llmtest.Think("Hm.", "c2ln", llmtest.Call("abcDEF123", "look", `{}`))
		own := &llm.Message{Role: llm.RoleAssistant, Provider: p.name, Parts: call.Parts}
		own.Parts[0].Signature = `{"type":"reasoning.text","signature":"c2ln","index":0}`
		prov.repairs.Fix = func(*quirks, string) bool { return false }
		c, err := llmtest.Collect(t.Context(), prov, p.long(own))
		no := refusal(srv)
		if err != nil || no == nil || field != "" && no.Field != field {
			t.Fatalf("rejected for %v (%v, %v), want the field %s", no, err, c.Err, field)
		}
		if e, ok := errors.AsType[*llm.Error](c.Err); !ok || e.Class != llm.ClassFormat ||
			!strings.Contains(e.Message, no.Field) {
			t.Errorf("the error does not name the field %s: %v", no.Field, c.Err)
		}
	}
}

func refusal(srv *llmtest.Server) *wiretest.Refusal {
	for _, r := range srv.Requests() {
		if no, ok := errors.AsType[*wiretest.Refusal](r.Err); ok {
			return no
		}
	}
	return nil
}

// TestServiceErrors tests the errors of services and their classes.
func TestServiceErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		class  llm.Class
		words  string
	}{
		{"openrouter passes an error on", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens.\"}}","provider_name":"X"}}}`, llm.ClassContext, "maximum context length"},
		{"openrouter without credit", 402, `{"error":{"message":"This request requires more credits","code":402}}`,
			llm.ClassBilling, "more credits"},
		{"openrouter no such model", 400, `{"error":{"message":"foo/bar is not a valid model ID","code":400}}`,
			llm.ClassNoModel, "not a valid model"},
		{"groq field", 400, `{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}`, llm.ClassFormat, "reasoning_content"},
		{"groq model is gone", 400, `{"error":{"message":"The model x has been decommissioned","type":"invalid_request_error","code":"model_decommissioned"}}`, llm.ClassNoModel, "decommissioned"},
		{"groq limit", 429, `{"error":{"message":"Rate limit reached for model x: Limit 6000, Used 5000","type":"tokens","code":"rate_limit_exceeded"}}`, llm.ClassRate, "Rate limit"},
		{"deepseek balance", 402,
			`{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`,
			llm.ClassBilling, "Balance"},
		{"deepseek model", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`,
			llm.ClassNoModel, "Not Exist"},
		{"mistral field", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":32000}]},"type":"invalid_request_error","param":null,"code":null}`, llm.ClassFormat, "max_completion_tokens: Extra inputs are not permitted"},
		{"mistral field in a text", 422, `{"object":"error","message":"{\"detail\":[{\"loc\":[\"body\",\"frequency_penalty\"],\"msg\":\"Extra inputs are not permitted\"}]}","type":"internal_error_proxy","code":"1000"}`, llm.ClassFormat, "frequency_penalty: Extra inputs"},
		{"mistral order", 400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`, llm.ClassFormat, "after role 'tool'"},
		{"mistral length", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, llm.ClassContext, "too large"},
		{"mistral model", 400,
			`{"object":"error","message":"Invalid model: mistral-x","type":"invalid_model","param":null,"code":"1500"}`,
			llm.ClassNoModel, "Invalid model"},
		{"mistral key", 401, `{"detail":"Unauthorized"}`, llm.ClassAuth, "Unauthorized"},
		{"vllm length", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, llm.ClassContext, "4096"},
		{"vllm without tools", 400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}`, llm.ClassFormat, "--enable-auto-tool-choice"},
		{"vllm model", 404,
			`{"object":"error","message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}`,
			llm.ClassNoModel, "does not exist"},
		{"llama.cpp length", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`, llm.ClassContext, "available context size"},
		{"llama.cpp length of older builds", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size","type":"server_error"}}`, llm.ClassContext, "available context size"},
		{"llama.cpp loads", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
			llm.ClassOverload, "Loading model"},
		{"lm studio length", 400, `{"error":"Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens"}`, llm.ClassContext, "7866"},
		{"lm studio tool choice", 400,
			`{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`,
			llm.ClassFormat, "tool_choice"},
		{"ollama model", 404,
			`{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`,
			llm.ClassNoModel, "try pulling it first"},
		{"ollama without tools", 400,
			`{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error"}}`, llm.ClassFormat,
			"does not support tools"},
	} {
		body := func([]byte) []byte { return []byte(tt.body) }
		srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Step{Fault: llmtest.Fault{Status: tt.status, Body: body}})
		url, hc := srv.Pipe()
		prov := New(Options{BaseURL: url, HTTP: hc})
		prov.repairs.Fix = func(*quirks, string) bool { return false }
		c, err := llmtest.Collect(t.Context(), prov, llmtest.Ask("Hi"))
		if e, ok := errors.AsType[*llm.Error](c.Err); err != nil || !ok || e.Class != tt.class ||
			!strings.Contains(e.Message, tt.words) {
			t.Errorf("%s: %v (%v), want class %s and %q", tt.name, c.Err, err, tt.class, tt.words)
		}
	}
}

// TestStreamErrors tests errors in streams.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event string
		class llm.Class
	}{
		"openrouter":           {`{"id":"x","error":{"code":502,"message":"Upstream idle timeout"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, llm.ClassNetwork},
		"an error of a choice": {`{"choices":[{"index":0,"delta":{"content":""},"error":{"code":429,"message":"slow down"},"finish_reason":"error"}]}`, llm.ClassRate},
		"deepseek": {
			`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"insufficient_system_resource"}]}`,
			llm.ClassOverload},
		"vllm": {
			`{"object":"error","message":"The engine died","type":"InternalServerError","param":null,"code":500}`,
			llm.ClassNetwork},
		"vllm gives up": {`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort"}]}`,
			llm.ClassNetwork},
		"lm studio": {`{"error":{"message":"Trying to keep the first 9 tokens when context the overflows."}}`,
			llm.ClassContext},
	} {
		d, a := &decoder{}, &dialect.Answer{}
		_, err := d.Decode([]byte(tt.event), a)
		if llm.ClassOf(err) != tt.class {
			t.Errorf("%s: %v, want class %s", name, err, tt.class)
		}
	}
}

// TestCompat checks that the configuration overrides known quirks.
func TestCompat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base, compat string
		thinks             bool
		has, hasNot        []string
	}{
		{"name of the limit", "http://box/v1", `{"maxTokensField":"max_completion_tokens"}`, false,
			[]string{`"max_completion_tokens":1000`}, []string{`"max_tokens"`}},
		{"no usage", "http://box/v1", `{"supportsUsageInStreaming":false}`, false, nil, []string{"stream_options"}},
		{"usage, overridden", "https://api.mistral.ai/v1", `{"supportsUsageInStreaming":true}`, false,
			[]string{"stream_options"}, nil},
		{"developer", "http://box/v1", `{"supportsDeveloperRole":true}`, true, []string{`"role":"developer"`}, nil},
		{"no temperature", "http://box/v1", `{"supportsTemperature":false}`, false, nil, []string{`"temperature"`}},
		{"no tools", "http://box/v1", `{"supportsTools":false}`, false, nil, []string{`"tools"`}},
		{"a cache key", "http://box/v1", `{"supportsPromptCacheKey":true}`, false, []string{`"prompt_cache_key":"s"`}, nil},
		{"string content", "http://box/v1", `{"requiresStringContent":true}`, false, []string{"does not support images"},
			[]string{"image_url"}},
		{"result names", "http://box/v1", `{"requiresToolResultName":true}`, false,
			[]string{`"content":"x","name":"look","role":"tool"`}, nil},
		{"assistant after results", "http://box/v1", `{"requiresAssistantAfterToolResult":true}`, false,
			[]string{`(Noted.)`}, nil},
		{"thinking sent back", "http://box/v1", `{"requiresReasoningContentOnAssistantMessages":true,"thinkingFormat":"zai"}`,
			true, []string{`"reasoning_content":""`, `"thinking":{"type":"enabled"}`}, nil},
		{"an effort", "http://box/v1", `{"supportsReasoningEffort":true}`, true, []string{`"reasoning_effort":"high"`}, nil},
		{"no effort", "https://api.openai.com/v1", `{"supportsReasoningEffort":false}`, true, nil,
			[]string{`reasoning_effort`}},
		{"its own efforts", "http://box/v1", `{"supportedReasoningEfforts":["low"]}`, true,
			[]string{`"reasoning_effort":"low"`}, nil},
		{"names of efforts", "http://box/v1", `{"reasoningEffortMap":{"high":"ultra"}}`, true,
			[]string{`"reasoning_effort":"ultra"`}, nil},
		{"a switch", "http://box/v1", `{"thinkingFormat":"qwen"}`, true, []string{`"enable_thinking":true`},
			[]string{"reasoning_effort"}},
		{"a switch of the template", "http://box/v1", `{"thinkingFormat":"qwen-chat-template"}`, true,
			[]string{`"chat_template_kwargs":{"enable_thinking":true}`}, nil},
		{"a switch in an object", "http://box/v1", `{"thinkingFormat":"together"}`, true,
			[]string{`"reasoning":{"enabled":true}`}, nil},
		{"a level in an object", "http://box/v1", `{"thinkingFormat":"openrouter"}`, true,
			[]string{`"reasoning":{"effort":"high"}`}, nil},
		{"an unknown form", "http://box/v1", `{"thinkingFormat":"telepathy"}`, true, nil, []string{"reasoning", "thinking"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var body []byte
			hc := llmtest.AnswerClient(llmtest.OpenAI, nil, func(b []byte) error { body = b; return nil })
			p := New(Options{
				Name: "mine", BaseURL: tt.base, HTTP: hc,
				Model: func(id string) llm.Model {
					m := llm.Model{ID: id, Images: true}
					if err := json.Unmarshal([]byte(tt.compat), &m.Compat); err != nil || id != "m" {
						t.Errorf("%s: %v", id, err)
					}
					if tt.thinks {
						m.Levels = llm.Levels[:]
					}
					return m
				},
			})
			r := testServices[0].long(nil)
			r.Model, r.Session, r.Thinking = "m", "s", llm.High
			r.Messages[0].Parts = append(r.Messages[0].Parts, llm.Image("image/png", []byte("x")))
			_, _ = llmtest.Collect(t.Context(), p, r)
			for _, s := range tt.has {
				if !bytes.Contains(body, []byte(s)) {
					t.Errorf("no %s in %s", s, body)
				}
			}
			for _, s := range tt.hasNot {
				if bytes.Contains(body, []byte(s)) {
					t.Errorf("%s in %s", s, body)
				}
			}
		})
	}
}

// TestReplay checks that a model behind a router is not asked to think if its last
// turn was another model's and it could not continue.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := testServices[0]
	var body []byte
	hc := llmtest.AnswerClient(llmtest.OpenAI, nil, func(b []byte) error { body = b; return nil })
	prov := New(Options{Name: p.name, BaseURL: p.base, HTTP: hc})
	r := p.long(nil)
	r.Messages = r.Messages[:4]
	for model, want := range map[string]bool{"anthropic/claude-x": false, "openai/gpt-x": true} {
		r.Model = model
		_, _ = llmtest.Collect(t.Context(), prov, r)
		if got := bytes.Contains(body, []byte(`"reasoning":{`)); got != want {
			t.Errorf("%s: asked to think %v, want %v: %s", model, got, want, body)
		}
	}
}

// TestJoin checks that consecutive messages of one role are merged, whatever their
// content.
func TestJoin(t *testing.T) {
	t.Parallel()
	p := New(Options{Name: "vllm", BaseURL: "http://box/v1"})
	image := llm.Image("image/png", []byte("x"))
	say := func(parts ...llm.Part) *llm.Message { return &llm.Message{Role: llm.RoleAssistant, Parts: parts} }
	call := llmtest.ToolCall("c", "look", `{}`)
	r := llmtest.Ask("")
	r.Messages = []*llm.Message{
		llm.User("a"), {Role: llm.RoleUser, Parts: []llm.Part{image}}, llm.User("b \"c\""),
		say(llm.Text("d")), say(llm.Text("e")), say(llm.Part{Kind: llm.PartCall, Call: &call}),
		llmtest.Result("c", "r"), llm.User("f"),
	}
	b, err := p.body(r, p.quirksFor(r.Model))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Messages []struct {
			Role    string
			Content any
			Calls   []any `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes())
	}
	var lines []string
	for _, m := range got.Messages {
		text, _ := m.Content.(string)
		if list, ok := m.Content.([]any); ok {
			for _, p := range list {
				o := p.(map[string]any)
				text += fmt.Sprint("[", o["type"], o["text"], "]")
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %d", m.Role, text, len(m.Calls)))
	}
	want := []string{
		"user [texta][image_url<nil>][textb \"c\"] 0", "assistant d\n\ne 1", "tool r 0", "assistant (Noted.) 0", "user f 0",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("%s\n%s", d, b.Bytes())
	}
}

// TestRows tests which quirks a provider gets from its name and host.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id, host string
		want     string // a quirk of it
	}{
		{"vllm", "box", "merge"}, {"VLLM", "10.0.0.1", "merge"}, {"vllm", "api.groq.com", "limit"},
		{"groq", "proxy", "limit"}, {"my-mistral", "proxy", "callID"}, {"openai", "proxy", ""},
		{"mine", "API.Mistral.AI", "callID"}, {"mine", "notmistral.ai", ""}, {"ollama", "box", "empty"},
	} {
		q := quirksOf(tt.id, tt.host)
		got := ""
		switch {
		case q.merge:
			got = "merge"
		case q.limit != "":
			got = "limit"
		case q.callID > 0:
			got = "callID"
		case q.empty != "":
			got = "empty"
		}
		if got != tt.want {
			t.Errorf("%s at %s: %q, want %q", tt.id, tt.host, got, tt.want)
		}
	}
	h := http.Header{"X-Title": {"Mine"}}
	var sent http.Header
	p := New(Options{Name: "openrouter", HTTP: &http.Client{Transport: seen(func(r *http.Request) { sent = r.Header })},
		BaseURL: "https://openrouter.ai/api/v1", Header: h})
	_, _ = llmtest.Collect(t.Context(), p, llmtest.Ask("Hi"))
	if sent.Get("X-Title") != "Mine" || sent.Get("HTTP-Referer") == "" {
		t.Errorf("headers %v", sent)
	}
}

// TestProxies tests services behind other hosts, which are known by the provider's name
// or the model, and answers of other models in the conversation.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ service, name, model string }{
		{"deepseek", "deepseek", "deepseek-v4-pro"}, {"deepseek", "my-deepseek", "deepseek-v4-pro"},
		{"mistral", "mistral", "mistral-small-latest"}, {"groq", "groq", "qwen/qwen3-32b"},
	} {
		t.Run(tt.name+" is known by its name", func(t *testing.T) {
			for _, p := range testServices {
				if p.name != tt.service {
					continue
				}
				p.base = "http://proxy.local/v1"
				srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Say("one"), llmtest.Say("two"))
				url, hc := srv.Pipe()
				srv.Service = wiretest.Named(tt.service)
				prov := New(Options{Name: tt.name, BaseURL: p.base, HTTP: llmtest.RerouteClient(url, hc),
					Model: func(id string) llm.Model { return llm.Model{ID: id, Levels: p.levels} }})
				c, err := llmtest.Collect(t.Context(), prov, p.long(nil))
				if err != nil || c.Err != nil {
					t.Fatalf("%v, %v", err, c.Err)
				}
				r := p.long(c.Message)
				r.Messages = append(r.Messages, llm.User("Next"))
				if c, err := llmtest.Collect(t.Context(), prov, r); err != nil || c.Err != nil {
					t.Errorf("%v, %v", err, c.Err)
				}
			}
		})
	}
	call := llmtest.ToolCall("c1", "look", `{}`)
	for model, want := range map[string]string{
		"deepseek-v4-flash": `["user","","toolResult",""]`, "vendor/deepseek-r2:free": `["user","","toolResult",""]`,
		"kimi-k2.5": `["user"," ","toolResult",null]`, "moonshotai/Kimi-K2-Thinking": `["user"," ","toolResult",null]`,
		"llama-4": `["user",null,"toolResult",null]`,
	} {
		t.Run(model+" is known by its family", func(t *testing.T) {
			prov := New(Options{Name: "mine", BaseURL: "http://proxy.local/v1"})
			r := llmtest.Ask("")
			r.Model = model
			r.Messages = []*llm.Message{
				llm.User("One"), {Role: llm.RoleAssistant, Provider: "another",
					Parts: []llm.Part{{Kind: llm.PartCall, Call: &call}}},
				llmtest.Result(call.ID, "x"), {Role: llm.RoleAssistant, Provider: "another", Parts: []llm.Part{llm.Text("y")}},
				llm.User("Two"),
			}
			b, err := prov.body(r, prov.quirksFor(model))
			if err != nil {
				t.Fatal(err)
			}
			var sent struct {
				Messages []struct {
					Role    string  `json:"role"`
					Thought *string `json:"reasoning_content"`
				} `json:"messages"`
			}
			if err := json.Unmarshal(b.Bytes(), &sent); err != nil {
				t.Fatal(err)
			}
			got := []any{"user", sent.Messages[1].Thought, "toolResult", sent.Messages[3].Thought}
			if enc, _ := json.Marshal(got); string(enc) != want {
				t.Errorf("thinking of the messages: %s, want %s", enc, want)
			}
		})
	}
}

// TestRepairs checks that a request which a service refuses because of a field is made
// once more in another form, which is remembered.
func TestRepairs(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall("c1", "look", `{}`)
	for _, tt := range []struct {
		name, provider, message string
		has, not                string // in the second request
	}{
		{"thinking is demanded", "mine",
			"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
			`"reasoning_content":" "`, ""},
		{"thinking has to be passed back", "mine",
			"The `reasoning_content` in the thinking mode must be passed back to the API.", `"reasoning_content":" "`, ""},
		{"thinking is refused", "deepseek", "'messages.1' : property 'reasoning_content' is unsupported",
			"", "reasoning_content"},
		{"the limit has another name", "mine",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
			`"max_completion_tokens":1000`, "max_tokens\""},
		{"the limit has its old name", "groq", "max_completion_tokens: Extra inputs are not permitted", `"max_tokens":1000`,
			"max_completion_tokens"},
		{"usage is not reported in streams", "mine", "Unknown field: stream_options", "", "stream_options"},
		{"a fixed temperature", "mine",
			"Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
			"", "temperature"},
		{"no thinking effort", "lmstudio", "Unrecognized request argument supplied: reasoning_effort",
			"", "reasoning_effort"},
		{"ids of nine characters", "mine", "Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9.",
			"", `"id":"c1"`},
		{"no user after a tool", "mine", "Unexpected role 'user' after role 'tool'", "(Noted.)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if all = append(all, string(body)); len(all) == 1 {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": tt.message}})
					return
				}
				_, _ = w.Write(llmtest.Body(llmtest.OpenAI, llmtest.Say("fine")))
			}))
			defer srv.Close()
			prov := New(Options{Name: tt.provider, BaseURL: srv.URL + "/v1", HTTP: srv.Client()})
			r := llmtest.Ask("")
			r.MaxTokens, r.Thinking, r.Temperature, r.HasTemperature = 1000, llm.High, 0.5, true
			r.Messages = []*llm.Message{
				llm.User("One"), {Role: llm.RoleAssistant, Provider: "another",
					Parts: []llm.Part{{Kind: llm.PartCall, Call: &call}}},
				llmtest.Result(call.ID, "x"), llm.User("Two"),
			}
			for range 2 {
				if c, err := llmtest.Collect(t.Context(), prov, r); err != nil || c.Err != nil {
					t.Fatalf("%v, %v", err, c.Err)
				}
			}
			if len(all) != 3 {
				t.Fatalf("%d requests for two answers, want 3", len(all))
			}
			for _, body := range all[1:] {
				if !strings.Contains(body, tt.has) || tt.not != "" && strings.Contains(body, tt.not) {
					t.Errorf("want %q and not %q: %s", tt.has, tt.not, body)
				}
			}
		})
	}
	t.Run("what cannot be repaired is an error after one request", func(t *testing.T) {
		srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Status(400, "max_tokens must be at most 8192"))
		url, hc := srv.Listen()
		c, err := llmtest.Collect(t.Context(), New(Options{Name: "mine", BaseURL: url + "/v1", HTTP: hc}), llmtest.Ask("Hi"))
		if err != nil || llm.ClassOf(c.Err) != llm.ClassFormat || len(srv.Requests()) != 1 {
			t.Errorf("%v, %v after %d requests", err, c.Err, len(srv.Requests()))
		}
	})
}

type seen func(*http.Request)

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return nil, errors.New("no server")
}

// TestServiceRequests compares complete requests for each service, with thinking
// high and without thinking.
func TestServiceRequests(t *testing.T) {
	t.Run("THINK-01 each service is asked to think in its own form", func(t *testing.T) {
		const file = "testdata/services.txtar"
		var got txtar.Archive
		for _, p := range testServices {
			for _, level := range []llm.Level{llm.High, llm.Off} {
				srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Say("ok"))
				srv.Lenient = true // some of the models always think
				prov := p.open(srv)
				r := p.long(nil)
				r.Thinking = level
				_, _ = llmtest.Collect(t.Context(), prov, r)
				var b bytes.Buffer
				if err := json.Indent(&b, srv.Requests()[0].Body, "", "\t"); err != nil {
					t.Fatal(err)
				}
				b.WriteByte('\n')
				got.Files = append(got.Files, txtar.File{Name: p.name + " " + string(level), Data: b.Bytes()})
			}
		}
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(txtar.Format(&got))); d != "" {
			t.Errorf("bodies (-want +got), rewrite with -update:\n%s", d)
		}
	})
}

// FuzzServices checks that a decoded answer of any stream can be sent back to the
// service.
func FuzzServices(f *testing.F) {
	step := llmtest.Think("Hm.", "c2ln", llmtest.Calls(llmtest.ToolCall("abcDEF123", "look", `{"at":1}`)))
	for i := range testServices {
		body := llmtest.ServiceBody(wiretest.Named(testServices[i].name), step)
		f.Add(i, body)
		f.Add(i, body[:len(body)/2])
	}
	f.Add(0, []byte(`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"y"},{"type":"","index":-1,"text":"\ud800"}]},"finish_reason":"stop"}]}`+"\n\n"))
	f.Add(0, []byte(`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","index":1,"text":"b"},{"type":"reasoning.text","text":"c"}]},"finish_reason":"stop"}]}`+"\n\n"))
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		if i < 0 || i >= len(testServices) {
			return
		}
		p := testServices[i]
		at := wiretest.Named(p.name)
		var sent []byte
		var header http.Header
		prov := New(Options{
			Name: p.name, BaseURL: p.base,
			HTTP:  &http.Client{Transport: both{body, func(r *http.Request, b []byte) { header, sent = r.Header, b }}},
			Model: func(id string) llm.Model { return llm.Model{ID: id, Levels: p.levels} },
		})
		c, err := llmtest.Collect(t.Context(), prov, p.long(nil))
		if err != nil {
			t.Fatal(err)
		}
		if c.Message == nil {
			return
		}
		r := p.long(c.Message)
		r.Messages = append(r.Messages, llm.User("Next"))
		if _, err := llmtest.Collect(t.Context(), prov, r); err != nil {
			t.Fatal(err)
		}
		if no := at.Valid(header, sent); no != nil {
			t.Errorf("%s rejects its own answer: %v: %s", p.name, no, sent)
		}
	})
}

// both responds with a body and records each request.
type both struct {
	body []byte
	saw  func(*http.Request, []byte)
}

func (b both) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.saw(r, sent)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(bytes.NewReader(b.body)),
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}, nil
}

// FuzzCompat checks that with any configuration a request is valid JSON without
// duplicate fields.
func FuzzCompat(f *testing.F) {
	f.Add(`{"maxTokensField":"max_completion_tokens","thinkingFormat":"deepseek"}`, "high", "text")
	f.Add(`{"reasoningEffortMap":{"high":"\"","off":"x"},"requiresStringContent":true}`, "off", "\xff")
	f.Add(`{"supportedReasoningEfforts":["none",""],"requiresReasoningContentOnAssistantMessages":true}`, "max", "")
	f.Fuzz(func(t *testing.T, compat, level, text string) {
		var c llm.Compat
		if json.Unmarshal([]byte(compat), &c) != nil {
			return
		}
		p := New(Options{Name: "mine", BaseURL: "http://box/v1", Model: func(id string) llm.Model {
			return llm.Model{ID: id, Levels: llm.Levels[:], Images: true, Compat: c}
		}})
		r := testServices[0].long(&llm.Message{Role: llm.RoleAssistant, Provider: "mine",
			Parts: []llm.Part{{Kind: llm.PartThinking, Text: text}, llm.Text("x" + text)}})
		r.Messages = append(r.Messages, llm.User("x"+text))
		r.Thinking = llm.Level(level)
		b, err := p.body(r, p.quirksFor(r.Model))
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Errorf("%s", b.Bytes())
		}
	})
}
