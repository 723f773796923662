package inbound

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
)

// fakeConfiguration records its calls.
type fakeConfiguration struct{ calls []string }

func (w *fakeConfiguration) Get(path string) (string, error) {
	w.calls = append(w.calls, "get "+path)
	return `{"a": 1}`, nil
}

func (w *fakeConfiguration) Set(_ context.Context, path, value string) (bool, error) {
	w.calls = append(w.calls, "set "+path+" to "+value)
	return path != "cold", nil
}

func (w *fakeConfiguration) Unset(_ context.Context, path string) (bool, error) {
	w.calls = append(w.calls, "unset "+path)
	return true, &chela.Error{Message: "it is not set", Hint: "chela config get"}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.replied("/config show", "/config is disabled")
	w := &fakeConfiguration{}
	b.o.Configuration = func() Configuration { return w }
	b.gate = New(b.o)
	for _, tt := range []struct{ say, answer string }{
		{"/config", `{"a": 1}`}, {"/config SHOW a.b", `{"a": 1}`}, {"/config get a", `{"a": 1}`},
		{"/config set a.b=[1, 2]", "a.b is set; this takes effect immediately."},
		{"/config set cold  = two words", "cold is set; this takes effect after a restart."},
		{"/config set a x=y", "a is set"}, {"/config unset a", "it is not set (chela config get)"},
		{"/config get", "Usage: /config show [path]"}, {"/config set a", "Usage: /config show [path]"},
		{"/config unset a b", "Usage: /config show [path]"}, {"/config show a b", "Usage: /config show [path]"},
	} {
		b.replied(tt.say, tt.answer)
	}
	if diff := cmp.Diff([]string{"get ", "get a.b", "get a", "set a.b to [1, 2]", "set cold to two words", "set a to x=y",
		"unset a"}, w.calls); diff != "" {
		t.Error(diff)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.replied("/tools", "No tools are available here.")
	b.o.Tools = func(_ context.Context, who chela.Principal, key chela.SessionKey) ([]tool.Spec, error) {
		if who.ID != "owner" || key != mainKey {
			t.Errorf("tools of %s in %s", who.ID, key)
		}
		return []tool.Spec{{Name: "ls", Description: "List a folder. Sorted."},
			{Name: "read", Description: "Read a file\nor a part"}}, nil
	}
	b.gate = New(b.o)
	b.replied("/tools", "Tools available here: ls, read\n")
	b.replied("/tools verbose", "\n- ls: List a folder.\n- read: Read a file")
	b.replied("/tools all", "Usage: /tools [verbose]")
}
