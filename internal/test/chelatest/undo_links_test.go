package chelatest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// tree returns what is in a folder of the workspace, without following links.
func (u *undoer) tree(folder string) string {
	u.t.Helper()
	var out []string
	root := filepath.Join(u.Dir, "workspace", folder)
	err := walkLive(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name := strings.TrimPrefix(path, root+"/")
		switch {
		case e.IsDir():
			out = append(out, name+"/")
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out = append(out, name+" -> "+to)
			return err
		case !e.Type().IsRegular():
			out = append(out, name+"?")
			return nil
		}
		data, err := os.ReadFile(path)
		out = append(out, fmt.Sprintf("%s=%s", name, data))
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// TestUndoOfLinks checks that the changes of commands that put a link, a folder or another
// kind of file in the place of a file are undone, and the undo is undone, and that no link
// is followed on the way.
func TestUndoOfLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command, did string
		back               string // after the undo; empty: as before
		again              string // after the undo of the undo; empty: as the command did
	}{
		{"a file becomes a link", "ln -sf a.txt d.txt", "a.txt=A d.txt -> a.txt f/ f/g.txt=G l -> a.txt", "", ""},
		{"a file is deleted, then a link", "rm d.txt; ln -s a.txt d.txt",
			"a.txt=A d.txt -> a.txt f/ f/g.txt=G l -> a.txt", "", ""},
		{"a file becomes a link out of the workspace", "ln -sf ../../outside d.txt",
			"a.txt=A d.txt -> ../../outside f/ f/g.txt=G l -> a.txt", "", ""},
		{"a file becomes a link to nothing", "ln -sf nothing d.txt",
			"a.txt=A d.txt -> nothing f/ f/g.txt=G l -> a.txt", "", ""},
		{"a link is made", "ln -s d.txt m", "a.txt=A d.txt=D f/ f/g.txt=G l -> a.txt m -> d.txt", "", ""},
		{"a link is deleted", "rm l", "a.txt=A d.txt=D f/ f/g.txt=G", "", ""},
		{"a link leads elsewhere", "ln -sfn d.txt l", "a.txt=A d.txt=D f/ f/g.txt=G l -> d.txt", "", ""},
		{"a link becomes a file", "rm l; printf L >l", "a.txt=A d.txt=D f/ f/g.txt=G l=L", "", ""},
		{"a link becomes a folder", "rm l; mkdir l; printf L >l/x", "a.txt=A d.txt=D f/ f/g.txt=G l/ l/x=L", "", ""},
		{"a link that is written through", "printf B >l", "a.txt=B d.txt=D f/ f/g.txt=G l -> a.txt", "", ""},
		{"a file becomes a folder", "rm d.txt; mkdir d.txt; printf X >d.txt/x",
			"a.txt=A d.txt/ d.txt/x=X f/ f/g.txt=G l -> a.txt", "", ""},
		{"a file becomes an empty folder", "rm d.txt; mkdir -p d.txt/e", "a.txt=A d.txt/ d.txt/e/ f/ f/g.txt=G l -> a.txt",
			"", "a.txt=A f/ f/g.txt=G l -> a.txt"},
		{"a folder becomes a file", "rm -r f; printf F >f", "a.txt=A d.txt=D f=F l -> a.txt", "", ""},
		{"a folder becomes a link", "mv f h; ln -s h f", "a.txt=A d.txt=D f -> h h/ h/g.txt=G l -> a.txt",
			"a.txt=A d.txt=D f/ f/g.txt=G h/ l -> a.txt", ""},
		{"a folder becomes a link out of the workspace", "rm -r f; ln -s ../.. f",
			"a.txt=A d.txt=D f -> ../.. l -> a.txt", "", ""},
		{"a file becomes a hard link", "ln -f a.txt d.txt", "a.txt=A d.txt=A f/ f/g.txt=G l -> a.txt", "", "-"},
		{"a file becomes a pipe", "rm d.txt; mkfifo d.txt", "a.txt=A d.txt? f/ f/g.txt=G l -> a.txt", "", "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUndoer(t, Options{Config: full()})
			u.writeIn("outside", "mine")
			u.writeIn("workspace/p/a.txt", "A")
			u.writeIn("workspace/p/d.txt", "D")
			u.writeIn("workspace/p/f/g.txt", "G")
			if err := os.Symlink("a.txt", filepath.Join(u.Dir, "workspace", "p", "l")); err != nil {
				needtest.Missing(t, "symbolic links")
			}
			before := u.tree("p")
			u.ask(`exec {"command":"cd p; ` + tt.command + `"}`)
			u.same("after the command", u.tree("p"), tt.did)
			u.undo("")
			back := tt.back
			if back == "" {
				back = before
			}
			u.same("after the undo", u.tree("p"), back)
			switch again := tt.again; again {
			case "-":
				if got := u.ask("/undo undo"); !strings.Contains(got, "Not possible: p/d.txt: ") {
					t.Errorf("/undo undo: %s", got)
				}
				u.same("after an undo that is not possible", u.tree("p"), back)
			case "":
				u.undo("undo")
				u.same("after the undo of the undo", u.tree("p"), tt.did)
			default:
				u.undo("undo")
				u.same("after the undo of the undo", u.tree("p"), again)
			}
			if got := u.readFile("outside"); got != "mine" {
				t.Errorf("the file outside is %q", got)
			}
		})
	}
}

