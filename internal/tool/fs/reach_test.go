//go:build unix

package fs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/fs"
	"github.com/chela-ai/chela/internal/tool/tooltest"
)

// house is a person's home with a workspace in it, whose tools may leave it.
type house struct {
	*box
	home, state string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, state := filepath.Join(parent, "ann"), filepath.Join(parent, "state")
	t.Setenv("HOME", home)
	h := &house{&box{t, filepath.Join(home, "ws"), tool.NewSet(fs.New(fs.Options{Reach: reach.Rule{Outside: true, Own: []string{state}}, PatchOutside: true})...)}, home, state}
	for name, content := range map[string]string{
		"ws/plain": "inside\n", "project/main.go": "package main\n", "project/deep/er/x.go": "package " + canary + "\n", "project/.env": "KEY=" + canary + "\n",
		"project/server.pem": canary + "\n", "project/.git/config": canary + "\n", ".ssh/id_rsa": canary + "\n", "../state/chela.json": canary + "\n",
	} {
		b := box{t: t, dir: home}
		b.write(name, content)
	}
	return h
}

// plan returns what a call would do.
func (h *house) plan(name string, args m) (tool.Plan, error) {
	h.t.Helper()
	tl, _ := h.set.Get(name)
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return tl.(tool.Planner).Plan(h.t.Context(), tool.Call{Args: raw, Dir: h.dir})
}

// allowed makes a call that a person is asked about and allows.
func (h *house) allowed(name string, args m, reason string, told ...string) (tool.Result, error) {
	h.t.Helper()
	p, err := h.plan(name, args)
	if err != nil || !p.Ask || !strings.Contains(p.Reason, reason) {
		h.t.Fatalf("%s %v: asks %v, %q, %v; want %q", name, args, p.Ask, p.Reason, err, reason)
	}
	for _, want := range told {
		if !strings.Contains(p.Text, want) {
			h.t.Errorf("%s: no %q in %q", name, want, p.Text)
		}
	}
	h.fails(name, args, "not allowed")
	tl, _ := h.set.Get(name)
	raw, _ := json.Marshal(args)
	return tl.Run(h.t.Context(), tool.Call{Args: raw, Dir: h.dir, Plan: &p, Update: func(string) {}})
}

// free makes a call that nobody is asked about.
func (h *house) free(name string, args m) string {
	h.t.Helper()
	if p, err := h.plan(name, args); err != nil || p.Ask {
		h.t.Fatalf("%s %v: asks: %q, %v", name, args, p.Reason, err)
	}
	return h.text(name, args)
}

