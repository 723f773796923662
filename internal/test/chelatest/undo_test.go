package chelatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// undoer is a gateway whose model makes the calls in messages.
type undoer struct {
	*Gateway
	*Client
	t *testing.T
}

func newUndoer(t *testing.T, o Options) *undoer {
	t.Helper()
	if o.Model == nil {
		o.Model = uses()
	}
	g := Start(t, o)
	return &undoer{g, g.Client(), t}
}

// ask sends a message to the main session and returns the answer.
func (u *undoer) ask(text string) string {
	u.t.Helper()
	return u.Ask("main", text).Text
}

// call makes a tool call with arguments as pairs.
func (u *undoer) call(tool string, pairs ...string) string {
	u.t.Helper()
	args := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i]] = pairs[i+1]
	}
	b, err := json.Marshal(args)
	if err != nil {
		u.t.Fatal(err)
	}
	return u.ask(tool + " " + string(b))
}

// undo shows the plan of an undo, checks that it has the pieces, carries it out, and
// returns the report.
func (u *undoer) undo(args string, pieces ...string) string {
	u.t.Helper()
	plan := u.ask(strings.TrimSpace("/undo " + args))
	for _, piece := range append(pieces, "/undo yes carries it out") {
		if !strings.Contains(plan, piece) {
			u.t.Errorf("/undo %s without %q:\n%s", args, piece, plan)
		}
	}
	return u.ask("/undo yes")
}

