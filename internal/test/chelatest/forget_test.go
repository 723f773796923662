package chelatest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// walkLive walks a folder that is in use: what is removed meanwhile, as by git while it
// makes a repository, is passed over.
func walkLive(root string, f fs.WalkDirFunc) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err = f(path, e, err); path != root && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// containing returns the files below a folder that contain a text, in any case.
func containing(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	err := walkLive(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(bytes.ToLower(b), []byte(text)) {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// repeater repeats what it is told, or calls the tool that a message names.
func repeater() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("Result: " + last.PlainText())
		}
		if name, args, ok := strings.Cut(last.PlainText(), " {"); ok {
			return llmtest.Call(fmt.Sprint("c", n), name, "{"+args)
		}
		return llmtest.Say("You said: " + last.PlainText())
	})
}

// asked reports whether a request contains a text.
func asked(r *llm.Request, text string) bool {
	b, err := json.Marshal(r)
	return err != nil || bytes.Contains(bytes.ToLower(b), []byte(text))
}

func TestForget(t *testing.T) {
	t.Parallel()
	const topic = "zanzibar"
	t.Run("everywhere", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, chat := repeater(), new(channeltest.Fake)
			var st store.Store
			g := Start(t, Options{
				Wrap:  func(s store.Store) store.Store { st = s; return s },
				Model: model, Channels: map[string]channel.Channel{"chat": chat},
				Config: Config{"channels": json.RawMessage(`{"chat": {"allowFrom": ["ann"]}}`),
					"commands": json.RawMessage(`{"ownerAllowFrom": ["chat:ann"]}`)},
			})
			g.writeIn("workspace/MEMORY.md", "- The Zanzibar trip is in March.\n- The router runs on the NAS.\n")
			g.writeIn("workspace/memory/2026-11-01.md", "# Day\n\nBooked zanzibar.\nBought tea.\n")
			g.writeIn("workspace/novel.txt", "A ship to Zanzibar.\n")
			g.writeIn("workspace/long.txt", strings.Repeat("a line of a long file without any news\n", 2000)+
				"Zanzibar at the end\n")
			g.writeIn("history", "\"a trip\\nto Zanzibar\"\n\"a cup of tea\"\n\"/forget Zanzibar\"\n")
			c := g.Client()
			for _, text := range []string{
				"we fly to Zanzibar", "Bob likes tea", `memory_search {"query": "zanzibar"}`, `read {"path": "long.txt"}`,
				`read {"path": "novel.txt"}`,
			} {
				c.Ask("main", text)
			}
			c.Ask("main", `write {"path": "memory/plan.md", "content": "Tea at five.\nA boat in Zanzibar.\n"}`)
			c.Ask("main", `edit {"path": "memory/plan.md", "oldText": "Tea", "newText": "Coffee"}`)
			c.Ask("agent:main:other", "what about Zanzibar\nand this line stays")
			c.show("main", "a picture of Zanzibar", dot(t))
			id, err := c.Client.Send(t.Context(), "main", "a file", wire.Attachment{Type: "file", MIME: "text/plain",
				FileName: "a.txt", Content: []byte("Zanzibar is an island.\nTea.\n")})
			if err != nil {
				t.Fatal(err)
			}
			c.Await(id)
			c.must(wire.MethodCronAdd, json.RawMessage(`{"name": "pack", "schedule": {"kind": "at", "at": "2100-01-01T00:00:00Z"}, "sessionTarget": "main", "payload": {"kind": "systemEvent", "text": "pack for zanzibar"}}`), nil)
			ann := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
			say := func(id, text string) string {
				t.Helper()
				before := len(chat.Texts(ann))
				if err := chat.Say(t.Context(),
					chela.Inbound{ID: id, Address: ann, Sender: chela.Sender{ID: "ann"}, Text: text}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				return strings.Join(chat.Texts(ann)[before:], "\n")
			}
			say("m1", "a card from Zanzibar")

			list := say("m2", "/forget Zanzibar")
			for _, want := range []string{
				"notes (workspace/MEMORY.md): 1 line", "notes (memory/2026-11-01.md): 1 line", "conversations (agent:main:main)",
				"conversations (agent:main:other)",
				"scheduled jobs", "attachments and outputs", "records of", "/history): 2 lines, for example: a trip to Zanzibar",
				"other files of the workspace (workspace/novel.txt): 1 line; it is your own file", "/forget yes",
			} {
				if !strings.Contains(list, want) {
					t.Errorf("the list does not say %q:\n%s", want, list)
				}
			}
			if names := containing(t, g.Dir, topic); len(names) < 4 {
				t.Errorf("before the removal only %q contain it", names)
			}
			report := say("m3", "/forget yes")
			if strings.Contains(strings.ToLower(report), topic) || !strings.Contains(report, "Removed:") ||
				!strings.Contains(report, "novel.txt") {
				t.Errorf("report:\n%s", report)
			}
			if again := say("m4", "/forget yes"); !strings.Contains(again, "nothing to confirm") {
				t.Errorf("a second yes: %s", again)
			}
			before := len(model.Requests())
			for _, s := range []string{"main", "agent:main:other"} {
				if end := c.Ask(s, "and now?"); end.Text != "You said: and now?" {
					t.Errorf("%s: %s %q %s", s, end.State, end.Text, end.Error)
				}
			}
			say("m5", "hello again")
			for _, r := range model.Requests()[before:] {
				if asked(r, topic) {
					t.Error("a request after the removal contains it")
				}
			}
			history := strings.Join(c.lines("main"), "\n")
			if !strings.Contains(history, "Bob likes tea") || strings.Contains(strings.ToLower(history), topic) {
				t.Errorf("history:\n%s", history)
			}
			if other := strings.Join(c.lines("agent:main:other"), "\n"); !strings.Contains(other, "and this line stays") {
				t.Errorf("the other session:\n%s", other)
			}
			if got := g.readIn("MEMORY.md"); got != "- The router runs on the NAS.\n" {
				t.Errorf("MEMORY.md: %q", got)
			}
			if got, err := os.ReadFile(filepath.Join(g.Dir, "history")); err != nil ||
				strings.Join(strings.Fields(string(got)), " ") != `"a cup of tea"` {
				t.Errorf("input history: %q, %v", got, err)
			}
			if got := g.readIn("memory/plan.md"); got != "Coffee at five.\n" {
				t.Errorf("plan.md: %q", got)
			}
			c.Ask("main", "/undo")
			if end := c.Ask("main", "/undo yes"); g.readIn("memory/plan.md") != "Tea at five.\n" {
				t.Errorf("after undo plan.md is %q: %s", g.readIn("memory/plan.md"), end.Text)
			}
			if end := c.Ask("main", `memory_search {"query": "where does the router run"}`); !strings.Contains(end.Text,
				"on the NAS") {
				t.Errorf("the notes that stay are not found: %s", end.Text)
			}
			refs, err := store.Get(t.Context(), st, func(r store.Reader) ([]string, error) { return r.Media() })
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(refs)
			refs = slices.DeleteFunc(slices.Compact(refs), func(ref string) bool {
				found, _ := filepath.Glob(filepath.Join(g.Dir, "media", ref+"*"))
				return len(found) > 0
			})
			if len(refs) != 1 { // the picture of the message that was removed
				t.Errorf("rows refer to the missing files %q, want one", refs)
			}
			var jobs wire.CronPage
			if c.must(wire.MethodCronList, nil, &jobs); len(jobs.Jobs) != 0 {
				t.Errorf("%d jobs remain", len(jobs.Jobs))
			}
			names := containing(t, g.Dir, topic)
			if want := []string{"workspace/long.txt", "workspace/novel.txt"}; !slices.Equal(names, want) {
				t.Errorf("%q contain it while the gateway runs, want the person's own files %q", names, want)
			}
			c.Close()
			g.Stop()
			if names := containing(t, g.Dir, topic); len(names) != 2 {
				t.Errorf("%q contain it at the end", names)
			}
		})
	})
	t.Run("only by the owner, alone, and for what was listed", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: repeater()})
		c, guest, second := g.Client(), g.with("operator.write"), g.Client()
		c.Ask("main", "we fly to Zanzibar")
		guestMay := func(text string) bool {
			_, err := guest.Client.Send(t.Context(), "main", text)
			return err == nil || !strings.Contains(err.Error(), "needs the scope")
		}
		if guestMay("/forget zanzibar") {
			t.Error("a guest got a list")
		}
		for text, want := range map[string]string{
			"/forget": "Say what", "/forget yes": "nothing to confirm", "/forget a": "too short",
			"/forget madagascar": "Nothing was found",
		} {
			if end := c.Ask("main", text); !strings.Contains(end.Text, want) {
				t.Errorf("%s: %q, want %s", text, end.Text, want)
			}
		}
		if names := containing(t, g.Dir, "madagascar"); len(names) > 0 {
			t.Errorf("the question itself is stored in %q", names)
		}
		c.Ask("main", "/forget zanzibar")
		if end := second.Ask("agent:main:other", "/forget yes"); !strings.Contains(end.Text, "nothing to confirm") {
			t.Errorf("in another session: %s", end.Text)
		}
		if guestMay("/forget yes") {
			t.Error("a guest confirmed")
		}
		if end := c.Ask("main", "/forget yes"); !strings.Contains(end.Text, "Removed") {
			t.Errorf("the owner: %s", end.Text)
		}
	})
	talk(t, "not in a group", Config{"commands": json.RawMessage(`{"ownerAllowFrom": ["chat:ann"]}`)},
		func(t *testing.T, k *talkers) {
			k.g.writeIn("workspace/MEMORY.md", "- The Zanzibar trip is in March.\n")
			group := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Group, ID: "g"}}
			if err := k.chat.Say(t.Context(), chela.Inbound{
				ID:        "1",
				Address:   group,
				Mentioned: true,
				Sender:    chela.Sender{ID: "ann"},
				Text:      "/forget zanzibar",
			}); err != nil {
				t.Fatal(err)
			}
			k.settle()
			if got := strings.Join(k.chat.Texts(group), "\n"); !strings.Contains(got, "private chat") {
				t.Errorf("the group got %q", got)
			}
		})
	t.Run("a run that has it in its context is stopped", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			started := make(chan struct{})
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				last := r.Messages[len(r.Messages)-1]
				if last.PlainText() == "wait" {
					return llmtest.Call("c", "wait", `{}`)
				}
				return llmtest.Say("You said: " + last.PlainText())
			})
			g := Start(t, Options{Model: model, Tools: []tool.Tool{blocking("wait", started, make(chan struct{}))}})
			c := g.Client()
			c.Ask("main", "we fly to Zanzibar")
			run := c.Send("main", "wait")
			<-started
			c.Ask("main", "/forget zanzibar")
			if end := c.Ask("main", "/forget yes"); !strings.Contains(end.Text, "Removed") {
				t.Errorf("removed: %q %s", end.Text, end.Error)
			}
			if end := c.Await(run); end.State == wire.StateFinal && end.Text != "" {
				t.Errorf("the run went on: %s %q", end.State, end.Text)
			}
			before := len(model.Requests())
			c.Ask("main", "and now?")
			for _, r := range model.Requests()[before:] {
				if asked(r, topic) {
					t.Error("a request after the removal contains it")
				}
			}
			c.Close()
			g.Stop()
			if names := containing(t, g.Dir, topic); len(names) > 0 {
				t.Errorf("%q contain it at the end", names)
			}
		})
	})
}

