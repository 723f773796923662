package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
)

// A server with rights is confined to them.
func TestCage(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	cage := native.New(native.Options{Home: home, Layers: t.TempDir()})
	defer cage.Close()
	if l := cage.Level(t.Context()); !l.Complete {
		t.Log(l.Reason)
		needtest.Missing(t, "user namespaces")
	}
	s := program(t, "good")
	s.Dir, s.Plugin = filepath.Join(home, "work"), "notes"
	s.Rights = &sandbox.Rights{Workspace: s.Dir, Read: []string{filepath.Dir(s.Command)}}
	inside, outside := filepath.Join(s.Dir, "a.txt"), filepath.Join(home, "b.txt")
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{inside, outside} {
		if err := os.WriteFile(name, []byte("some notes"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed, notify := signal()
	p := newPool(t, mcp.Options{Cage: cage, Changed: notify})
	tools := inForce(t, p, map[string]core.Server{"srv": s}, changed, 1)
	if text, err := call(t, tools["srv__read"], inside); err != nil || !strings.Contains(text, "some notes") {
		t.Errorf("a file of the workspace: %s, %v", text, err)
	}
	if text, err := call(t, tools["srv__read"], outside); err != nil || !strings.Contains(text, "no such file") {
		t.Errorf("a file outside: %s, %v", text, err)
	}
	if _, err := call(t, tools["srv__crash"], ""); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("a crash: %v", err)
	}
	if _, err := call(t, tools["srv__echo"], ""); err != nil {
		t.Error(err)
	}
}
