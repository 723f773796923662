package files_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

const talk = "agent:main:main"

// newFixture returns a fixture with a session that used files.
func newFixture(t *testing.T) *methodtest.Fixture {
	t.Helper()
	h := methodtest.New(t, llmtest.NewScript())
	outside := t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(h.Workspace, "notes.md"):    "# Notes\n",
		filepath.Join(h.Workspace, "src", "a.go"): "package a\n",
		filepath.Join(h.Workspace, "src", "b.go"): "package b\n",
		filepath.Join(h.Workspace, "pic.png"):     "\x89PNG\r\n\x1a\n",
		filepath.Join(h.Workspace, "blob"):        "\x00\x01\x02",

		filepath.Join(h.Workspace, "big.txt"):              strings.Repeat("x", 300<<10),
		filepath.Join(h.Workspace, "node_modules", "a.js"): "x",
		filepath.Join(outside, "secret"):                   "hidden",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"leak": filepath.Join(outside, "secret"), "alias.md": "notes.md"} {
		if err := os.Symlink(to, filepath.Join(h.Workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	calls := []llm.ToolCall{
		{Name: "read", Args: json.RawMessage(`{"path":"notes.md"}`)},
		{Name: "write", Args: json.RawMessage(`{"path":"src/a.go","content":"package a"}`)},
		{Name: "read", Args: json.RawMessage(`{"path":"src/a.go"}`)},
		{Name: "read", Args: json.RawMessage(`{"path":"` + filepath.Join(h.Workspace, "src", "b.go") + `"}`)},
		{Name: "apply_patch", Args: json.RawMessage(`{"input":"*** Begin Patch\n*** Delete File: gone.md\n*** End Patch"}`)},
		{Name: "read", Args: json.RawMessage(`{"path":"` + filepath.Join(outside, "secret") + `"}`)},
		{Name: "read", Args: json.RawMessage(`{"path":"../up"}`)},
		{Name: "exec", Args: json.RawMessage(`{"path":"no file"}`)},
		{Name: "edit", Args: json.RawMessage(`["no object"]`)},
	}
	said := &llm.Message{Role: llm.RoleAssistant}
	for i := range calls {
		said.Parts = append(said.Parts, llm.Part{Kind: llm.PartCall, Call: &calls[i]})
	}
	h.Put(func(tx store.Tx) error {
		now := time.Now()
		return errors.Join(
			tx.Sessions().Put(session.Meta{Key: talk, ID: "t1", Agent: "main", Created: now, Updated: now, Active: now}),
			tx.Sessions().Append("t1", &session.Entry{ID: "e1", Kind: session.KindMessage, Time: now, Message: said}),
		)
	})
	return h
}

func TestList(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	list := func(in wire.FilesList) wire.Files {
		in.SessionKey = talk
		return methodtest.Do[wire.Files](t, h, wire.MethodFilesList, in)
	}
	touched := func(f wire.Files) (out []string) {
		for _, f := range f.Files {
			line := f.Kind + " " + f.Workspace
			if f.Missing {
				line += " missing"
			}
			out = append(out, line)
		}
		return out
	}
	browsed := func(f wire.Files) (out []string) {
		for _, e := range f.Browser.Entries {
			out = append(out, strings.TrimSpace(e.Kind[:1]+" "+e.Path+" "+e.SessionKind))
		}
		return out
	}
	all := list(wire.FilesList{})
	if diff := cmp.Diff([]string{"modified gone.md missing", "modified src/a.go", "read src/b.go", "read notes.md"},
		touched(all)); diff != "" || all.Root != h.Workspace {
		t.Errorf("root %s, files:\n%s", all.Root, diff)
	}
	if diff := cmp.Diff([]string{"d node_modules", "d src mixed", "f alias.md", "f big.txt", "f blob", "f notes.md read",
		"f pic.png"}, browsed(all)); diff != "" || all.Browser.Parent != nil {
		t.Errorf("the workspace:\n%s", diff)
	}
	if got := list(wire.FilesList{Path: "src/"}); *got.Browser.Parent != "" || got.Browser.Path != "src" ||
		cmp.Diff([]string{"f src/a.go modified", "f src/b.go read"}, browsed(got)) != "" {
		t.Errorf("a folder: %v", browsed(got))
	}
	if got := list(wire.FilesList{Search: " A."}); got.Browser.Search != "A." ||
		cmp.Diff([]string{"f src/a.go modified"}, browsed(got)) != "" {
		t.Errorf("found: %v", browsed(got))
	}
	none := methodtest.Do[wire.Files](t, h, wire.MethodFilesList, wire.FilesList{SessionKey: "agent:main:never"})
	if none.Root != "" || none.Browser != nil || len(none.Files) != 0 {
		t.Errorf("an unknown session: %+v", none)
	}
	for want, in := range map[string]wire.FilesList{
		"below the workspace": {SessionKey: talk, Path: "../"}, "not found": {SessionKey: talk, Path: "notes.md"},
		"unknown agent":  {SessionKey: "agent:nope:main"},
		"does not match": {SessionKey: talk, AgentID: "other"},
	} {
		if err := h.Call(t.Context(), wire.MethodFilesList, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", in, err, want)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for i := range 260 {
		if err := os.WriteFile(filepath.Join(h.Workspace, "src", "many"+strings.Repeat("x", i%100)+string(rune('a'+i/100))),
			nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := methodtest.Do[wire.Files](t, h, wire.MethodFilesList, wire.FilesList{SessionKey: talk, Path: "src"})
	if len(got.Browser.Entries) != 250 || !got.Browser.Truncated {
		t.Errorf("%d entries, truncated %v", len(got.Browser.Entries), got.Browser.Truncated)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, tt := range []struct{ path, want string }{
		{"notes.md", "read notes.md text utf8 # Notes\n"},
		{"src/a.go", "modified src/a.go text utf8 package a\n"},
		{filepath.Join(h.Workspace, "src", "b.go"), "read src/b.go text utf8 package b\n"},
		{"pic.png", "read pic.png image base64 iVBORw0KGgo="},
		{"blob", "read blob unsupported  -"},
		{"alias.md", "read alias.md text utf8 # Notes\n"},
	} {
		f := methodtest.Do[wire.FileGot](t, h, wire.MethodFilesGet, wire.FileGet{SessionKey: talk, Path: tt.path}).File
		text := "-"
		if f.Content != nil {
			text = *f.Content
		}
		if got := strings.Join([]string{f.Kind, f.Workspace, f.Preview, f.Encoding, text}, " "); got != tt.want ||
			f.Path != tt.path || f.UpdatedAt == 0 {
			t.Errorf("%s: %q, want %q (%+v)", tt.path, got, tt.want, f)
		}
	}
	for path, want := range map[string]string{
		"gone.md":       "session_file_not_found",
		"leak":          "session_file_not_found",
		"../up":         "session_file_not_found",
		"src":           "session_file_not_found",
		"/etc/hostname": "session_file_not_found",
		"big.txt":       "session_file_too_large",
	} {
		if got := kindOf(h.Call(t.Context(), wire.MethodFilesGet, wire.FileGet{SessionKey: talk, Path: path}, nil)); got !=
			want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for name, size := range map[string]int{"largest.png": 5 << 20, "larger.png": 5<<20 + 1} {
		picture := make([]byte, size)
		copy(picture, "\x89PNG\r\n\x1a\n")
		if err := os.WriteFile(filepath.Join(h.Workspace, name), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f := methodtest.Do[wire.FileGot](t, h, wire.MethodFilesGet,
		wire.FileGet{SessionKey: talk, Path: "largest.png"}).File; f.Content == nil || len(*f.Content) < 5<<20 {
		t.Error("the largest picture is not shown")
	}
	if got := kindOf(h.Call(t.Context(), wire.MethodFilesGet, wire.FileGet{SessionKey: talk, Path: "larger.png"},
		nil)); got != "session_file_too_large" {
		t.Errorf("a picture that is too large: %q", got)
	}
	if got := kindOf(h.Call(t.Context(), wire.MethodFilesGet, wire.FileGet{SessionKey: "agent:main:never",
		Path: "notes.md"}, nil)); got != "session_file_not_found" {
		t.Errorf("an unknown session: %q", got)
	}
}

// kindOf returns the type in the details of an error.
func kindOf(err error) string {
	var e *wire.Error
	if !errors.As(err, &e) {
		return ""
	}
	var d struct{ Type string }
	_ = json.Unmarshal(e.Details, &d)
	return d.Type
}

func TestSet(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	read := func() wire.File {
		return methodtest.Do[wire.FileGot](t, h, wire.MethodFilesGet, wire.FileGet{SessionKey: talk, Path: "notes.md"}).File
	}
	was := read()
	in := wire.FileSet{SessionKey: talk, Path: "notes.md", Content: "# More\n", Hash: was.Hash}
	got := methodtest.Do[wire.FileGot](t, h, wire.MethodFilesSet, in).File
	if now := read(); *now.Content != "# More\n" || now.Hash != got.Hash || got.Hash == was.Hash ||
		got.Kind != wire.FileModified || got.Workspace != "notes.md" {
		t.Errorf("now %+v; returned %+v", now, got)
	}
	if fi, err := os.Stat(filepath.Join(h.Workspace, "notes.md")); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode: %v %v", fi.Mode(), err)
	}
	for want, in := range map[string]wire.FileSet{
		"session_file_conflict":  in,
		"session_file_not_found": {SessionKey: talk, Path: "new.md", Hash: was.Hash},
		"session_file_unsafe":    {SessionKey: talk, Path: "alias.md", Content: "x", Hash: got.Hash},
		"session_file_too_large": {SessionKey: talk, Path: "notes.md", Content: strings.Repeat("x", 257<<10), Hash: got.Hash},
		"":                       {SessionKey: talk, Path: "notes.md", Hash: "no hash"},
	} {
		err := h.Call(t.Context(), wire.MethodFilesSet, in, nil)
		if err == nil || kindOf(err) != want {
			t.Errorf("%+v: %v, want %q", in.Path, err, want)
		}
	}
	if now := read(); *now.Content != "# More\n" {
		t.Errorf("a refused change was written: %q", *now.Content)
	}
	reader := h.Dial(client.Options{Scopes: []string{string(chela.ScopeRead), string(chela.ScopeWrite)}})
	defer reader.Close()
	if err := reader.Call(t.Context(), wire.MethodFilesSet, wire.FileSet{SessionKey: talk, Path: "notes.md", Content: "x",
		Hash: got.Hash}, nil); err == nil || !strings.Contains(err.Error(), "operator.admin") {
		t.Errorf("without the scope: %v", err)
	}
}
