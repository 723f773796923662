//go:build unix

package fs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

// homeFixture is a home folder with a workspace whose tools may leave it.
type homeFixture struct {
	*fixture
	home, state string
}

func newHomeFixture(t *testing.T) *homeFixture {
	t.Helper()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, state := filepath.Join(parent, "ann"), filepath.Join(parent, "state")
	t.Setenv("HOME", home)
	h := &homeFixture{&fixture{t, filepath.Join(home, "ws"),
		tool.NewSet(fs.New(fs.Options{Paths: pathpolicy.Rule{Outside: true, Private: func() []string {
			return []string{state}
		}}, PatchOutside: true})...)}, home, state}
	for name, content := range map[string]string{
		"ws/plain":             "inside\n",
		"project/main.go":      "package main\n",
		"project/deep/er/x.go": "package " + canary + "\n",
		"project/.env":         "KEY=" + canary + "\n",
		"project/server.pem":   canary + "\n",
		"project/.git/config":  canary + "\n",
		".ssh/id_rsa":          canary + "\n",

		"../state/chela.json": canary + "\n",
	} {
		b := fixture{t: t, dir: home}
		b.write(name, content)
	}
	return h
}

// plan plans a call.
func (h *homeFixture) plan(name string, args m) (tool.Plan, error) {
	h.t.Helper()
	tl, _ := h.set.Get(name)
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return tl.(tool.Planner).Plan(h.t.Context(), tool.Call{Args: raw, Dir: h.dir})
}

// allowed makes a call that needs approval and is approved.
func (h *homeFixture) allowed(name string, args m, reason string, texts ...string) (tool.Result, error) {
	h.t.Helper()
	p, err := h.plan(name, args)
	if err != nil || !p.Ask || !strings.Contains(p.Reason, reason) {
		h.t.Fatalf("%s %v: asks %v, %q, %v; want %q", name, args, p.Ask, p.Reason, err, reason)
	}
	for _, want := range texts {
		if !strings.Contains(p.Text, want) {
			h.t.Errorf("%s: no %q in %q", name, want, p.Text)
		}
	}
	h.fails(name, args, "not allowed")
	tl, _ := h.set.Get(name)
	raw, _ := json.Marshal(args)
	return tl.Run(h.t.Context(), tool.Call{Args: raw, Dir: h.dir, Plan: &p, Update: func(string) {}})
}

// unasked makes a call that needs no approval.
func (h *homeFixture) unasked(name string, args m) string {
	h.t.Helper()
	if p, err := h.plan(name, args); err != nil || p.Ask {
		h.t.Fatalf("%s %v: asks: %q, %v", name, args, p.Reason, err)
	}
	return h.text(name, args)
}

