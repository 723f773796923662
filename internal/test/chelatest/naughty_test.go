//go:build unix

package chelatest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/test/chelatest/naughty"
	"github.com/chela-ai/chela/wire"
)

// naughtyStrings returns the naughty strings; only some of them under the race
// detector, which looks for other errors.
func naughtyStrings(t *testing.T) []string {
	t.Helper()
	all := naughty.Strings(t)
	if !raced {
		return all
	}
	var some []string
	for i := 0; i < len(all); i += 10 {
		some = append(some, all[i])
	}
	return some
}

// echoes returns a model that repeats the message.
func echoes() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		return llmtest.Say(r.Messages[len(r.Messages)-1].PlainText())
	})
}

// refused checks that err is a rejection with a clear message.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*wire.Error](err); !ok || len(e.Message) < 10 {
		t.Errorf("%s: %v is not a clear rejection", what, err)
	}
}

func TestNaughtyMessages(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Model: echoes()}).Client()
	var want []string
	for i, s := range naughtyStrings(t) {
		sent, err := c.Chat(t.Context(), wire.ChatSend{SessionKey: "main", Message: s, IdempotencyKey: fmt.Sprint("n", i)})
		if err != nil {
			refused(t, fmt.Sprintf("message %q", s), err)
			if strings.TrimSpace(s) != "" {
				t.Errorf("message %q: %v", s, err)
			}
			continue
		}
		if end := c.Await(sent.RunID); end.State != wire.StateFinal || end.Text != s {
			t.Errorf("message %q: %s, the last event has %q %s", s, end.State, end.Text, end.Error)
		}
		want = append(want, s)
	}
	history, err := c.History(t.Context(), "main", 1000)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string][]string{}
	for _, m := range history.Messages {
		said[m.Role] = append(said[m.Role], m.Text())
	}
	for role, got := range said {
		if len(got) != len(want) {
			t.Errorf("%s: %d messages in the history, want %d", role, len(got), len(want))
			continue
		}
		for i, s := range got {
			if s != want[i] {
				t.Errorf("%s: the history has %q, want %q", role, s, want[i])
			}
		}
	}
}

// journal is a log whose lines are checked in the form that a terminal shows.
type journal struct {
	t  *testing.T
	mu sync.Mutex
	n  int // lines with hidden or control characters
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var v map[string]any
	if json.Unmarshal(line, &v) == nil && naughty.Hides(fmt.Sprint(v)) {
		j.n++
	}
	if shown := cli.LogLine(line, ansi.Palette{}, false); naughty.Hides(shown) || strings.Contains(shown, "\n") {
		j.t.Errorf("a line of the log is shown as %q", shown)
	}
	return len(line), nil
}

func TestNaughtyFields(t *testing.T) {
	t.Parallel()
	all := naughtyStrings(t)
	var agents []map[string]string
	for i, s := range all {
		agents = append(agents, map[string]string{"id": fmt.Sprint("a", i), "name": s})
	}
	list, err := json.Marshal(agents)
	if err != nil {
		t.Fatal(err)
	}
	g := Start(t, Options{Model: echoes(), Config: Config{"agents": json.RawMessage(`{"list":` + string(list) + `}`)},
		Wrap: withoutSync})
	c := g.Client()
	c.Ask("main", "hello")
	t.Run("labels of sessions", func(t *testing.T) {
		for _, s := range all {
			var out wire.SessionPatched
			err := c.Call(t.Context(), wire.MethodSessionsPatch,
				wire.SessionsPatch{Key: "main", Label: wire.Optional[string]{Set: true, Value: s}}, &out)
			if err != nil {
				if refused(t, fmt.Sprintf("label %q", s), err); len(s) < 100 {
					t.Errorf("label %q: %v", s, err)
				}
				continue
			}
			if out.Entry.Label != s {
				t.Errorf("label %q became %q", s, out.Entry.Label)
			}
			var found wire.SessionList
			if err := c.Call(t.Context(), wire.MethodSessionsList, wire.SessionsList{Label: s, Search: s}, &found); err != nil {
				refused(t, fmt.Sprintf("search for %q", s), err)
			} else if len(found.Sessions) != 1 || s != "" && found.Sessions[0].Label != s {
				t.Errorf("search for label %q: %+v", s, found.Sessions)
			}
		}
	})
	t.Run("commands", func(t *testing.T) {
		for _, s := range all {
			for _, command := range []string{"/name ", "/model "} {
				if _, err := c.Chat(t.Context(), wire.ChatSend{SessionKey: "main", Message: command + s}); err != nil {
					refused(t, command+s, err)
				}
			}
		}
	})
	t.Run("names of clients", func(t *testing.T) {
		g := Start(t, Options{}) // without agents: they make each greeting large
		for _, s := range all {
			conn, err := client.Dial(t.Context(), client.Options{Dial: g.Dial, Once: true, Name: s})
			if err != nil {
				if refused(t, fmt.Sprintf("name %q", s), err); len(s) < 50 {
					t.Errorf("name %q: %v", s, err)
				}
				continue
			}
			conn.Close()
		}
	})
}

