package agents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestWorkspace(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	dir := h.Workspace
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	for name, text := range map[string]string{
		"b.txt":        "tea\n",
		"notes/a.md":   "# A",
		"notes/deep/x": "x",
		"pic.png":      png,
		"blob":         "\xff\xfe\x00",
		"big":          strings.Repeat("x", 257<<10),
	} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("hidden"), 0o600), os.Symlink(outside, filepath.Join(dir, "leak")),
		os.Symlink(filepath.Dir(outside), filepath.Join(dir, "away"))); err != nil {
		t.Fatal(err)
	}
	names := func(e []wire.WorkspaceEntry) string {
		var s []string
		for _, x := range e {
			s = append(s, x.Kind[:1]+":"+x.Path)
		}
		return strings.Join(s, " ")
	}
	list := func(in wire.WorkspaceList) wire.WorkspaceEntries {
		in.AgentID = "main"
		return methodtest.Do[wire.WorkspaceEntries](t, h, wire.MethodWorkspaceList, in)
	}
	if got := list(wire.WorkspaceList{}); names(got.Entries) != "d:notes f:b.txt f:big f:blob f:pic.png" ||
		got.Parent != nil || got.Total != 5 {
		t.Errorf("the workspace: %s, %+v", names(got.Entries), got)
	}
	if got := list(wire.WorkspaceList{Offset: 1, Limit: 2}); names(got.Entries) != "f:b.txt f:big" ||
		got.Total != 5 || got.Offset != 1 {
		t.Errorf("a part: %s", names(got.Entries))
	}
	if got := list(wire.WorkspaceList{Offset: 99}); len(got.Entries) != 0 || got.Total != 5 {
		t.Errorf("beyond the end: %+v", got)
	}
	if got := list(wire.WorkspaceList{Path: "/notes/"}); names(got.Entries) != "d:notes/deep f:notes/a.md" ||
		*got.Parent != "" || got.Path != "notes" {
		t.Errorf("a folder: %s", names(got.Entries))
	}
	for p, want := range map[string]string{
		"b.txt":         "utf8 text/plain; charset=utf-8 tea\n",
		"./notes//a.md": "utf8 text/plain; charset=utf-8 # A",
		"pic.png":       "base64 image/png iVBORw0KGgoAAA==",
	} {
		got := methodtest.Do[wire.WorkspaceGot](t, h, wire.MethodWorkspaceGet,
			wire.WorkspaceGet{AgentID: "main", Path: p}).File
		if s := fmt.Sprintf("%s %s %s", got.Encoding, got.MIME, got.Content); s != want || got.UpdatedAt == 0 {
			t.Errorf("%s: %q, want %q", p, s, want)
		}
	}
	for _, tt := range []struct{ path, want string }{
		{"../secret", "below the workspace"}, {"notes/../../x", "below the workspace"},
		{"a\\b", "below the workspace"}, {"leak", "not found"},
		{"away/secret", "not found"}, {"notes", "not found"}, {"nothing", "not found"}, {"/", "not found"},
		{"blob", "neither text nor an image"}, {"big", "preview limit"},
	} {
		err := h.Call(t.Context(), wire.MethodWorkspaceGet, wire.WorkspaceGet{AgentID: "main", Path: tt.path}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") ||
			strings.Contains(err.Error(), filepath.Dir(outside)) {
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
	}
	for _, in := range []wire.WorkspaceList{{AgentID: "main", Path: "away"}, {AgentID: "main", Path: "b.txt"},
		{AgentID: "main", Offset: -1}, {AgentID: "nope"}, {AgentID: "main", Path: ".."}} {
		if err := h.Call(t.Context(), wire.MethodWorkspaceList, in, nil); err == nil {
			t.Errorf("%+v is in the list", in)
		}
	}
}