func TestOutside(t *testing.T) {
	t.Run("a workspace is not left unless it is said so", func(t *testing.T) {
		for _, o := range []fs.Options{{}, {PatchOutside: true}, {Reach: reach.Rule{Outside: true}}} {
			for _, tl := range fs.New(o) {
				far := o.Reach.Outside
				if tl.Spec().Name == "apply_patch" {
					far = o.PatchOutside
				}
				if _, ok := tl.(tool.Planner); ok != far {
					t.Errorf("%+v: %s may leave: %v", o, tl.Spec().Name, ok)
				}
			}
		}
	})
	t.Run("what is not private is read without a question", func(t *testing.T) {
		h := newHouse(t)
		h.symlink(h.home+"/project", "link")
		h.symlink(h.dir+"/plain", "../back")
		for _, path := range []string{h.home + "/project/main.go", "~/project/main.go", "../project/main.go", "link/main.go"} {
			if got := h.free("read", m{"path": path}); !strings.Contains(got, "package main") {
				t.Errorf("%s: %q", path, got)
			}
		}
		if got := h.free("read", m{"path": "~/back"}); !strings.Contains(got, "inside") {
			t.Errorf("a link back: %q", got)
		}
		if got := h.free("ls", m{"path": "~/project"}); !strings.Contains(got, "[file] main.go") {
			t.Errorf("ls: %q", got)
		}
		if got := h.free("find", m{"pattern": "*.go", "path": "~"}); !strings.Contains(got, h.home+"/project/deep/er/x.go") {
			t.Errorf("find: %q", got)
		}
		if got := h.free("write", m{"path": "sub/new", "content": "x"}); !strings.Contains(got, "Created sub/new") {
			t.Errorf("write inside: %q", got)
		}
	})
	t.Run("a search passes over what is private, and says so", func(t *testing.T) {
		h := newHouse(t)
		got := h.free("grep", m{"pattern": canary[:6], "path": "~"})
		if strings.Count(got, canary) != 1 || !strings.Contains(got, "x.go:1") || !strings.Contains(got, "private files or folders were passed over") {
			t.Errorf("%q", got)
		}
		if got := h.free("find", m{"pattern": "id_rsa", "path": "~"}); strings.Contains(got, "/id_rsa") {
			t.Errorf("%q", got)
		}
		r, err := h.allowed("grep", m{"pattern": canary[:6], "path": "~/.ssh"}, "private files", h.home+"/.ssh")
		if err != nil || !strings.Contains(r.Content[0].Text, canary) {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("private files are asked about", func(t *testing.T) {
		h := newHouse(t)
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
	t.Run("changes outside are asked about, with all of what is written", func(t *testing.T) {
		h := newHouse(t)
		h.symlink(h.home+"/project", "link")
		long := strings.Repeat("a line that is written\n", 2000)
		for path, real := range map[string]string{"~/project/new/a.txt": "/project/new/a.txt", "link/b.txt": "/project/b.txt"} {
			if _, err := h.allowed("write", m{"path": path, "content": long}, "changes files outside", h.home+real, long); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(h.home + real); string(got) != long {
				t.Errorf("%s: %d bytes, %v", path, len(got), err)
			}
		}
		if _, err := h.allowed("edit", m{"path": "~/project/main.go", "oldText": "main", "newText": "other"}, "changes files outside", "main", "other"); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(h.home + "/project/main.go"); string(got) != "package other\n" {
			t.Errorf("%q", got)
		}
		if _, err := h.allowed("write", m{"path": h.state + "/chela.json", "content": "{}"}, "changes private files"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a patch is asked about as a whole", func(t *testing.T) {
		h := newHouse(t)
		patch := "*** Begin Patch\n*** Update File: plain\n@@\n-inside\n+changed\n*** Update File: ~/project/main.go\n*** Move to: ~/project/cmd/main.go\n@@\n-package main\n+package cmd\n*** Add File: " + h.home + "/project/cmd/doc.go\n+package cmd\n*** End Patch"
		r, err := h.allowed("apply_patch", m{"input": patch}, "changes files outside", h.home+"/project/cmd/main.go", "+package cmd")
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{h.dir + "/plain": "changed\n", h.home + "/project/cmd/main.go": "package cmd\n", h.home + "/project/cmd/doc.go": "package cmd\n"} {
			if got, err := os.ReadFile(path); string(got) != want {
				t.Errorf("%s: %q, %v\n%s", path, got, err, r.Content[0].Text)
			}
		}
		if _, err := os.Lstat(h.home + "/project/main.go"); err == nil {
			t.Error("what was moved is still there")
		}
		if err := os.Symlink("doc.go", h.home+"/project/cmd/link"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.allowed("apply_patch", m{"input": "*** Begin Patch\n*** Delete File: ~/project/cmd/link\n*** End Patch"}, "changes"); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("a link is deleted: %v", err)
		}
	})
	t.Run("what a path leads to is what was allowed", func(t *testing.T) {
		h := newHouse(t)
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
		if _, err := tl.Run(t.Context(), tool.Call{Args: raw, Dir: h.dir, Plan: &p}); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("error %v", err)
		}
		if _, err := os.Lstat(h.home + "/.ssh/made"); err == nil {
			t.Error("it was written where nobody allowed it")
		}
	})
	t.Run("refusals that no person is asked about", func(t *testing.T) {
		h := newHouse(t)
		if err := os.Link(h.home+"/.ssh/id_rsa", h.home+"/project/hard"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/proc/self/environ", "/proc/1/root/etc/passwd", "/dev/zero", "/sys/kernel", "a\x00b"} {
			if p, err := h.plan("read", m{"path": path}); err == nil {
				t.Errorf("%q: %+v", path, p)
			}
		}
		h.fails("read", m{"path": "~/project/hard"}, "more than one name")
		if _, err := h.allowed("write", m{"path": "~/project/.git/hooks/x", "content": "x"}, "changes"); err == nil || !strings.Contains(err.Error(), ".git") {
			t.Errorf("error %v", err)
		}
	})
}

// A tool that may leave the workspace is the same tool inside of it.
func TestOutsideConformance(t *testing.T) {
	h := newHouse(t)
	before := tooltest.Tree(t, h.home+"/project")
	for name, args := range map[string]m{"read": {"path": "plain"}, "ls": {}, "find": {"pattern": "*"}, "grep": {"pattern": "inside"}} {
		here := box{t, h.dir, tool.NewSet(fs.New(fs.Options{})...)}
		if diff := cmp.Diff(here.text(name, args), h.free(name, args)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(before, tooltest.Tree(t, h.home+"/project")); diff != "" {
		t.Error(diff)
	}
}
