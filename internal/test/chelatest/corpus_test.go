package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// executes is a model that executes a message as a command.
func executes() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("got: " + last.PlainText())
		}
		command, ok := strings.CutPrefix(last.PlainText(), "run: ")
		if !ok {
			return llmtest.Say("noted") // a command in the background has ended
		}
		args, err := json.Marshal(map[string]string{"command": command})
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
	return c.decideAll(c.Send(session, "run: "+command), decision)
}

// decideAll answers all questions of a run with decision, and returns them and the answer.
func (c *Client) decideAll(run, decision string) (asked []wire.Approval, answer string) {
	c.t.Helper()
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