// TestForgetEncodings checks that notes in other encodings, and with accents as macOS writes
// them, are found, shown as they are, and keep their encodings, and that a note that cannot
// be searched is named.
func TestForgetEncodings(t *testing.T) {
	t.Parallel()
	utf16 := func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	latin := func(s string) string { return strings.NewReplacer("ü", "\xfc", "ß", "\xdf").Replace(s) }
	plain := func(s string) string { return s }
	notes := map[string]func(string) string{
		"1.md": latin, "2.md": utf16, "3.md": func(s string) string { return strings.ReplaceAll(s, "ü", "u\u0308") },
		"4.md": func(s string) string { return "\ufeff" + s }, "5.md": strings.ToUpper, "6.md": plain,
	}
	const line, rest = "- Jürgen rief an, über die Straße.\r\n", "- Tee für alle.\r\n"
	for _, topic := range []string{"Jürgen", "ju\u0308rgen", "JÜRGEN strasse"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			g := Start(t, Options{Model: repeater()})
			for name, encode := range notes {
				g.writeIn("workspace/memory/"+name, encode(rest+line+rest))
			}
			c := g.Client()
			c.Ask("main", "Bitte merken: Ju\u0308rgen, Straße.")
			found := c.Ask("main", "/forget "+topic).Text
			for name := range notes {
				if !strings.Contains(found, "memory/"+name+"): 1 line") {
					t.Errorf("%s is not found: %s", name, found)
				}
			}
			if n := strings.Count(found, "for example: - Jürgen rief an, über die Straße."); n != len(notes)-2 ||
				!strings.Contains(found, "conversations") {
				t.Errorf("%d lines are shown as they are: %s", n, found)
			}
			if done := c.Ask("main", "/forget yes").Text; !strings.Contains(done, "Removed:") {
				t.Error(done)
			}
			for name, encode := range notes {
				if got := g.readIn("memory/" + name); got != encode(rest+rest) {
					t.Errorf("%s is %q", name, got)
				}
			}
		})
	}
	t.Run("a note that cannot be searched", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: repeater()})
		g.writeIn("workspace/memory/1.md", strings.Repeat("\x00\x01\x02\xff", 99))
		g.writeIn("workspace/memory/picture.png", strings.Repeat("\x00\x01\x02\xff", 99))
		got := g.Client().Ask("main", "/forget zanzibar").Text
		if !strings.Contains(got, "not searched (memory/1.md); it is not text") || strings.Contains(got, "picture") {
			t.Error(got)
		}
	})
}
