package agents_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	list := methodtest.Do[wire.AgentsList](t, h, wire.MethodAgentsList, nil)
	levels := []wire.Level{{ID: "off", Label: "off"}, {ID: "low", Label: "low"}, {ID: "high", Label: "high"}}
	want := wire.AgentsList{
		DefaultID: "main",
		Ownership: "sole",
		MainKey:   "main",
		Scope:     "per-sender",
		Agents: []wire.AgentInfo{{
			ID: "main", Name: "Chela", Kind: "agent", Identity: &wire.AgentProfile{Name: "Chela"}, Workspace: h.Workspace,
			Model: wire.AgentModel{Primary: "mock/m1"}, Levels: levels, Options: []string{"off", "low", "high"},
			DefaultLevel: "off",
		}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	id := methodtest.Do[wire.AgentIdentity](t, h, wire.MethodAgentIdentity,
		wire.AgentIdentityGet{SessionKey: "agent:main:x"})
	if diff := cmp.Diff(wire.AgentIdentity{AgentID: "main", Name: "Chela", Source: "default", Avatar: "C"},
		id); diff != "" {
		t.Error(diff)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	list := methodtest.Do[wire.AgentFiles](t, h, wire.MethodAgentsFilesList, wire.AgentID{ID: "main"})
	if len(list.Files) != len(prompt.Names()) || list.Workspace != h.Workspace || !list.Files[0].Missing ||
		list.Files[0].Expected {
		t.Errorf("files of an empty workspace: %+v", list)
	}
	if last := list.Files[len(list.Files)-1]; last.Name != "MEMORY.md" || !last.Expected {
		t.Errorf("the last file is %+v, want an optional MEMORY.md", last)
	}

	set := methodtest.Do[wire.AgentFileWritten](t, h, wire.MethodAgentsFilesSet,
		wire.AgentFileSet{AgentID: "main", Name: "SOUL.md", Content: "be kind\n"})
	got := methodtest.Do[wire.AgentFileGot](t, h, wire.MethodAgentsFilesGet,
		wire.AgentFileGet{AgentID: "main", Name: "SOUL.md"})
	if diff := cmp.Diff(set.File, got.File); diff != "" || *got.File.Content != "be kind\n" || got.File.Size != 8 ||
		got.File.UpdatedAt == 0 {
		t.Errorf("written %+v, got %+v", set.File, got.File)
	}
	if b, err := os.ReadFile(filepath.Join(h.Workspace, "SOUL.md")); err != nil || string(b) != "be kind\n" {
		t.Errorf("on disk: %q, %v", b, err)
	}
	if got := methodtest.Do[wire.AgentFileGot](t, h, wire.MethodAgentsFilesGet,
		wire.AgentFileGet{AgentID: "main", Name: "USER.md"}); !got.File.Missing || got.File.Content != nil {
		t.Errorf("a missing file: %+v", got.File)
	}

	write := func(hash, text string) error {
		return h.Call(t.Context(), wire.MethodAgentsFilesSet,
			wire.AgentFileSet{AgentID: "main", Name: "SOUL.md", Content: text, Hash: hash}, nil)
	}
	if err := write(strings.ToUpper(got.File.Hash), "be kinder\n"); err != nil {
		t.Errorf("the content that was read: %v", err)
	}
	err := write(got.File.Hash, "be rude\n")
	we, ok := errors.AsType[*wire.Error](err)
	if !ok || we.Message != "SOUL.md changed since it was read; read it again" ||
		!strings.Contains(string(we.Details), fmt.Sprintf("%x", sha256.Sum256([]byte("be kinder\n")))) {
		t.Errorf("content that has changed: %v", err)
	}
	if err := os.Remove(filepath.Join(h.Workspace, "SOUL.md")); err != nil {
		t.Fatal(err)
	}
	if err := write(got.File.Hash, "be rude\n"); err == nil ||
		!strings.Contains(err.Error(), "changed since it was read") {
		t.Errorf("a file that was removed: %v", err)
	}

	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("hidden"), 0o600),
		os.Symlink(outside, filepath.Join(h.Workspace, "TOOLS.md"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method string
		params any
		want   string
	}{
		{wire.MethodAgentIdentity, wire.AgentIdentityGet{AgentID: "nope"}, `unknown agent id "nope"`},
		{wire.MethodAgentsFilesList, wire.AgentID{ID: "nope"}, `unknown agent id "nope"`},
		{wire.MethodAgentsFilesList, nil, "must have required property 'agentId'"},
		{wire.MethodAgentsFilesGet, wire.AgentFileGet{AgentID: "main", Name: "../x"}, `unsupported file "../x"`},
		{wire.MethodAgentsFilesGet, wire.AgentFileGet{AgentID: "main", Name: "AGENTS.md/."}, "unsupported file"},
		{wire.MethodAgentsFilesGet, wire.AgentFileGet{AgentID: "main", Name: "TOOLS.md"}, "escapes"},
		{wire.MethodAgentsFilesSet, wire.AgentFileSet{AgentID: "main", Name: "TOOLS.md", Content: "x"}, "escapes"},
		{wire.MethodAgentsFilesSet, wire.AgentFileSet{AgentID: "main", Name: "notes.md", Content: "x"}, "unsupported file"},
		{wire.MethodAgentsFilesSet,
			wire.AgentFileSet{AgentID: "main", Name: "SOUL.md", Content: strings.Repeat("x", prompt.MaxWrite+1)}, "exceed"},
	} {
		err := h.Call(t.Context(), tt.method, tt.params, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s %+.40v: %v, want %q", tt.method, tt.params, err, tt.want)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "hidden" {
		t.Errorf("the target of a link: %q, %v", b, err)
	}
	reader := h.Dial(client.Options{Scopes: []string{"operator.read"}})
	defer reader.Close()
	err = reader.Call(t.Context(), wire.MethodAgentsFilesSet,
		wire.AgentFileSet{AgentID: "main", Name: "SOUL.md", Content: "x"}, nil)
	if we, ok = errors.AsType[*wire.Error](err); !ok || we.Detail() != wire.DetailMissingScope {
		t.Errorf("written with the read scope: %v", err)
	}
}
