package chelatest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestSurvivors has a model run commands repeatedly that try to outlive their
// call: double forks, own sessions, ignored TERM. The calls end in every
// possible way.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	const sessions = 5 // of three calls each
	mark := fmt.Sprintf("31557%d", os.Getpid())
	tough := `(setsid sh -c 'trap "" TERM HUP INT; setsid sh -c "trap \"\" TERM HUP INT; sleep ` + mark + `" & sleep ` +
		mark + `' &); sleep 0.1; `
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(tough)
	call := func(n int, then, more string) llmtest.Step {
		return llmtest.Call(fmt.Sprint("c", n), "exec", `{"command":"`+quoted+then+`"`+more+`}`)
	}
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		results := 0
		if r.Messages[0].PlainText() == "a stopped call" {
			return call(n, "sleep 9999; echo stopped"+mark, "")
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
			return call(n, fmt.Sprint("sleep 9999; echo ", n), `,"timeoutSeconds":1`)
		case 2:
			return call(n, fmt.Sprint("exec sleep 9999.", n), `,"background":true,"timeoutSeconds":1`)
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
	waittest.Until(t, "the command to stop runs", func() bool { return len(survivors(t, "stopped"+mark)) > 0 })
	c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "stopped", RunID: stopped}, nil)
	for _, run := range runs {
		var w wire.AgentWaited
		c.must(wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: waittest.Limit.Milliseconds()}, &w)
		if w.Status != wire.StatusOK {
			t.Errorf("run %s ended %s: %s", run, w.Status, w.Error)
		}
	}
	c.Close()
	g.Stop()
	t.Run("R18 no surviving process and no zombie", func(t *testing.T) {
		none(t, func() []string { return survivors(t, mark) })
	})
}

// none waits until there are no processes.
func none(t *testing.T, processes func() []string) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %q", left)
		}
	}()
	waittest.Until(t, "the processes have ended", func() bool { left = processes(); return len(left) == 0 })
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