// batch is a model that makes all calls in one message and keeps their results
// in order.
func batch(calls []llm.ToolCall, results *[]string) *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if n == 0 {
			return llmtest.Calls(calls...)
		}
		*results = nil
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool {
				*results = append(*results, m.PlainText())
			}
		}
		return llmtest.Say("done")
	})
}

// limits returns a configuration that allows one call per string and all
// commands.
func limits(mode string) Config {
	return Config{
		"tools":           json.RawMessage(`{"loopDetection":{"enabled":false},"exec":{"mode":"` + mode + `"}}`),
		"agents.defaults": json.RawMessage(`{"budget":{"failures":1000}}`),
	}
}

// execute makes a call of the tool for each text and returns the results.
func execute(t *testing.T, conf Config, dir, tool string, all []string,
	args func(i int, s string) map[string]any) []string {
	t.Helper()
	calls := make([]llm.ToolCall, len(all))
	for i, s := range all {
		b, err := json.Marshal(args(i, s))
		if err != nil {
			t.Fatal(err)
		}
		calls[i] = llmtest.ToolCall(fmt.Sprint("c", i), tool, string(b))
	}
	var results []string
	g := Start(t, Options{Dir: dir, Model: batch(calls, &results), Config: conf, Wrap: withoutSync})
	if end := g.Client().Ask(fmt.Sprint("s", time.Now().UnixNano()), "go"); end.State != wire.StateFinal ||
		len(results) != len(all) {
		t.Fatalf("%s: %s %s, %d results", tool, end.State, end.Error, len(results))
	}
	g.Stop()
	return results
}

// errorOf returns the message of an error result; "" for other results.
func errorOf(result string) string {
	var e struct{ Status, Error string }
	if json.Unmarshal([]byte(result), &e) != nil || e.Status != "error" {
		return ""
	}
	return e.Error
}

// joined returns the texts, and some combinations of them.
func joined(all []string) []string {
	var out []string
	for some := range slices.Chunk(all, 8) {
		out = append(out, strings.Join(some, "\n~\n"))
	}
	return out
}