func TestOutside(t *testing.T) {
	t.Run("tools leave the workspace only if the rule allows it", func(t *testing.T) {
		for _, o := range []fs.Options{{}, {PatchOutside: true}, {Paths: pathpolicy.Rule{Outside: true}}} {
			for _, tl := range fs.New(o) {
				outside := o.Paths.Outside
				if tl.Spec().Name == "apply_patch" {
					outside = o.PatchOutside
				}
				if _, ok := tl.(tool.Planner); ok != outside {
					t.Errorf("%+v: %s may leave the workspace: %v", o, tl.Spec().Name, ok)
				}
			}
		}
	})
	t.Run("files that are not private are read without approval", func(t *testing.T) {
		h := newHomeFixture(t)
		h.symlink(h.home+"/project", "link")
		h.symlink(h.dir+"/plain", "../back")
		for _, path := range []string{h.home + "/project/main.go", "~/project/main.go",
			"../project/main.go", "link/main.go"} {
			if got := h.unasked("read", m{"path": path}); !strings.Contains(got, "package main") {
				t.Errorf("%s: %q", path, got)
			}
		}
		if got := h.unasked("read", m{"path": "~/back"}); !strings.Contains(got, "inside") {
			t.Errorf("a link back: %q", got)
		}
		if err := os.Symlink("/etc", h.home+"/project/out"); err != nil {
			t.Fatal(err)
		}
		if got := h.unasked("ls", m{"path": "~/project"}); !strings.Contains(got, "[file] main.go") ||
			!strings.Contains(got, "[link] out -> /etc (leads out of the folder)") {
			t.Errorf("ls: %q", got)
		}
		if got := h.unasked("find", m{"pattern": "*.go", "path": "~"}); !strings.Contains(got,
			h.home+"/project/deep/er/x.go") {
			t.Errorf("find: %q", got)
		}
		if got := h.unasked("write", m{"path": "sub/new", "content": "x"}); !strings.Contains(got, "Created sub/new") {
			t.Errorf("write inside: %q", got)
		}
	})
	t.Run("searches skip private files and report it", func(t *testing.T) {
		h := newHomeFixture(t)
		got := h.unasked("grep", m{"pattern": canary[:6], "path": "~"})
		// .ssh with what is in it is one folder; the others are .env and server.pem
		if strings.Count(got, canary) != 1 || !strings.Contains(got, "x.go:1") ||
			!strings.Contains(got, "[3 private files or folders were skipped") {
			t.Errorf("%q", got)
		}
		if got := h.unasked("find", m{"pattern": "id_rsa", "path": "~"}); strings.Contains(got, "/id_rsa") {
			t.Errorf("%q", got)
		}
		r, err := h.allowed("grep", m{"pattern": canary[:6], "path": "~/.ssh"}, "private files", h.home+"/.ssh")
		if err != nil || !strings.Contains(r.Content[0].Text, canary) {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("private files need approval", func(t *testing.T) {
		h := newHomeFixture(t)
		h.symlink(h.home+"/.ssh", "keys")
		for _, path := range []string{"~/.ssh/id_rsa", "keys/id_rsa", "~/project/server.pem", h.state + "/chela.json"} {
			r, err := h.allowed("read", m{"path": path}, "reads private files")
			if err != nil || !strings.Contains(r.Content[0].Text, canary) {
				t.Errorf("%s: %+v, %v", path, r, err)
			}
		}
		r, err := h.allowed("read", m{"path": "~/project/.env"}, "reads private files")
		if err != nil || strings.Contains(r.Content[0].Text, canary) || !strings.Contains(r.Content[0].Text, "***") {
			t.Errorf(".env: %+v, %v", r, err)
		}
	})
	t.Run("changes outside need approval, with the whole content", func(t *testing.T) {
		h := newHomeFixture(t)
		h.symlink(h.home+"/project", "link")
		long := strings.Repeat("a line that is written\n", 2000)
		for path, real := range map[string]string{
			"~/project/new/a.txt": "/project/new/a.txt",
			"link/b.txt":          "/project/b.txt",
		} {
			if _, err := h.allowed("write", m{"path": path, "content": long}, "changes files outside", h.home+real,
				long); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(h.home + real); string(got) != long {
				t.Errorf("%s: %d bytes, %v", path, len(got), err)
			}
		}
		if _, err := h.allowed("edit", m{"path": "~/project/main.go", "oldText": "main", "newText": "other"},
			"changes files outside", "main", "other"); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(h.home + "/project/main.go"); string(got) != "package other\n" {
			t.Errorf("%q", got)
		}
		if _, err := h.allowed("write", m{"path": h.state + "/chela.json", "content": "{}"}, "changes private files"); err !=
			nil {
			t.Error(err)
		}
	})
	t.Run("a patch needs approval as a whole", func(t *testing.T) {
		h := newHomeFixture(t)
		patch := "*** Begin Patch\n*** Update File: plain\n@@\n-inside\n+changed\n*** Update File: ~/project/main.go\n*** Move to: ~/project/cmd/main.go\n@@\n-package main\n+package cmd\n*** Add File: " + h.home + "/project/cmd/doc.go\n+package cmd\n*** End Patch"
		r, err := h.allowed("apply_patch", m{"input": patch}, "changes files outside",
			h.home+"/project/cmd/main.go", "+package cmd")
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			h.dir + "/plain":                "changed\n",
			h.home + "/project/cmd/main.go": "package cmd\n",
			h.home + "/project/cmd/doc.go":  "package cmd\n",
		} {
			if got, err := os.ReadFile(path); string(got) != want {
				t.Errorf("%s: %q, %v\n%s", path, got, err, r.Content[0].Text)
			}
		}
		if _, err := os.Lstat(h.home + "/project/main.go"); err == nil {
			t.Error("the moved file still exists")
		}
		if err := os.Symlink("doc.go", h.home+"/project/cmd/link"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.allowed("apply_patch",
			m{"input": "*** Begin Patch\n*** Delete File: ~/project/cmd/link\n*** End Patch"}, "changes"); err == nil ||
			!strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("deleting a link: %v", err)
		}
	})
	t.Run("the path must lead to the approved file", func(t *testing.T) {
		h := newHomeFixture(t)
		if err := os.Mkdir(h.home+"/other", 0o755); err != nil {
			t.Fatal(err)
		}
		h.symlink(h.home+"/other", "link")
		args := m{"path": "link/made", "content": "x"}
		p, err := h.plan("write", args)
		if err != nil || !p.Ask {
			t.Fatalf("%+v, %v", p, err)
		}
		if err := os.Remove(h.dir + "/link"); err != nil {
			t.Fatal(err)
		}
		h.symlink(h.home+"/.ssh", "link")
		tl, _ := h.set.Get("write")
		raw, _ := json.Marshal(args)
		if _, err := tl.Run(t.Context(), tool.Call{Args: raw, Dir: h.dir, Plan: &p}); err == nil ||
			!strings.Contains(err.Error(), "not allowed") {
			t.Errorf("error %v", err)
		}
		if _, err := os.Lstat(h.home + "/.ssh/made"); err == nil {
			t.Error("a file was written at a location that was not approved")
		}
	})
	t.Run("refused without asking", func(t *testing.T) {
		h := newHomeFixture(t)
		if err := os.Link(h.home+"/.ssh/id_rsa", h.home+"/project/hard"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/proc/self/environ", "/proc/1/root/etc/passwd", "/dev/zero", "/sys/kernel", "a\x00b"} {
			if p, err := h.plan("read", m{"path": path}); err == nil {
				t.Errorf("%q: %+v", path, p)
			}
		}
		h.fails("read", m{"path": "~/project/hard"}, "more than one name")
		if _, err := h.allowed("write", m{"path": "~/project/.git/hooks/x", "content": "x"}, "changes"); err == nil ||
			!strings.Contains(err.Error(), ".git") {
			t.Errorf("error %v", err)
		}
	})
}

// Inside the workspace, a tool that may leave it behaves like one that may not.
func TestOutsideConformance(t *testing.T) {
	h := newHomeFixture(t)
	before := tooltest.Tree(t, h.home+"/project")
	for name, args := range map[string]m{
		"read": {"path": "plain"},
		"ls":   {},
		"find": {"pattern": "*"},
		"grep": {"pattern": "inside"},
	} {
		here := fixture{t, h.dir, tool.NewSet(fs.New(fs.Options{})...)}
		if diff := cmp.Diff(here.text(name, args), h.unasked(name, args)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(before, tooltest.Tree(t, h.home+"/project")); diff != "" {
		t.Error(diff)
	}
}