// files returns the content and the mode of all files below a folder of the state
// directory.
func (u *undoer) files(folder string) string {
	u.t.Helper()
	var out strings.Builder
	root := filepath.Join(u.Dir, folder)
	err := walkLive(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data := []byte("folder")
		if !e.IsDir() {
			data, err = os.ReadFile(path)
		}
		fmt.Fprintf(&out, "%s %v %q\n", strings.TrimPrefix(path, root), info.Mode(), data)
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return out.String()
}

func (u *undoer) same(what, got, want string) {
	u.t.Helper()
	if got != want {
		u.t.Errorf("%s: have\n%s\nwant\n%s", what, got, want)
	}
}

func (u *undoer) write(name, text string, mode fs.FileMode) {
	u.t.Helper()
	u.writeIn(name, text)
	if err := os.Chmod(filepath.Join(u.Dir, name), mode); err != nil {
		u.t.Fatal(err)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	bubble := func(name string, o Options, f func(*testing.T, *undoer)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUndoer(t, o)
				f(t, u)
				u.Client.Close()
				u.Stop()
			})
		})
	}
	bubble("EVOLVE-06 files are byte-identical to before, with their modes and folders", Options{},
		func(t *testing.T, u *undoer) {
			u.write("workspace/a.md", "one\r\ntwo\r\n", 0o640)
			u.write("workspace/b.sh", "#!/bin/sh\necho b\n", 0o750)
			u.write("workspace/c/d.md", "gone\n", 0o666) // more than the umask lets a new file have
			u.write("workspace/e.bin", "\x00\xff\x80", 0o644)
			u.ask("hello {}") // the workspace has its files
			before := u.files("workspace")
			u.call("edit", "path", "a.md", "oldText", "two", "newText", "2")
			u.call("write", "path", "e.bin", "content", "text")
			u.call("write", "path", "new/folder/f.md", "content", "new\n")
			u.call("apply_patch", "input", "*** Begin Patch\n*** Update File: b.sh\n*** Move to: moved/b.sh\n@@\n-echo b\n+echo c\n*** Delete File: c/d.md\n*** Update File: a.md\n@@\n-one\n+1\n*** End Patch")
			if u.files("workspace") == before {
				t.Fatal("nothing was changed")
			}
			after := u.files("workspace")
			report := u.undo("4", "Undo 6 changes:", "a.md: restore (+2 -2), changed", "(2 changes)",
				"new/folder/f.md: delete (+0 -1)", "c/d.md: bring back (+1 -0)", "e.bin: restore,", "moved/b.sh: delete")
			if !strings.HasPrefix(report, "Undone: 6 changes.") || !strings.Contains(report, "b.sh is back") {
				t.Errorf("report: %s", report)
			}
			u.same("after the undo", u.files("workspace"), before)
			if got := u.ask("/undo"); !strings.HasPrefix(got, "There is nothing to undo") {
				t.Errorf("a second undo: %s", got)
			}
			u.undo("undo", "Take back the last undo, 6 changes:")
			u.same("after the undo was taken back", u.files("workspace"), after)
			u.undo("undo", "Take back the last undo")
			u.same("after it was undone again", u.files("workspace"), before)
		})
	bubble("the last turn, a number of turns, and those since a time", Options{}, func(t *testing.T, u *undoer) {
		for i := range 5 {
			u.call("write", "path", fmt.Sprintf("%d.txt", i), "content", "x")
			time.Sleep(time.Hour)
		}
		exist := func() (out string) {
			for i := range 5 {
				if _, err := os.Stat(filepath.Join(u.Dir, "workspace", fmt.Sprintf("%d.txt", i))); err == nil {
					out += fmt.Sprint(i)
				}
			}
			return out
		}
		u.undo("", "Undo 1 change:", "4.txt")
		u.same("left", exist(), "0123")
		u.undo("2", "Undo 2 changes:", "3.txt", "2.txt")
		u.same("left", exist(), "01")
		u.undo("since 4h30m", "Undo 1 change:", "1.txt")
		u.same("left", exist(), "0")
		if got := u.ask("/undo since yesterday"); !strings.Contains(got, "is not a time") {
			t.Error(got)
		}
		if got := u.ask("/undo maybe"); !strings.HasPrefix(got, "Usage: /undo") {
			t.Error(got)
		}
	})
	bubble("a file that was changed again is refused, with the difference; the others are undone", Options{},
		func(t *testing.T, u *undoer) {
			u.write("workspace/notes.txt", "one\n", 0o600)
			u.write("workspace/other.txt", "one\n", 0o600)
			u.call("apply_patch", "input", "*** Begin Patch\n*** Update File: notes.txt\n@@\n-one\n+two\n*** Update File: other.txt\n@@\n-one\n+two\n*** End Patch")
			u.write("workspace/notes.txt", "two\nmine\n", 0o600)
			report := u.undo("", "Undo 1 change:", "Not possible: notes.txt: it was changed since.", "+mine")
			if !strings.Contains(report, "Undone: 1 change.") ||
				!strings.Contains(report, "Not undone: notes.txt: it was changed since.") {
				t.Errorf("report: %s", report)
			}
			if got := u.files("workspace"); !strings.Contains(got, `/notes.txt -rw------- "two\nmine\n"`) ||
				!strings.Contains(got, `/other.txt -rw------- "one\n"`) {
				t.Errorf("files:\n%s", got)
			}
			if got := u.ask("/undo"); !strings.Contains(got, "Nothing of it can be undone.") ||
				strings.Contains(got, "/undo yes") {
				t.Errorf("what remains: %s", got)
			}
		})
	bubble("a plan is carried out once, as it was shown, and for ten minutes", Options{}, func(t *testing.T, u *undoer) {
		u.call("write", "path", "a.txt", "content", "x")
		if got := u.ask("/undo yes"); got != "No undo waits for a yes. Use /undo to see what can be undone." {
			t.Errorf("without a plan: %s", got)
		}
		u.ask("/undo")
		time.Sleep(10 * time.Minute)
		if got := u.ask("/undo yes"); !strings.HasPrefix(got, "No undo waits") {
			t.Errorf("after ten minutes: %s", got)
		}
		u.ask("/undo")
		u.call("write", "path", "b.txt", "content", "x")
		if got := u.ask("/undo yes"); !strings.HasPrefix(got, "Nothing was undone, because something has changed") ||
			!strings.Contains(got, "b.txt: delete") {
			t.Errorf("after another change: %s", got)
		}
		if got := u.ask("/undo yes"); !strings.HasPrefix(got, "Undone: 1 change.") {
			t.Errorf("the new plan: %s", got)
		}
		if got := u.ask("/undo yes"); !strings.HasPrefix(got, "No undo waits for a yes.") ||
			!strings.Contains(got, "took back 1 change") {
			t.Errorf("twice: %s", got)
		}
		if got := u.files("workspace"); !strings.Contains(got, "/a.txt") || strings.Contains(got, "/b.txt") {
			t.Errorf("files:\n%s", got)
		}
	})
	t.Run("it works after a restart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), Model: uses()}
			u := newUndoer(t, o)
			u.call("write", "path", "a.txt", "content", "x")
			u.ask("/undo")
			u.Client.Close()
			u.Stop()
			u = newUndoer(t, o)
			if got := u.ask("/undo yes"); !strings.HasPrefix(got, "Undone: 1 change.") {
				t.Errorf("the plan that waited: %s", got)
			}
			if got := u.files("workspace"); strings.Contains(got, "/a.txt") {
				t.Errorf("files:\n%s", got)
			}
			u.Client.Close()
			u.Stop()
		})
	})
	bubble("the changes of other sessions stay; one in between is a reason to refuse", Options{},
		func(t *testing.T, u *undoer) {
			u.call("write", "path", "shared.txt", "content", "1")
			u.call("write", "path", "mine.txt", "content", "1")
			if end := u.Ask("other", `write {"path":"shared.txt","content":"2"}`); !strings.Contains(end.Text, "Replaced") {
				t.Fatal(end.Text)
			}
			u.Ask("other", `write {"path":"theirs.txt","content":"1"}`)
			u.call("write", "path", "shared.txt", "content", "3")
			report := u.undo("9", "Undo 1 change:", "mine.txt: delete", "shared.txt: it was also changed in between")
			if strings.Contains(report, "theirs") {
				t.Errorf("report: %s", report)
			}
			if got := u.files("workspace"); !strings.Contains(got, `/shared.txt -rw-r--r-- "3"`) ||
				!strings.Contains(got, "/theirs.txt") || strings.Contains(got, "/mine.txt") {
				t.Errorf("files:\n%s", got)
			}
			if end := u.Ask("other", "/undo 9"); !strings.Contains(end.Text, "theirs.txt: delete") ||
				!strings.Contains(end.Text, "shared.txt: it was changed since") {
				t.Errorf("in the other session: %s", end.Text)
			}
		})
	bubble("jobs come back, and those that were added or changed are as before", Options{}, func(t *testing.T, u *undoer) {
		list := func() string {
			var l struct {
				Jobs []struct {
					ID, Name, SessionTarget string
					Schedule, Payload       json.RawMessage
					Enabled                 bool
					State                   struct{ NextRunAtMs int64 }
				}
			}
			if err := u.Client.Call(t.Context(), wire.MethodCronList, wire.CronList{}, &l); err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, j := range l.Jobs {
				out = append(out, fmt.Sprintf("%+v", j.ID), j.Name, string(j.Schedule), string(j.Payload), j.SessionTarget,
					fmt.Sprint(j.Enabled, j.State.NextRunAtMs))
			}
			return strings.Join(out, " ")
		}
		u.ask(`cron {"action":"add","job":{"name":"water","schedule":{"kind":"cron","expr":"0 9 * * *"},"payload":{"kind":"systemEvent","text":"water the plants"}}}`)
		first := list()
		if !strings.Contains(first, "0 9 * * *") {
			t.Fatalf("jobs: %q", first)
		}
		u.ask(`cron {"action":"update","jobId":"water","patch":{"schedule":{"kind":"cron","expr":"0 8 * * *"}}}`)
		if list() == first {
			t.Fatal("the job was not changed")
		}
		u.undo("", "job water: restore", "by cron")
		u.same("after the undo of a change", list(), first)
		u.ask(`cron {"action":"remove","jobId":"water"}`)
		u.same("after the removal", list(), "")
		u.undo("", "job water: bring back")
		u.same("after the undo of the removal", list(), first)
		u.undo("", "job water: delete")
		u.same("after the undo of the addition", list(), "")
	})
	bubble("a setting that was changed in the chat", Options{Config: Config{}}, func(t *testing.T, u *undoer) {
		const text = "{ // mine\n  commands: {config: true},\n}\n"
		u.write("chela.json", text, 0o600)
		time.Sleep(5 * time.Second)
		if got := u.ask("/config set messages.responsePrefix hello"); !strings.Contains(got, "is set") {
			t.Fatal(got)
		}
		data, _ := os.ReadFile(filepath.Join(u.Dir, "chela.json"))
		if !strings.Contains(string(data), "responsePrefix") {
			t.Fatalf("%s", data)
		}
		u.undo("", "chela.json: restore (+0 -3)", "by /config")
		data, _ = os.ReadFile(filepath.Join(u.Dir, "chela.json"))
		u.same("the file", string(data), text)
		if got := u.ask("/config get messages.responsePrefix"); strings.Contains(got, "hello") {
			t.Errorf("in force: %s", got)
		}
	})
	bubble("what cannot be undone is said", Options{Config: section("tools", `{"exec": {"mode": "full"}}`)},
		func(t *testing.T, u *undoer) {
			u.call("write", "path", "a.txt", "content", "x")
			time.Sleep(time.Minute)
			u.call("exec", "command", "touch ../b.txt")
			u.call("exec", "command", "touch ../c.txt")
			u.undo("", "a.txt: delete", "Not undone, because it cannot be: whatever else 2 commands did (only files")
			large := strings.Repeat("x", 9<<20)
			u.write("workspace/large.txt", large, 0o600)
			if got := u.call("write", "path", "large.txt", "content", "small"); !strings.Contains(got,
				"is not kept, so that this cannot be undone") {
				t.Errorf("the result: %s", got)
			}
			if got := u.ask("/undo"); !strings.Contains(got, "large.txt: its earlier content (9") ||
				!strings.Contains(got, "Nothing of it can be undone.") {
				t.Errorf("the plan: %s", got)
			}
		})
	bubble("an empty file of a command is deleted", Options{Config: section("tools", `{"exec": {"mode": "full"}}`)},
		func(t *testing.T, u *undoer) {
			u.call("exec", "command", "touch b.txt")
			if got := u.undo("", "b.txt: delete, changed"); !strings.Contains(got, "b.txt is deleted") {
				t.Errorf("the report: %s", got)
			}
			if _, err := os.Stat(filepath.Join(u.Dir, "workspace", "b.txt")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("b.txt is still there (%v)", err)
			}
		})
	bubble("it may be switched off", Options{Config: section("undo", `{"enabled": false}`)},
		func(t *testing.T, u *undoer) {
			u.call("write", "path", "a.txt", "content", "x")
			if got := u.ask("/undo"); !strings.HasPrefix(got, "There is nothing to undo") {
				t.Errorf("the plan: %s", got)
			}
		})
	t.Run("only the owner may, and a group sees no contents", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			fake := &channeltest.Fake{}
			u := newUndoer(t, Options{
				Channels: map[string]channel.Channel{"open": fake},
				Config: Config{"channels": json.RawMessage(`{"open": {"allowFrom": ["boss", "*"]}}`),
					"commands": json.RawMessage(`{"ownerAllowFrom": ["boss"]}`)},
			})
			at := chela.Address{Channel: "open", Peer: chela.Peer{Kind: chela.Group, ID: "g1"}}
			n, answers := 0, 0
			say := func(sender, text string) string {
				t.Helper()
				n++
				if err := fake.Say(t.Context(), chela.Inbound{
					ID:        fmt.Sprint(n),
					Address:   at,
					Sender:    chela.Sender{ID: sender},
					Text:      text,
					Mentioned: true,
				}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				texts := fake.Texts(at)
				if len(texts) == answers {
					return ""
				}
				answers = len(texts)
				return texts[answers-1]
			}
			say("boss", `write {"path":"a.txt","content":"1\n"}`)
			u.write("workspace/a.txt", "the secret\n", 0o600)
			for _, text := range []string{"/undo", "/undo yes"} {
				if got := say("eve", text); strings.Contains(got, "a.txt") || strings.Contains(got, "waits") {
					t.Errorf("a stranger: %s", got)
				}
			}
			if got := say("boss", "/undo"); !strings.Contains(got, "a.txt: it was changed since") ||
				strings.Contains(got, "secret") {
				t.Errorf("the owner: %s", got)
			}
			u.Client.Close()
			u.Stop()
		})
	})
}
