package run_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/run"
)

// TestOverridesEqual changes each field of a value with all fields set.
func TestOverridesEqual(t *testing.T) {
	t.Parallel()
	all := run.Overrides{
		Model:      "a/b",
		Think:      "low",
		Fast:       "on",
		Exec:       run.Exec{Ask: "always"},
		Verbose:    "on",
		Reasoning:  "on",
		Elevated:   "ask",
		Lane:       "cron",
		Timeout:    time.Minute,
		Tools:      run.Tools{Allow: []string{"read"}, Deny: []string{"exec"}},
		Prompt:     "Be short.",
		PromptMode: "none",
		Context:    run.ContextLight,

		Deliver: run.Delivery{Mode: run.DeliverNowhere},
		Shared:  true,
	}
	if !all.Equal(all) || all.IsZero() || !(run.Overrides{}).IsZero() {
		t.Error("a value is not equal to itself")
	}
	for i := range reflect.TypeFor[run.Overrides]().NumField() {
		name := reflect.TypeFor[run.Overrides]().Field(i).Name
		without, only := all, run.Overrides{}
		reflect.ValueOf(&without).Elem().Field(i).SetZero()
		reflect.ValueOf(&only).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
		if all.Equal(without) || without.Equal(all) {
			t.Errorf("equal without %s", name)
		}
		if only.IsZero() {
			t.Errorf("zero with %s", name)
		}
	}
	for _, tools := range []run.Tools{{Allow: []string{"read"}}, {Deny: []string{"exec"}},
		{Allow: []string{"exec"}, Deny: []string{"read"}}} {
		if tools.IsZero() || tools.Equal(all.Tools) {
			t.Errorf("%+v is zero, or equal to %+v", tools, all.Tools)
		}
	}
}

func TestToolsPermits(t *testing.T) {
	t.Parallel()
	match := func(patterns []string, name string) bool { return slices.Contains(patterns, name) }
	for _, c := range []struct {
		tools run.Tools
		want  bool
	}{
		{run.Tools{}, true},
		{run.Tools{Allow: []string{"read"}}, true},
		{run.Tools{Allow: []string{"exec"}}, false},
		{run.Tools{Deny: []string{"read"}}, false},
		{run.Tools{Deny: []string{"exec"}}, true},
		{run.Tools{Allow: []string{"read"}, Deny: []string{"read"}}, false},
	} {
		if got := c.tools.Permits("read", match); got != c.want {
			t.Errorf("%+v: %v", c.tools, got)
		}
	}
}
