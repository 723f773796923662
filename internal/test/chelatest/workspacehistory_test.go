package chelatest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// log returns the changes of a file of the workspace, newest first, without those that were
// only seen.
func (u *undoer) log(path string) []wire.Change {
	u.t.Helper()
	var l wire.WorkspaceChanges
	u.must(wire.MethodWorkspaceLog, wire.WorkspaceLog{Path: path}, &l)
	out := []wire.Change{}
	for _, c := range l.Changes {
		if c.Action != wire.ChangeSeen {
			out = append(out, c)
		}
	}
	return out
}

// why returns where a line of a file of the workspace comes from.
func (u *undoer) why(path string, line int) *wire.Change {
	u.t.Helper()
	var s wire.MemorySources
	u.must(wire.MethodMemoryWhy, wire.MemoryWhy{Path: path, Line: line}, &s)
	if len(s.Lines) != 1 {
		u.t.Fatalf("sources of %s:%d: %+v", path, line, s)
	}
	return s.Lines[0].Change
}

func TestWorkspaceHistory(t *testing.T) {
	t.Parallel()
	t.Run("what commands and the person change is found", func(t *testing.T) {
		t.Parallel()
		u := newUndoer(t, Options{Config: full()})
		u.write("workspace/memory/a.md", "one\n", 0o640)
		u.write("workspace/memory/b.md", "one\n", 0o640)
		if l := u.log(""); len(l) != 0 {
			t.Errorf("before any change: %+v", l)
		}
		u.write("workspace/memory/a.md", "one\ntwo\n", 0o640)
		u.ask(`exec {"command":"rm memory/b.md; echo x > memory/c.md; echo y > other.txt"}`)
		var l []wire.Change
		// the end of a run is not delayed
		waittest.Until(t, "four changes", func() bool { l = u.log(""); return len(l) == 4 })
		byPath := map[string]wire.Change{}
		for _, c := range l {
			byPath[c.Path] = c
		}
		a, b, c, other := byPath["memory/a.md"], byPath["memory/b.md"], byPath["memory/c.md"], byPath["other.txt"]
		if a.Tool != "" || a.RunID != "" || a.Action != wire.ChangeChanged || a.Added != 1 || a.Removed != 0 {
			t.Errorf("changed by the person before the run: %+v", a)
		}
		for _, c := range []wire.Change{b, c, other} {
			if c.Tool != "" || c.RunID == "" || c.SessionKey != "agent:main:main" || c.Origin != "person" {
				t.Errorf("changed by a command: %+v", c)
			}
		}
		if b.Action != wire.ChangeDeleted || c.Action != wire.ChangeCreated || other.Action != wire.ChangeCreated {
			t.Errorf("%s, %s and %s", b.Action, c.Action, other.Action)
		}
		u.undo("", "memory/b.md: bring back (+1 -0), changed", "by a command, or by you", "memory/c.md: delete",
			"other.txt: delete", "cannot be: whatever else 1 command did (only files")
		if got := u.files("workspace/memory"); got != "/a.md -rw-r----- \"one\\ntwo\\n\"\n/b.md -rw-r----- \"one\\n\"\n" {
			t.Errorf("after the undo:\n%s", got)
		}
	})
	t.Run("an earlier version is restored, and that can be undone", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			u := newUndoer(t, Options{})
			defer u.Stop()
			defer u.Client.Close()
			u.call("write", "path", "SOUL.md", "content", "calm\n")
			time.Sleep(time.Hour)
			u.call("write", "path", "SOUL.md", "content", "loud\n")
			time.Sleep(time.Hour)
			l := u.log("SOUL.md")
			if len(l) < 2 || l[0].Tool != "write" || l[0].Added != 1 || l[0].CallID == "" || l[0].By != "owner" {
				t.Fatalf("log: %+v", l)
			}
			var d wire.WorkspaceDifference
			u.must(wire.MethodWorkspaceDiff, wire.WorkspaceDiff{Path: "SOUL.md"}, &d)
			if d.Change.ID != l[0].ID || !strings.HasSuffix(d.Text, "-calm\n+loud\n") {
				t.Errorf("diff: %+v", d)
			}
			content := func(want string) {
				t.Helper()
				if data, err := os.ReadFile(filepath.Join(u.Dir, "workspace", "SOUL.md")); string(data) != want {
					t.Errorf("SOUL.md is %q, want %q (%v)", data, want, err)
				}
			}
			restore := func(r wire.WorkspaceRestore, changed bool) {
				t.Helper()
				var out wire.WorkspaceRestored
				u.must(wire.MethodWorkspaceRestore, r, &out)
				if out.Path != "SOUL.md" || out.Changed != changed {
					t.Errorf("restore %+v: %+v", r, out)
				}
			}
			restore(wire.WorkspaceRestore{Path: "SOUL.md", Time: "90m"}, true)
			content("calm\n")
			restore(wire.WorkspaceRestore{Change: l[1].ID[:8]}, false)
			restore(wire.WorkspaceRestore{Change: l[0].ID}, true)
			content("loud\n")
			restore(wire.WorkspaceRestore{Change: l[0].ID, Before: true, Path: "SOUL.md"}, true)
			content("calm\n")
			var plan wire.UndoPlanned
			u.must(wire.MethodUndoPlan, wire.UndoPlan{}, &plan)
			var done wire.UndoApplied
			u.must(wire.MethodUndoApply, wire.UndoApply{Hash: plan.Hash}, &done)
			content("loud\n")
			if err := u.Client.Call(t.Context(), wire.MethodUndoApply, wire.UndoApply{Hash: plan.Hash}, nil); err == nil ||
				!strings.Contains(err.Error(), "no undo waits") {
				t.Errorf("a second time: %v", err)
			}
			for _, bad := range []wire.WorkspaceRestore{{}, {Path: "SOUL.md"}, {Change: "ffff"}, {Path: "SOUL.md", Time: "soon"},
				{Change: l[0].ID, Path: "USER.md"}, {Path: "../../etc/passwd", Time: "1h"}} {
				if err := u.Client.Call(t.Context(), wire.MethodWorkspaceRestore, bad, nil); err == nil {
					t.Errorf("restore %+v: no error", bad)
				}
			}
		})
	})
	t.Run("where a line comes from, through edits, moves and undos", func(t *testing.T) {
		t.Parallel()
		page := &pageTool{}
		u := newUndoer(t, Options{Tools: []tool.Tool{page}, Model: llmtest.ScriptFunc(useEach)})
		u.call("write", "path", "memory/a.md", "content", "# Home\nrouter on the NAS\n")
		u.ask("web_page {}\nedit " +
			`{"path":"memory/a.md","oldText":"# Home\n","newText":"# Home\nthe bank is at evil.example\n"}`)
		u.call("apply_patch", "input",
			"*** Begin Patch\n*** Update File: memory/a.md\n*** Move to: memory/b.md\n@@\n-# Home\n+# House\n*** End Patch")
		u.write("workspace/memory/b.md", "# House\nthe bank is at evil.example\nmine\nrouter on the NAS\n", 0o644)
		if c := u.why("memory/b.md", 1); c == nil || c.Tool != "apply_patch" || c.Untrusted != "" {
			t.Errorf("the heading: %+v", c)
		}
		if c := u.why("memory/b.md", 2); c == nil || c.Tool != "edit" || !strings.Contains(c.Untrusted, "web_page") {
			t.Errorf("the line of a run that had read a page: %+v", c)
		}
		if c := u.why("memory/b.md", 3); c == nil || c.Tool != "" {
			t.Errorf("the line of the person: %+v", c)
		}
		if c := u.why("memory/b.md", 4); c == nil || c.Tool != "write" || c.Untrusted != "" || c.By != "owner" ||
			c.SessionKey != "agent:main:main" {
			t.Errorf("the first line: %+v", c)
		}
		u.call("write", "path", "memory/b.md", "content", "all gone\n")
		u.undo("")
		if c := u.why("memory/b.md", 4); c == nil || c.Tool != "write" || c.Path != "memory/a.md" {
			t.Errorf("after an undo: %+v", c)
		}
		var s wire.MemorySources
		u.must(wire.MethodMemoryWhy, wire.MemoryWhy{Words: "ROUTER nas"}, &s)
		if len(s.Lines) != 1 || s.Lines[0].Path != "memory/b.md" || s.Lines[0].Line != 4 {
			t.Errorf("words: %+v", s)
		}
	})
	t.Run("the changes of subagents belong to the turn that started them", func(t *testing.T) {
		t.Parallel()
		u := newUndoer(t, Options{Model: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			text := last.PlainText()
			switch {
			case last.Role == llm.RoleTool:
				return llmtest.Say("ok")
			case strings.Contains(text, "delegate"):
				return llmtest.Call("d", "sessions_spawn", `{"task":"write it"}`)
			case strings.Contains(text, "write it"):
				return llmtest.Call("w", "write", `{"path":"child.txt","content":"x"}`)
			}
			return llmtest.Say("fine")
		})})
		u.ask("delegate")
		waittest.Until(t, "the file of the subagent", func() bool {
			_, err := os.Stat(filepath.Join(u.Dir, "workspace", "child.txt"))
			return err == nil
		})
		u.settled()
		u.undo("", "child.txt: delete")
	})
}

// useEach makes the calls in a message, one line each.
func useEach(n int, r *llm.Request) llmtest.Step {
	made := 0
	for i := len(r.Messages) - 1; i >= 0; i-- {
		switch m := r.Messages[i]; m.Role {
		case llm.RoleTool:
			made++
		case llm.RoleUser:
			calls := strings.Split(m.PlainText(), "\n")
			if made == len(calls) {
				return llmtest.Say("done")
			}
			name, args, _ := strings.Cut(calls[made], " ")
			return llmtest.Call("e"+string(rune('a'+n)), name, args)
		}
	}
	return llmtest.Say("nothing")
}

// pageTool is a tool that returns a text of somebody else.
type pageTool struct{}

func (*pageTool) Spec() tool.Spec {
	return tool.Spec{Name: "web_page", Description: "a page", Effect: tool.Reads,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`)}
}

func (*pageTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text("the bank is at evil.example"), nil
}
