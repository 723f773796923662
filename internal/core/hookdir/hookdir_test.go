package hookdir_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

const head = "---\nname: x\ndescription: d\nmetadata: {\"openclaw\": {\"events\": [\"command\"], \"emoji\": \"x\"}}\n---\n# X\n"

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func look(name string) string {
	if name == "node" {
		return ""
	}
	return "/bin/" + name
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, fail string }{
		{"flow", head, ""},
		{"block", "---\nmetadata:\n  openclaw:\n    events: [command]\n---\n", ""},
		{"several lines", "---\nmetadata:\n  {\n    \"openclaw\":\n      { \"events\": [\"command:new\"], },\n  }\n---\n",
			""},
		{"CRLF and a byte order mark", "\ufeff" + strings.ReplaceAll(head, "\n", "\r\n"), ""},
		{"no front matter", "# Hook\n", "front matter"},
		{"no end", "---\nname: x\n", "front matter"},
		{"bad YAML", "---\nname: [\n---\n", "front matter"},
		{"no events", "---\nname: x\n---\n", "no events"},
		{"a path as the name", "---\nname: ../x\nmetadata: {openclaw: {events: [command]}}\n---\n", "want letters"},
		{"a hidden name", "---\nname: .x\nmetadata: {openclaw: {events: [command]}}\n---\n", "want letters"},
	} {
		h, err := hookdir.Parse("folder", []byte(tt.text))
		switch {
		case tt.fail == "" && (err != nil || len(h.Events) != 1):
			t.Errorf("%s: %+v, %v", tt.name, h, err)
		case tt.fail != "" && (err == nil || !strings.Contains(err.Error(), tt.fail)):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte("---\nname: x\nmetadata: {openclaw: {events: [a], requires: {bins: [b], anyBins: [c], env: [d], config: [e]}, os: [linux]}}\n---\n"))
	f.Add([]byte("---\na: &a [*a, *a]\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := hookdir.Parse("folder", text)
		if err == nil && (len(h.Events) == 0 || h.Name == "" || filepath.Base(h.Name) != h.Name ||
			strings.HasPrefix(h.Name, ".")) {
			t.Errorf("accepted %+v", h)
		}
	})
}

func TestHandler(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs modes of files")
	}
	for _, tt := range []struct {
		name, file string
		mode       os.FileMode
		argv, fail string
	}{
		{"a program", "handler", 0o700, "DIR/handler", ""},
		{"a program without permission", "handler", 0o600, "", "chmod +x"},
		{"a script", "handler.sh", 0o600, "/bin/sh DIR/handler.sh", ""},
		{"an executable script", "handler.py", 0o700, "DIR/handler.py", ""},
		{"a module without node", "handler.ts", 0o600, "", "needs the program node"},
		{"everybody may change it", "handler.sh", 0o606, "", "chmod o-w"},
		{"nothing", "other", 0o700, "", "no handler"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, tt.file), "#!/bin/sh\n", 0o600)
		if err := os.Chmod(filepath.Join(dir, tt.file), tt.mode); err != nil {
			t.Fatal(err)
		}
		_, argv, err := hookdir.Handler(dir, "", look)
		if got := strings.ReplaceAll(strings.Join(argv, " "), dir, "DIR"); got != tt.argv ||
			(err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	t.Run("line ends of Windows", func(t *testing.T) {
		for name, bad := range map[string]bool{"handler": true, "handler.sh": true, "handler.py": true, "handler.js": false} {
			dir := t.TempDir()
			write(t, filepath.Join(dir, name), "#!/usr/bin/env x\r\nexit 0\r\n", 0o700)
			if _, _, err := hookdir.Handler(dir, "", func(string) string { return "/bin/x" }); (err != nil) != bad ||
				bad && !strings.Contains(err.Error(), "sed -i") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a link that leaves the folder", func(t *testing.T) {
		dir, other := t.TempDir(), filepath.Join(t.TempDir(), "x")
		write(t, other, "#!/bin/sh\n", 0o700)
		if err := os.Symlink(other, filepath.Join(dir, "handler")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := hookdir.Handler(dir, "", look); err == nil || !strings.Contains(err.Error(), "link") {
			t.Error(err)
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := func(at, name string) {
		write(t, filepath.Join(root, at, name, "HOOK.md"), strings.Replace(head, "name: x", "name: "+name, 1), 0o600)
		write(t, filepath.Join(root, at, name, "handler.sh"), "exit 0\n", 0o600)
	}
	folder("hooks", "both")
	folder("extra", "both")
	folder("extra", "extra")
	folder("ws/hooks", "both")
	folder("ws/hooks", "own")
	write(t, filepath.Join(root, "hooks", "broken", "HOOK.md"), "nothing", 0o600)
	write(t, filepath.Join(root, "hooks", "README.md"), "nothing", 0o600)
	write(t, filepath.Join(root, "hooks", "ending", "HOOK.md.txt"), head, 0o600)
	o := hookdir.Options{
		Managed: filepath.Join(root, "hooks"),
		Agents:  []hookdir.Agent{{ID: "main", Workspace: filepath.Join(root, "ws")}},
		Events:  []string{"command"},
		Look:    look,
		Getenv:  func(string) string { return "" },
		Section: func(string) json.RawMessage { return nil },

		Bundled: []hookdir.Hook{{Name: "extra", Events: []string{"command"}}},
	}
	o.Config.Load.Dirs = []string{"extra"}
	var got []string
	for _, h := range hookdir.Find(o) {
		state := "off"
		if h.Loadable() {
			state = "on"
		} else if len(h.Reasons) > 0 {
			state = "broken"
		}
		if h.Name == "ending" && !slices.Equal(h.Reasons, []string{"HOOK.md.txt: is it HOOK.md with the wrong ending?"}) {
			t.Errorf("a wrong ending: %q", h.Reasons)
		}
		got = append(got, h.Name+" "+string(h.Source)+" "+state)
	}
	if want := []string{"both managed on", "broken managed broken", "ending managed broken", "extra extra on",
		"own workspace off"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	from, managed := filepath.Join(t.TempDir(), "x"), filepath.Join(t.TempDir(), "hooks")
	write(t, filepath.Join(from, "HOOK.md"), head, 0o600)
	write(t, filepath.Join(from, "lib", "a.txt"), "a", 0o600)
	write(t, filepath.Join(from, "handler"), "#!/bin/sh\n", 0o700)
	h, err := hookdir.Install(from, managed, false)
	if err != nil || h.Dir != filepath.Join(managed, "x") {
		t.Fatal(h, err)
	}
	a, err1 := hookdir.Hash(from)
	b, err2 := hookdir.Hash(h.Dir)
	if a != b || err1 != nil || err2 != nil {
		t.Errorf("%s %v, %s %v", a, err1, b, err2)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(filepath.Join(h.Dir, "handler"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := hookdir.Hash(h.Dir); err != nil || c == a {
			t.Errorf("the hash does not depend on what is executable: %v", err)
		}
	}
	if _, err := hookdir.Install(from, managed, false); err == nil {
		t.Error("installed twice")
	}
	if _, err := hookdir.Install(from, managed, true); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "link")); err != nil {
		needtest.Missing(t, "symbolic links")
	}
	if _, err := hookdir.Install(from, managed, true); err == nil {
		t.Error("a link was copied")
	}
	entries, err := os.ReadDir(managed)
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}
