package chelatest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestSurvivors has a model run commands repeatedly that try to outlive their
// call: double forks, own sessions, ignored TERM. The calls end in every
// possible way.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	const sessions = 5 // of three calls each
	mark := fmt.Sprintf("31557%d", os.Getpid())
	tough := `(setsid sh -c 'trap "" TERM HUP INT; setsid sh -c "trap \"\" TERM HUP INT; sleep ` + mark + `" & sleep ` + mark + `' &); sleep 0.1; `
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(tough)
	call := func(n int, then, more string) llmtest.Step {
		return llmtest.Call(fmt.Sprint("c", n), "exec", `{"command":"`+quoted+then+`"`+more+`}`)
	}
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		results := 0
		if r.Messages[0].PlainText() == "a stopped call" {
			return call(n, "sleep 60; echo stopped"+mark, "")
		}
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool {
				results++
			}
		}
		switch results {
		case 0:
			return call(n, fmt.Sprint("echo ", n), "")
		case 1:
			return call(n, fmt.Sprint("sleep 60; echo ", n), `,"timeoutSeconds":1`)
		case 2:
			return call(n, fmt.Sprint("exec sleep 60.", n), `,"background":true,"timeoutSeconds":1`)
		}
		return llmtest.Say("done")
	})
	g := Start(t, Options{Model: model, Config: full()})
	c := g.Client()
	stopped := c.Send("stopped", "a stopped call")
	var runs []string
	for i := range sessions {
		runs = append(runs, c.Send(fmt.Sprint("s", i), "go"))
	}
	for end := time.Now().Add(10 * time.Second); len(survivors(t, "stopped"+mark)) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command to stop is not running")
		}
	}
	c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "stopped", RunID: stopped}, nil)
	for _, run := range runs {
		var w wire.AgentWaited
		c.must(wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 60_000}, &w)
		if w.Status != wire.StatusOK {
			t.Errorf("run %s ended %s: %s", run, w.Status, w.Error)
		}
	}
	c.Close()
	g.Stop()
	t.Run("R18 no surviving process and no zombie", func(t *testing.T) {
		var left []string
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if left = survivors(t, mark); len(left) == 0 {
				return
			}
		}
		t.Errorf("left: %q", left)
	})
}

// survivors returns the processes with the mark in their arguments, and the
// zombies of this process.
func survivors(t *testing.T, mark string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, dir := range dirs {
		words, _ := os.ReadFile(dir + "/cmdline") // it may have ended in the meantime
		stat, _ := os.ReadFile(dir + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		zombie := strings.HasPrefix(rest, fmt.Sprint("Z ", os.Getpid(), " "))
		if zombie || strings.Contains(string(words), mark) {
			left = append(left, fmt.Sprintf("%s %q %.40s", filepath.Base(dir), words, rest))
		}
	}
	return left
}