// TestUndoInTheWay checks that an undo leaves what somebody put in the place of a file, or
// of its folder, after the command.
func TestUndoInTheWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, command, later, plan string }{
		{"a folder with files", "rm d.txt", "mkdir d.txt && echo mine >d.txt/x",
			"p/d.txt: a folder with other files is in its place now"},
		{"a link in the place of the folder", "rm f/g.txt", "rmdir f && ln -s ../../.. f",
			"p/f/g.txt: p/f is a link now, not a folder"},
		{"a file in the place of the folder", "rm f/g.txt", "rmdir f && echo mine >f",
			"p/f/g.txt: p/f is a file now, not a folder"},
		{"a link that leads elsewhere since", "ln -sf a.txt d.txt", "ln -sfn /etc/passwd d.txt",
			"p/d.txt: it was changed since"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUndoer(t, Options{Config: full()})
			u.writeIn("workspace/p/a.txt", "A")
			u.writeIn("workspace/p/d.txt", "D")
			u.writeIn("workspace/p/f/g.txt", "G")
			u.ask(`exec {"command":"cd p; ` + tt.command + `"}`)
			var l []wire.Change
			waittest.Until(t, "a change", func() bool { l = u.log(""); return len(l) == 1 })
			u.shell("cd p && " + tt.later)
			left := u.tree("p")
			if got := u.ask("/undo"); !strings.Contains(got, "Not possible: "+tt.plan) ||
				!strings.Contains(got, "Nothing of it can be undone.") {
				t.Errorf("/undo: %s", got)
			}
			u.same("afterwards", u.tree("p"), left)
		})
	}
}

// TestRestoreOfLinks checks that a version of a file is restored in its own place if a link
// is there, and that a link itself is not taken for the file that it leads to.
func TestRestoreOfLinks(t *testing.T) {
	t.Parallel()
	u := newUndoer(t, Options{Config: full()})
	u.writeIn("workspace/d.txt", "D")
	if err := os.Symlink("a.txt", filepath.Join(u.Dir, "workspace", "l.txt")); err != nil {
		needtest.Missing(t, "symbolic links")
	}
	u.ask(`exec {"command":"true"}`)
	waittest.Until(t, "the file is seen", func() bool {
		var l wire.WorkspaceChanges
		u.must(wire.MethodWorkspaceLog, wire.WorkspaceLog{Path: "d.txt"}, &l)
		return len(l.Changes) > 0
	})
	u.call("write", "path", "a.txt", "content", "A")
	u.ask(`exec {"command":"ln -sf a.txt d.txt"}`)
	waittest.Until(t, "the link is seen", func() bool { return len(u.log("d.txt")) > 0 })
	var out wire.WorkspaceRestored
	u.must(wire.MethodWorkspaceRestore, wire.WorkspaceRestore{Path: "d.txt", Time: "1h"}, &out)
	if got := u.readFile("workspace/a.txt") + u.readFile("workspace/d.txt"); got != "AD" || out.Path != "d.txt" ||
		out.Deleted || !out.Changed {
		t.Errorf("%q, %+v", got, out)
	}
	err := u.Client.Call(t.Context(), wire.MethodWorkspaceRestore, wire.WorkspaceRestore{Path: "l.txt", Time: "1h"}, nil)
	if err == nil || !strings.Contains(err.Error(), "l.txt is a link to ") || u.readFile("workspace/a.txt") != "A" {
		t.Errorf("a link: %v; a.txt is %q", err, u.readFile("workspace/a.txt"))
	}
	if l := u.log("l.txt"); len(l) != 1 || l[0].Path != "a.txt" {
		t.Errorf("the log of what a link leads to: %+v", l)
	}
	l := u.log("d.txt")
	if len(l) != 2 || l[0].Tool != "restore" || l[1].Tool != "" {
		t.Fatalf("the log of the file: %+v", l)
	}
	u.must(wire.MethodWorkspaceRestore, wire.WorkspaceRestore{Change: l[1].ID}, &out)
	if to, err := os.Readlink(filepath.Join(u.Dir, "workspace", "d.txt")); to != "a.txt" ||
		u.readFile("workspace/a.txt") != "A" {
		t.Errorf("the link is restored as %q, %v", to, err)
	}
}

func (u *undoer) readFile(name string) string {
	data, err := os.ReadFile(filepath.Join(u.Dir, name))
	if err != nil {
		u.t.Error(err)
	}
	return string(data)
}

// shell runs a command in the workspace, outside of Chela.
func (u *undoer) shell(command string) {
	u.t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = filepath.Join(u.Dir, "workspace")
	if out, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("%s: %v: %s", command, err, out)
	}
}