func TestNaughtyTools(t *testing.T) {
	t.Parallel()
	all := naughtyStrings(t)
	conf := limits("full")
	t.Run("contents of files", func(t *testing.T) {
		dir, texts := t.TempDir(), joined(all)
		file := func(i int) string { return fmt.Sprintf("f%d.txt", i) }
		on := func(i int) string {
			b, err := os.ReadFile(filepath.Join(dir, "workspace", file(i)))
			if err != nil {
				t.Error(err)
			}
			return string(b)
		}
		for i, r := range execute(t, conf, dir, "write", texts,
			func(i int, s string) map[string]any { return map[string]any{"path": file(i), "content": s} }) {
			if got := on(i); got != texts[i] {
				t.Errorf("the file has %q, want %q: %s", got, texts[i], r)
			}
		}
		for i, r := range execute(t, conf, dir, "read", texts,
			func(i int, _ string) map[string]any { return map[string]any{"path": file(i)} }) {
			if naughty.Hides(ansi.Clean(r)) {
				t.Errorf("%q is shown as %q", texts[i], r)
			}
			if strings.ContainsAny(texts[i], "\x00\x07\x08\x1b") {
				continue // characters are replaced by signs, and binary files have no text
			}
			for line := range strings.SplitSeq(texts[i], "\n") {
				if !strings.Contains(r, strings.TrimSuffix(line, "\r")) {
					t.Errorf("%q is read as %q", texts[i], r)
				}
			}
		}
		for i, r := range execute(t, conf, dir, "grep", all, func(i int, s string) map[string]any {
			return map[string]any{"path": file(i / 8), "pattern": s, "literal": true}
		}) {
			if errorOf(r) == "" && strings.Contains(r, "No match") && !strings.ContainsAny(texts[i/8], "\x00\x07\x08\x1b") {
				t.Errorf("%q is not found: %q", all[i], r)
			}
		}
		for i, r := range execute(t, conf, dir, "grep", all,
			func(_ int, s string) map[string]any { return map[string]any{"pattern": s} }) {
			if r == "" {
				t.Errorf("pattern %q: no result and no error", all[i])
			}
		}
		for i, r := range execute(t, conf, dir, "edit", texts, func(i int, s string) map[string]any {
			return map[string]any{"path": file(i), "oldText": s, "newText": "[" + s + "]"}
		}) {
			want := "[" + texts[i] + "]"
			if errorOf(r) != "" {
				want = texts[i]
			}
			if got := on(i); got != want {
				t.Errorf("%q was edited to %q: %s", texts[i], got, r)
			}
		}
	})
	t.Run("names of files", func(t *testing.T) {
		dir := t.TempDir()
		written := map[string]string{}
		for i, r := range execute(t, conf, dir, "write", all, func(i int, s string) map[string]any {
			return map[string]any{"path": s, "content": fmt.Sprint("content ", i)}
		}) {
			if errorOf(r) == "" {
				written[filepath.Clean(all[i])] = fmt.Sprint("content ", i)
			}
		}
		if len(written) < len(all)*8/10 {
			t.Errorf("only %d names were accepted", len(written))
		}
		for i, r := range execute(t, conf, dir, "read", all,
			func(_ int, s string) map[string]any { return map[string]any{"path": s} }) {
			want, ok := written[filepath.Clean(all[i])]
			if e := errorOf(r); !ok && e == "" || ok && !strings.Contains(r, want) {
				t.Errorf("%q is read as %q, want %q", all[i], r, want)
			}
		}
		few := t.TempDir() // every call reads all names
		execute(t, conf, few, "write", joined(all), func(i int, _ string) map[string]any {
			return map[string]any{"path": all[8*i], "content": ""}
		})
		for i, r := range execute(t, conf, few, "find", all,
			func(_ int, s string) map[string]any { return map[string]any{"pattern": s} }) {
			if r == "" {
				t.Errorf("glob %q: no result and no error", all[i])
			}
		}
	})
	t.Run("arguments of commands", func(t *testing.T) {
		texts := joined(all)
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		for i, r := range execute(t, conf, t.TempDir(), "exec", texts, func(_ int, s string) map[string]any {
			return map[string]any{"command": "printf '<%s>' " + quote(s)}
		}) {
			if naughty.Hides(r) {
				t.Errorf("the output of %q is shown as %q", texts[i], r)
			}
			if !naughty.Hides(texts[i]) && errorOf(r) == "" && !strings.Contains(r, "<"+texts[i]+">") {
				t.Errorf("%q was printed as %q", texts[i], r)
			}
		}
		for i, r := range execute(t, limits("deny"), t.TempDir(), "exec", all,
			func(_ int, s string) map[string]any { return map[string]any{"command": s} }) {
			if errorOf(r) == "" {
				t.Errorf("%q was run: %q", all[i], r)
			}
		}
		if _, err := os.Stat("/tmp/blns.fail"); err == nil {
			t.Error("a command was run")
		}
	})
	t.Run("names of tools", func(t *testing.T) {
		calls := make([]llm.ToolCall, len(all))
		for i, s := range all {
			calls[i] = llmtest.ToolCall(fmt.Sprint("c", i), cmp.Or(s, "none"), `{}`)
		}
		var results []string
		log := &journal{t: t}
		g := Start(t, Options{Model: batch(calls, &results), Config: conf, Log: slog.New(slog.NewJSONHandler(log, nil))})
		end := g.Client().Ask("main", "go")
		g.Stop()
		if log.n == 0 && !raced { // the reduced set under the race detector contains none
			t.Error("no line of the log contains control sequences")
		}
		if end.State != wire.StateFinal {
			t.Fatalf("%s %s", end.State, end.Error)
		}
		for i, r := range results {
			if errorOf(r) == "" {
				t.Errorf("tool %q: %q", all[i], r)
			}
		}
	})
}
