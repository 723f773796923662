//go:build unix

package pathpolicy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

// tree makes folders with a file "f" that contains the name of its folder, and
// returns the folder above them.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name, "f"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// swap replaces a folder by a link.
func swap(t *testing.T, dir, target string) {
	t.Helper()
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, dir); err != nil {
		t.Fatal(err)
	}
}

// TestSwapped replaces folders by links to another one between the check of a path
// and its use.
func TestSwapped(t *testing.T) {
	t.Parallel()
	open := func(d *Dir, path, name string) (string, error) {
		f, _, err := d.OpenFile(path, name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return string(b), err
	}
	for name, rule := range map[string]Rule{"inside": {}, "anywhere": {Outside: true}} {
		t.Run(name+": the workspace, after it was opened", func(t *testing.T) {
			top := tree(t, "ws", "evil")
			d, err := rule.Open(tool.Call{Dir: filepath.Join(top, "ws")})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			at, file, err := d.Resolve("f")
			if err != nil {
				t.Fatal(err)
			}
			swap(t, filepath.Join(top, "ws"), filepath.Join(top, "evil"))
			if got, err := open(at, "f", file); got != "ws" {
				t.Errorf("read %q, %v; want the file that was checked", got, err)
			}
		})
		t.Run(name+": a folder in the workspace, after the path was resolved", func(t *testing.T) {
			top := tree(t, "ws/sub", "evil")
			d, err := rule.Open(tool.Call{Dir: filepath.Join(top, "ws")})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			at, file, err := d.Resolve("sub/f")
			if err != nil {
				t.Fatal(err)
			}
			swap(t, filepath.Join(top, "ws/sub"), "../../evil")
			if got, err := open(at, "sub/f", file); err == nil {
				t.Errorf("read %q; want an error", got)
			}
		})
	}
	t.Run("a folder outside, after the path was resolved", func(t *testing.T) {
		top := tree(t, "ws", "other", "evil")
		d, err := Rule{Outside: true}.Open(tool.Call{Dir: filepath.Join(top, "ws")})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		at, file, err := d.Resolve("../other/f")
		if err != nil {
			t.Fatal(err)
		}
		swap(t, filepath.Join(top, "other"), "evil")
		if got, err := open(at, "../other/f", file); got != "other" {
			t.Errorf("read %q, %v; want the file that was checked", got, err)
		}
	})
	t.Run("a file outside, after the path was resolved", func(t *testing.T) {
		top := tree(t, "ws", "other", "other/.ssh")
		d, err := Rule{Outside: true}.Open(tool.Call{Dir: filepath.Join(top, "ws")})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		at, file, err := d.Resolve("../other/f")
		if err != nil {
			t.Fatal(err)
		}
		swap(t, filepath.Join(top, "other/f"), ".ssh/f")
		if got, err := open(at, "../other/f", file); err == nil {
			t.Errorf("read %q, want an error", got)
		}
	})
	t.Run("a file, between its check and its opening", func(t *testing.T) {
		top := tree(t, "ws")
		d, err := Rule{}.Open(tool.Call{Dir: filepath.Join(top, "ws")})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		path, pipe, aside := filepath.Join(top, "ws/f"), filepath.Join(top, "pipe"), filepath.Join(top, "aside")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { // replaces the file by a pipe, and the pipe by the file
			for range 5000 {
				err := errors.Join(os.Rename(path, aside), os.Rename(pipe, path), os.Rename(path, pipe), os.Rename(aside, path))
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for {
			f, _, err := d.OpenFile("f", "f")
			if err == nil {
				if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
					t.Errorf("opened %v, %v; want a regular file", info.Mode(), err)
				}
				f.Close()
			}
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			default:
			}
		}
	})
	for name, links := range map[string][2]string{
		"a folder above": {"other", "evil"}, // the links stay in their folder
		"the folder":     {"other/deep", "../evil/deep"},
	} {
		t.Run(name+" outside, between resolving and opening", func(t *testing.T) {
			top := tree(t, "ws", "other/deep", "evil/deep")
			d, err := Rule{Outside: true}.Open(tool.Call{Dir: filepath.Join(top, "ws")})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			loc, err := d.resolver.resolve("../other/deep/f")
			if err != nil {
				t.Fatal(err)
			}
			if at, file, err := d.resolver.open(loc); err != nil {
				t.Errorf("not swapped: %v", err)
			} else if got, err := open(at, "f", file); got != "other/deep" {
				t.Errorf("not swapped: %q, %v", got, err)
			}
			swap(t, filepath.Join(top, links[0]), links[1])
			if at, file, err := d.resolver.open(loc); err == nil {
				if got, err := open(at, "f", file); err == nil {
					t.Errorf("read %q, want an error", got)
				}
			}
		})
	}
}

// flipper is a tool that reads a file after it has changed a link.
type flipper struct {
	rule Rule
	flip func()
}

func (flipper) Spec() tool.Spec { return tool.Spec{Name: "flip", Effect: tool.Reads} }

func (f flipper) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	f.flip()
	d, err := f.rule.Open(c)
	if err != nil {
		return tool.Result{}, err
	}
	defer d.Close()
	at, name, err := d.Resolve(string(c.Args))
	if err != nil {
		return tool.Result{}, err
	}
	file, _, err := at.OpenFile(string(c.Args), name)
	if err != nil {
		return tool.Result{}, err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	return tool.Text(string(b)), err
}

// writer is a tool that changes files.
type writer struct{ flipper }

func (writer) Spec() tool.Spec { return tool.Spec{Name: "write", Effect: tool.Writes} }

// TestPlan checks the effect of calls, and which of them a person is asked about.
func TestPlan(t *testing.T) {
	t.Parallel()
	top := tree(t, "ws", "other", ".ssh")
	const outside = "it changes files outside the workspace"
	for _, tt := range []struct {
		tool      tool.Tool
		use       Use
		path      string
		sandboxed bool
		effect    tool.Effect
		reason    string // "": nobody is asked
	}{
		{flipper{}, Reads, "f", false, tool.Reads, ""},
		{flipper{}, Reads, "../other/f", false, tool.Reads, ""},
		{flipper{}, Reads, "../.ssh/f", false, tool.Reads, "it reads private files"},
		{flipper{}, Reads, "../.ssh/f", true, tool.Reads, ""}, // it is not there
		{writer{}, Changes, "f", false, tool.Writes, ""},
		{writer{}, Changes, "../other/f", false, tool.Acts, outside},
		{writer{}, Changes, "../.ssh/f", false, tool.Acts, outside + "; it changes private files"},
		{writer{}, Changes, "f", true, tool.Writes, ""},
	} {
		g := Rule{Outside: true}.Guard(tt.tool, tt.use,
			func(args json.RawMessage) ([]string, error) { return []string{string(args)}, nil })
		c := tool.Call{Dir: filepath.Join(top, "ws"), Args: json.RawMessage(tt.path)}
		if tt.sandboxed {
			c.Sandbox = &sandbox.Session{}
		}
		p, err := g.(tool.Planner).Plan(t.Context(), c)
		if err != nil || p.Effect != tt.effect || p.Reason != tt.reason || p.Ask != (tt.reason != "") {
			t.Errorf("%s %s, sandboxed %v: %s, asks %v because %q, %v; want %s, %q", tt.use, tt.path, tt.sandboxed, p.Effect,
				p.Ask, p.Reason, err, tt.effect, tt.reason)
		}
		if where := filepath.Join(top, "ws", tt.path); !tt.sandboxed && !strings.Contains(p.Text, where) {
			t.Errorf("%s %s: the question is %q, want the path %s", tt.use, tt.path, p.Text, where)
		}
	}
}

// TestEnter enters the folders of names, with a rule that checks names on the way and
// with one that does not.
func TestEnter(t *testing.T) {
	t.Parallel()
	for _, rule := range []Rule{{}, {Private: list("/none")}} {
		top := tree(t, "ws", "ws/sub")
		d, err := rule.Open(tool.Call{Dir: filepath.Join(top, "ws")})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for name, want := range map[string]string{"f": "f", "sub/f": "f", "sub/new": "new", "none/f": "", "f/x": ""} {
			root, base, err := d.Enter(name)
			if err != nil {
				if want != "" {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if root == nil || base != want {
				t.Errorf("%s: entered for %q, want %q", name, base, want)
				continue
			}
			root.Close()
		}
	}
}

// TestFlipped changes links between the plan of a call and its use of the path.
func TestFlipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, link, from, to string // a link that changes from one target to another; from "": it does not exist before
		want                 string // the content that is read; "": an error
	}{
		"to a private file outside":              {"link/f", "ws/link", "../other", "../.ssh", "other"},
		"from the workspace to a private file":   {"link/f", "ws/link", "sub", "../.ssh", "ws/sub"},
		"of a folder outside":                    {"../to/f", "to", "other", ".ssh", "other"},
		"that appears on the way to no file":     {"../new/f", "new", "", ".ssh", ""},
		"that appears in place of a missing one": {"../other/new", "other/new", "", "../.ssh/f", ""},
	} {
		t.Run("E7 a link "+name+" after the plan changes nothing", func(t *testing.T) {
			top := tree(t, "ws", "ws/sub", "other", ".ssh")
			link := func(target string) {
				_ = os.Remove(filepath.Join(top, c.link))
				if err := os.Symlink(target, filepath.Join(top, c.link)); err != nil {
					t.Fatal(err)
				}
			}
			if c.from != "" {
				link(c.from)
			}
			rule := Rule{Outside: true}
			guard := func(flip func()) tool.Tool {
				return rule.Guard(flipper{rule, flip}, Reads,
					func(args json.RawMessage) ([]string, error) { return []string{string(args)}, nil })
			}
			call := tool.Call{Dir: filepath.Join(top, "ws"), Args: json.RawMessage(c.path)}
			r, err := guard(func() { link(c.to) }).Run(t.Context(), call)
			if got := text(r); got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("read %q, %v; want %q", got, err, c.want)
			}
			// the control: now the same call leads to the private file, so it is not run
			if r, err := guard(func() {}).Run(t.Context(), call); err == nil || !strings.Contains(err.Error(), "not allowed") {
				t.Errorf("read %q, %v; want a question", text(r), err)
			}
		})
	}
}

