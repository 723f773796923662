package llm_test

import (
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status        int
		kind, message string
		want          llm.Class
	}{
		{401, "", "no", llm.ClassAuth},
		{403, "", "no", llm.ClassAuth},
		{402, "", "no", llm.ClassBilling},
		{400, "", "Your Credit Balance is too low", llm.ClassBilling},
		{403, "insufficient_quota", "no", llm.ClassBilling},
		{429, "insufficient_quota", "no", llm.ClassBilling},
		{500, "", "billing", llm.ClassNetwork}, // of the service itself
		{429, "", "slow down", llm.ClassRate},
		{503, "", "", llm.ClassOverload},
		{529, "", "", llm.ClassOverload},
		{500, "Overloaded_Error", "", llm.ClassOverload},
		{408, "", "", llm.ClassTimeout},
		{413, "", "", llm.ClassContext},
		{400, "", "Prompt is too long", llm.ClassContext},
		{422, "context_length_exceeded", "", llm.ClassContext},
		{500, "", "the context window is full", llm.ClassContext},
		{0, "", "maximum context", llm.ClassContext},
		{404, "", "prompt is too long", llm.ClassNoModel},
		{400, "", "model not exist", llm.ClassNoModel},
		{422, "model_not_found", "", llm.ClassNoModel},
		{500, "", "", llm.ClassNetwork},
		{502, "model_not_found", "", llm.ClassNetwork},
		{0, "", "", llm.ClassNetwork},
		{400, "", "no", llm.ClassFormat},
		{422, "", "no", llm.ClassFormat},
	} {
		if got := llm.Classify(c.status, c.kind, c.message); got != c.want {
			t.Errorf("Classify(%d, %q, %q) = %s, want %s", c.status, c.kind, c.message, got, c.want)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection reset")
	for _, c := range []struct {
		err  *llm.Error
		want string
	}{
		{&llm.Error{
			Class:    llm.ClassRate,
			Provider: "p",
			Model:    "m",
			Status:   429,
			Message:  "slow",
			Err:      cause,
		}, "p/m: rate_limit (http 429): slow"},
		{&llm.Error{Class: llm.ClassNetwork, Provider: "p", Err: cause}, "p: network: connection reset"},
		{&llm.Error{Class: llm.ClassAuth, Provider: "p"}, "p: auth"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if got := errors.Is(c.err, cause); got != (c.err.Err != nil) {
			t.Errorf("%s: its cause is found: %v", c.want, got)
		}
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		supports *bool
		want     bool
	}{{nil, true}, {&yes, true}, {&no, false}} {
		if got := (llm.Compat{SupportsTools: c.supports}).Tools(); got != c.want {
			t.Errorf("tools %v, want %v", got, c.want)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	p := llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for _, c := range []struct {
		used llm.Usage
		want int64
	}{
		{llm.Usage{Input: 1000}, 3_000_000}, {llm.Usage{Output: 1000}, 15_000_000},
		{llm.Usage{CacheRead: 1000}, 300_000}, {llm.Usage{CacheWrite: 1000}, 3_750_000},
	} {
		if got := p.Cost(c.used); got != c.want {
			t.Errorf("cost of %+v: %d, want %d", c.used, got, c.want)
		}
	}
	if got := (&llm.Price{Input: 0.0006}).Cost(llm.Usage{Input: 1}); got != 1 {
		t.Errorf("a part of a billionth costs %d", got)
	}
	for size, want := range map[int]int{0: 200_000, 8000: 8000, 1_000_000: 1_000_000} {
		if got := (llm.Model{Context: size}).Window(); got != want {
			t.Errorf("window of a model with %d tokens: %d", size, got)
		}
	}
	for in, want := range map[string]llm.Ref{
		"OpenAI/GPT-5": {Provider: "openai", Model: "GPT-5"}, " a/b/c ": {Provider: "a", Model: "b/c"},
		"alone": {Model: "alone"},
	} {
		if got, err := llm.ParseRef(in); got != want || err != nil {
			t.Errorf("ParseRef(%q) = %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", " ", "a/", "/b", "/"} {
		if got, err := llm.ParseRef(in); err == nil {
			t.Errorf("ParseRef(%q) = %+v", in, got)
		}
	}
}
