package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// caged runs a command in the sandbox, without a question, and returns the answer.
func (u *undoer) caged(command string) string {
	u.t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		u.t.Fatal(err)
	}
	asked, answer := u.decideAll(u.Send("main", "exec "+string(args)), wire.Deny)
	if len(asked) > 0 {
		u.t.Fatalf("%s asks: %s", command, asked[0].Request.Reason)
	}
	return answer
}

// TestUndoOfCommands checks that /undo takes back what commands in the sandbox did to the
// files of the workspace.
func TestUndoOfCommands(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	prepared := func(t *testing.T) *undoer {
		t.Helper()
		u := newUndoer(t, Options{Dial: noHosts})
		for name, text := range map[string]string{
			"a.txt":         "A\n",
			"d/b.txt":       "B\n",
			"d/e/c.txt":     "C\n",
			".github/x.yml": "x: 1\n",
			".editorconfig": "root = true\n",
			"run.sh":        "#!/bin/sh\n",
			"clean.py":      "import shutil; shutil.rmtree('d'); open('new.txt','w').write('n')\n",
		} {
			u.writeIn("workspace/p/"+name, text)
		}
		if err := os.Chmod(filepath.Join(u.Dir, "workspace/p/run.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, tt := range []struct{ name, command string }{
		{"rm", "cd p && rm -rf d a.txt .github run.sh"},
		{"mv", "cd p && mv d moved && mv a.txt d.txt"},
		{"sed -i", "cd p && sed -i s/A/X/ a.txt && sed -i s/B/X/ d/b.txt"},
		{"truncate", "cd p && : > d/e/c.txt && printf more >> .editorconfig"},
		{"a program", "cd p && python3 clean.py"},
		{"times that were kept", "cd p && touch -r a.txt d/t && echo Z > a.txt && touch -r d/t a.txt"},
	} {
		t.Run("UND-01 "+tt.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.command, "python3") {
				needtest.Program(t, "python3")
			}
			u := prepared(t)
			before := u.files("workspace/p")
			u.caged(tt.command)
			if u.files("workspace/p") == before {
				t.Fatal("the command did nothing")
			}
			u.undo("")
			var after strings.Builder // without empty folders that the command made, which stay
			for line := range strings.Lines(u.files("workspace/p")) {
				if strings.Contains(before, line) || !strings.HasSuffix(line, `"folder"`+"\n") {
					after.WriteString(line)
				}
			}
			u.same("after the undo", after.String(), before)
		})
	}
	t.Run("UND-02 files and commands are one plan, and what a person changed in between stays", func(t *testing.T) {
		t.Parallel()
		u := prepared(t)
		u.caged("echo 1 > p/first.txt")
		u.writeIn("workspace/p/mine.txt", "mine\n")
		u.writeIn("workspace/p/a.txt", "edited\n")
		u.caged("rm p/a.txt p/d/b.txt")
		u.undo("", "p/a.txt: bring back", "p/d/b.txt: bring back", "Undo 2 changes")
		if got := u.readFile("workspace/p/a.txt") + u.readFile("workspace/p/mine.txt") +
			u.readFile("workspace/p/first.txt"); got != "edited\nmine\n1\n" {
			t.Errorf("after the undo: %q", got)
		}
		u.call("write", "path", "p/w.txt", "content", "w")
		u.caged("rm p/run.sh; echo more >> p/w.txt")
		u.undo("2", "p/run.sh: bring back", "p/w.txt: delete")
		if _, err := os.Stat(filepath.Join(u.Dir, "workspace/p/w.txt")); err == nil {
			t.Error("the file of the tool is still there")
		}
	})
	t.Run("UND-01 git checkout", func(t *testing.T) {
		t.Parallel()
		u := prepared(t)
		u.caged("cd p && git init -q . && git add . && git -c user.name=a -c user.email=a@example.com commit -qm one")
		u.writeIn("workspace/p/a.txt", "not committed\n")
		u.caged("cd p && git checkout -q -- . && git rm -q -r d")
		if got := u.readFile("workspace/p/a.txt"); got != "A\n" {
			t.Fatalf("a.txt is %q", got)
		}
		u.undo("", "Undo 3 changes")
		if got := u.readFile("workspace/p/a.txt") + u.readFile("workspace/p/d/b.txt") +
			u.readFile("workspace/p/d/e/c.txt"); got != "not committed\nB\nC\n" {
			t.Errorf("after the undo: %q", got)
		}
	})
	t.Run("UND-03 what cannot be brought back is said in the answer and in the plan", func(t *testing.T) {
		t.Parallel()
		u := prepared(t)
		u.writeIn("workspace/big.bin", strings.Repeat("x", 9<<20))
		u.caged("touch p/a")
		if got := u.caged("rm big.bin p/a.txt"); !strings.Contains(got,
			"/undo cannot bring back what was in big.bin (9 MB)") {
			t.Errorf("answer: %s", got)
		}
		u.undo("", "Not possible: big.bin: its earlier content (9 MB) was not kept", "p/a.txt: bring back")
		if got := u.readFile("workspace/p/a.txt"); got != "A\n" {
			t.Errorf("a.txt is %q", got)
		}
	})
	t.Run("UND-04 private files and what is installed are not kept", func(t *testing.T) {
		t.Parallel()
		u := prepared(t)
		for _, name := range []string{".env", "p/server.key", "p/node_modules/x/index.js", "p/.venv/x.py",
			"p/dist/out.js", "p/cache/big"} {
			u.writeIn("workspace/"+name, "hidden-content-"+name)
		}
		u.writeIn("workspace/p/.gitignore", "/dist/\n")
		u.writeIn("workspace/p/cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
		u.caged("touch p/a; rm -rf p/dist p/node_modules")
		root := filepath.Join(u.Dir, "media")
		err := walkLive(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte("hidden-content-")) {
				t.Errorf("kept: %s", data)
			}
			if info, err := e.Info(); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("UND-05 thousands of files", func(t *testing.T) {
		t.Parallel()
		u := newUndoer(t, Options{Dial: noHosts})
		const files = 2050 // more than are listed at once
		for i := range files {
			u.writeIn(fmt.Sprintf("workspace/p/d%d/f%d.txt", i/100, i), fmt.Sprint(i))
		}
		before := u.files("workspace/p")
		u.caged("rm -rf p")
		u.undo("", fmt.Sprintf("Undo %d changes", files))
		if u.files("workspace/p") != before {
			t.Error("not all are back")
		}
	})
}

// TestUndoOfCommandsKilled kills the engine when a command has ended: before what it changed
// is looked for, and before that is recorded. The next engine finds it.
func TestUndoOfCommandsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	for _, step := range []string{"look.before:1", "look.kept:1"} {
		t.Run("UND-06 killed at "+step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				if bytes.Contains(r.Body, []byte(`"role":"tool"`)) {
					return llmtest.Say("done")
				}
				return llmtest.Call("call_1", "exec", `{"command":"rm a.txt; echo two > b.txt"}`)
			})
			url, _ := srv.Listen()
			dir := t.TempDir()
			writeUnder(t, dir, "workspace/a.txt", "one\n")
			writeUnder(t, dir, "workspace/b.txt", "one\n")
			conf := modelConfig(llmtest.OpenAI, url)
			maps.Copy(conf, full())
			cmd, c := startSubprocess(t, dir, conf, step)
			_ = c.Call(t.Context(), wire.MethodChatSend,
				wire.ChatSend{SessionKey: "main", Message: "change them", IdempotencyKey: "one"}, nil)
			done := make(chan struct{})
			go func() { _ = cmd.Wait(); close(done) }()
			waittest.For(t, "the step", done)
			_, c = startSubprocess(t, dir, nil, "")
			if got := c.Ask("main", "/undo").Text; !strings.Contains(got, "Undo 2 changes") {
				t.Errorf("/undo: %s", got)
			}
			c.Ask("main", "/undo yes")
			for _, name := range []string{"a.txt", "b.txt"} {
				if data, err := os.ReadFile(filepath.Join(dir, "workspace", name)); string(data) != "one\n" {
					t.Errorf("%s is %q, %v", name, data, err)
				}
			}
		})
	}
}

// TestDeniedAfterItRan checks that a command that ran in the sandbox, and was refused
// something there, is not said to have done nothing when a person denies it the right.
func TestDeniedAfterItRan(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "curl")
	u := newUndoer(t, Options{Dial: site(t)})
	u.writeIn("workspace/a.txt", "one\n")
	asked, answer := u.decideAll(
		u.Send("main", `exec {"command":"echo two > a.txt; echo printed; curl -sS http://example.org/a"}`), wire.Deny)
	if len(asked) != 1 || !strings.Contains(asked[0].Request.Reason, "connect to example.org") {
		t.Fatalf("asked %+v", asked)
	}
	for _, want := range []string{"it ran, and was stopped for lack of rights", "denied by", "printed",
		"What it did until then is done"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer without %q: %s", want, answer)
		}
	}
	if strings.Contains(answer, "not run:") {
		t.Errorf("the answer says that it did not run: %s", answer)
	}
	if got := u.readFile("workspace/a.txt"); got != "two\n" {
		t.Errorf("a.txt is %q", got)
	}
	u.undo("", "a.txt: restore")
	if got := u.readFile("workspace/a.txt"); got != "one\n" {
		t.Errorf("after the undo, a.txt is %q", got)
	}
}