// TestRefused checks private files that are in the workspace.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, outside := range map[string]bool{"a confined rule": false, "a rule for all files": true} {
		t.Run("E7 "+name+" refuses Chela's own files in the workspace, also if a link is switched", func(t *testing.T) {
			top := tree(t, "ws", "ws/sub", "ws/state", "ws/State2")
			rule := Rule{Outside: outside, Private: list(filepath.Join(top, "ws/state"), filepath.Join(top, "ws/State2/f"))}
			ws := filepath.Join(top, "ws")
			if err := os.Symlink("state", filepath.Join(ws, "link")); err != nil {
				t.Fatal(err)
			}
			read := func(path string, flip func()) (string, error) {
				g := rule.Guard(flipper{rule, flip}, Reads,
					func(args json.RawMessage) ([]string, error) { return []string{string(args)}, nil })
				r, err := g.Run(t.Context(), tool.Call{Dir: ws, Args: json.RawMessage(path)})
				return text(r), err
			}
			for _, path := range []string{"state/f", "link/f", "sub/../state/f", filepath.Join(ws, "state/f"), "State2/f",
				"state2/f", "state2/F", "STATE/f"} {
				if got, err := read(path, func() {}); err == nil {
					t.Errorf("%s: read %q", path, got)
				}
			}
			for _, path := range []string{"f", "sub/f"} {
				if got, err := read(path, func() {}); err != nil {
					t.Errorf("%s: read %q, %v", path, got, err)
				}
			}
			if got, err := read("sub/f", func() { swap(t, filepath.Join(ws, "sub"), "state") }); err == nil {
				t.Errorf("a switched link: read %q", got)
			}
			d, err := rule.Open(tool.Call{Dir: ws})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for name, want := range map[string]bool{
				"state":    true,
				"state/f":  true,
				"State2":   false,
				"State2/f": true,
				"STATE/f":  true,
				"f":        false,
			} {
				if d.Hides(name) != want {
					t.Errorf("searches skip %s: %v", name, !want)
				}
			}
			if root, _, err := d.Enter("sub/new"); err == nil {
				root.Close()
				t.Error("a folder that became a link is entered to write a file")
			}
		})
	}
	t.Run("a workspace in a private folder is used", func(t *testing.T) {
		top := tree(t, "state", "state/ws")
		rule := Rule{Private: list(filepath.Join(top, "state"), filepath.Join(top, "state/ws/chela.json"))}
		if b, err := rule.Read(tool.Call{Dir: filepath.Join(top, "state/ws")}, "f", 100); err != nil ||
			string(b) != "state/ws" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// text returns the text of a result; "": it has none.
func text(r tool.Result) string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// list returns a function that returns its arguments.
func list(paths ...string) func() []string { return func() []string { return paths } }
