//go:build conformance

package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// trial is a command of a corpus.
type trial struct {
	id, marks, command string
	fields             []string // all of them
}

// corpus reads a file of lines of an identifier, marks and a command, which are
// separated by tabs. command is the column of the command.
func corpus(t *testing.T, file string, command int) []trial {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`)
	var list []trial
	for text := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
		if len(f) <= command {
			t.Fatalf("%s: %q has too few columns", file, text)
		}
		list = append(list, trial{f[0], f[1], plain.Replace(f[command]), f})
	}
	return list
}

// executes is a model that executes the message as a command.
func executes() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("got: " + last.PlainText())
		}
		args, err := json.Marshal(map[string]string{"command": strings.TrimPrefix(last.PlainText(), "run: ")})
		if err != nil {
			panic(err)
		}
		return llmtest.Call(fmt.Sprint("call_", n), "exec", string(args))
	})
}

// execute has the model execute a command, and answers all questions about it with
// decision. It returns the questions and the answer.
func (c *Client) execute(session, command, decision string) (asked []wire.Approval, answer string) {
	c.t.Helper()
	run := c.Send(session, "run: "+command)
	for ev := range c.Events() {
		var chat wire.Chat
		var a wire.Approval
		switch ev.Name {
		case wire.EventApprovalRequested:
			if err := ev.Decode(&a); err != nil {
				c.t.Fatal(err)
			}
			asked = append(asked, a)
			c.decide(a.ID, decision)
		case wire.EventChat:
			if err := ev.Decode(&chat); err != nil {
				c.t.Fatal(err)
			}
			if chat.RunID == run && chat.State != wire.StateDelta {
				return asked, chat.Message.Text()
			}
		}
	}
	c.t.Fatalf("the connection was closed during run %s: %v", run, c.Err())
	return nil, ""
}

// prepare runs the script that makes the files of a corpus in a folder.
func prepare(t *testing.T, script, dir string, env ...string) {
	t.Helper()
	script, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", script, dir)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// TestEveryday runs the commands of a working day in a used project, with the
// default configuration. They were collected by a person who did not know the
// program.
func TestEveryday(t *testing.T) {
	for _, name := range []string{"git", "go", "make", "python3"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	prepare(t, filepath.Join("testdata", "everyday", "setup.sh"), ws, "HOME="+home)
	g := Start(t, Options{
		Dir: home, Model: executes(), Dial: noHosts, Environ: []string{"PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=local"},
		Config: Config{"agents.defaults": json.RawMessage(`{"skipBootstrap": true}`), "tools.exec": json.RawMessage(`{"backgroundMs": 600000}`)},
	})
	c := g.Client()
	ran, asks := 0, 0
	for _, l := range corpus(t, filepath.Join("testdata", "everyday", "commands.tsv"), 2) {
		marks := strings.Split(l.marks, ",")
		if slices.Contains(marks, "net") {
			continue // it shows nothing without a network
		}
		ran++
		asked, answer := c.execute("s"+l.id, l.command, wire.AllowOnce)
		if len(asked) > 0 {
			asks++
			t.Logf("%s asks %q: %s: %q", l.id, l.marks, l.command, asked[0].Request.Reason)
		}
		failed := strings.Contains(answer, "exit code ") || !strings.HasPrefix(answer, "got: ")
		if strings.Contains(answer, "exit code 127") && slices.Contains(marks, "missing-ok") {
			failed = false
		}
		if want := slices.Contains(marks, "fails"); failed != want {
			t.Errorf("%s %s: fails: %v, want %v: %s", l.id, l.command, failed, want, answer)
		}
	}
	t.Logf("%d of %d commands ask", asks, ran)
	if ran < 90 || asks*20 > ran {
		t.Errorf("%d of %d commands ask, want at most 5 %% of at least 90", asks, ran)
	}
}
