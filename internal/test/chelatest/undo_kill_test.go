//go:build unix

package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestUndoKilled kills the engine at each step of a change and of an undo. The next engine
// finds out what was done, and goes on with an undo: no file is left in between.
func TestUndoKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	const old, changed, mine = "old\n", "new\n", "mine\n"
	for _, tt := range []struct {
		step     string
		undo     bool      // it is the undo that is killed
		killed   [2]string // the files when the engine is dead
		edit     bool      // the first file is edited before the next start
		restart  [2]string // after the next start
		undoable string    // part of the answer to /undo then
	}{
		{step: "journal.planned:1", killed: [2]string{old, old}, restart: [2]string{old, old}, undoable: "nothing to undo"},
		{step: "journal.made:1", killed: [2]string{changed, changed}, restart: [2]string{changed, changed},
			undoable: "Undo 2 changes"},
		{step: "journal.made:1", killed: [2]string{changed, changed}, edit: true, restart: [2]string{mine, changed},
			undoable: "Undo 1 change:"},
		{step: "undo.planned:1", undo: true, killed: [2]string{changed, changed}, restart: [2]string{old, old},
			undoable: "nothing to undo"},
		{step: "undo.made:1", undo: true, killed: [2]string{changed, old}, restart: [2]string{old, old},
			undoable: "nothing to undo"},
		{step: "undo.made:2", undo: true, killed: [2]string{old, old}, restart: [2]string{old, old},
			undoable: "nothing to undo"},
		{step: "undo.planned:1", undo: true, killed: [2]string{changed, changed}, edit: true, restart: [2]string{mine, old},
			undoable: "a.txt: it was changed since"},
	} {
		name := "killed before " + tt.step
		if tt.edit {
			name += ", and a file is edited"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				if bytes.Contains(r.Body, []byte(`"role":"tool"`)) {
					return llmtest.Say("done")
				}
				return llmtest.Call("call_1", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** Update File: b.txt\n@@\n-old\n+new\n*** End Patch"}`)
			})
			url, _ := srv.Listen()
			dir, conf := t.TempDir(), modelConfig(llmtest.OpenAI, url)
			for _, file := range []string{"a.txt", "b.txt"} {
				writeUnder(t, dir, "workspace/"+file, old)
			}
			files := func(when string, want [2]string) {
				t.Helper()
				for i, file := range []string{"a.txt", "b.txt"} {
					if data, err := os.ReadFile(filepath.Join(dir, "workspace", file)); string(data) != want[i] {
						t.Errorf("%s: %s is %q, want %q (%v)", when, file, data, want[i], err)
					}
				}
			}
			cmd, c := startSubprocess(t, dir, conf, tt.step)
			send := func(id, text string) { // the answer may be lost with the process
				_ = c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: text, IdempotencyKey: id},
					nil)
			}
			if tt.undo {
				c.Ask("main", "change them")
				c.Ask("main", "/undo")
				send("yes", "/undo yes")
			} else {
				send("change", "change them")
			}
			done := make(chan struct{})
			go func() { cmd.Wait(); close(done) }()
			waittest.For(t, "the step", done)
			files("when it was killed", tt.killed)
			if tt.edit {
				writeUnder(t, dir, "workspace/a.txt", mine)
			}
			_, c = startSubprocess(t, dir, conf, "")
			files("after the next start", tt.restart)
			if got := c.Ask("main", "/undo").Text; !strings.Contains(got, tt.undoable) {
				t.Errorf("/undo without %q: %s", tt.undoable, got)
			}
		})
	}
}

// TestUndoBeforePort checks that a gateway goes on with an undo before its port serves
// clients: a change that one of them makes must not be taken for one of the killed process.
func TestUndoBeforePort(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
		if bytes.Contains(r.Body, []byte(`"role":"tool"`)) {
			return llmtest.Say("done")
		}
		return llmtest.Call("call_1", "apply_patch",
			`{"input":"*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch"}`)
	})
	url, _ := srv.Listen()
	dir, conf := t.TempDir(), modelConfig(llmtest.OpenAI, url)
	writeUnder(t, dir, "workspace/a.txt", "old\n")
	cmd, c := startSubprocess(t, dir, conf, "undo.planned:1")
	c.Ask("main", "change it")
	c.Ask("main", "/undo")
	// the answer is lost
	_ = c.Call(t.Context(), wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "/undo yes", IdempotencyKey: "yes"}, nil)
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	waittest.For(t, "the step", done)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conf["gateway"] = json.RawMessage(`{"auth": {"token": "a-token"}}`)
	dial := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		cl, err := client.Dial(ctx, client.Options{ // waits while the gateway is starting
			URL:    "ws://" + l.Addr().String(),
			Auth:   &wire.Auth{Token: "a-token"},
			ID:     "chela",
			Mode:   wire.ModeCLI,
			Scopes: []string{wire.ScopeAdmin},
			Once:   true,
		})
		if err == nil {
			cl.Close()
		}
		return err
	}
	var early error
	Start(t, Options{Dir: dir, Config: conf, Listen: &endpoint.Listen{Listener: l}, Step: func(name string) {
		if name == "undo.made" {
			early = dial(time.Second)
		}
	}})
	if early == nil {
		t.Error("the port served a client during the undo, or there was no undo")
	}
	if err := dial(waittest.Limit); err != nil {
		t.Errorf("after the start: %v", err)
	}
}

// TestSkillKilled kills the engine during the update of a skill. The next engine completes
// or undoes it, and the journal agrees with that.
func TestSkillKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	for _, tt := range []struct {
		name, step string
		move       bool   // to where the old skill is between the two moves
		want       string // the skill after the next start
		state      string // of the change in the journal
	}{
		{name: "before the old skill is moved", step: "journal.planned:2", want: "1", state: "failed"},
		{name: "between the moves", step: "journal.planned:2", move: true, want: "1", state: "failed"},
		{name: "after the moves", step: "journal.made:2", want: "2", state: "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, from := t.TempDir(), t.TempDir()
			installed := filepath.Join(dir, "skills", "tea", "SKILL.md")
			cmd, c := startSubprocess(t, dir, Config{}, tt.step)
			writeUnder(t, from, "SKILL.md", head("tea", "version 1"))
			c.must(wire.MethodSkillsInstall, wire.SkillsInstall{From: from}, nil)
			writeUnder(t, from, "SKILL.md", head("tea", "version 2"))
			if err := c.Call(t.Context(), wire.MethodSkillsUpdate, wire.SkillsUpdate{Slug: "tea"}, nil); err == nil {
				t.Fatal("the step was not reached")
			}
			_ = cmd.Wait()
			if tt.move {
				if err := os.Rename(filepath.Dir(installed), filepath.Join(dir, "skills", ".old-tea")); err != nil {
					t.Fatal(err)
				}
			}
			_, c = startSubprocess(t, dir, nil, "")
			if data, err := os.ReadFile(installed); err != nil || !strings.Contains(string(data), "version "+tt.want) {
				t.Errorf("the skill is %q, %v", data, err)
			}
			var log wire.WorkspaceChanges
			c.must(wire.MethodWorkspaceLog, wire.WorkspaceLog{Path: installed}, &log)
			if len(log.Changes) == 0 || log.Changes[0].State != tt.state {
				t.Errorf("the journal: %+v", log.Changes)
			}
		})
	}
}
