package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// denied sends a call and denies what is asked about it. It returns the reasons.
func (c *Client) denied(session, call string) (end Ended, asked string) {
	c.t.Helper()
	run := c.Send(session, call)
	for ev := range c.Events() {
		end.Seen = append(end.Seen, ev)
		switch ev.Name {
		case wire.EventApprovalRequested:
			var a wire.Approval
			if err := ev.Decode(&a); err != nil {
				c.t.Fatal(err)
			}
			asked += a.Request.Reason
			c.decide(a.ID, wire.Deny)
		case wire.EventChat:
			var chat wire.Chat
			if err := ev.Decode(&chat); err != nil {
				c.t.Fatal(err)
			}
			if chat.RunID == run && chat.State != wire.StateDelta {
				if chat.Message != nil {
					end.Text = chat.Message.Text()
				}
				return end, asked
			}
		}
	}
	c.t.Fatalf("the connection was closed: %v", c.Err())
	return end, asked
}

// signal is a log that reports a message.
type signal struct {
	slog.Handler
	text   string
	logged chan struct{}
}

func (s signal) Enabled(context.Context, slog.Level) bool { return true }
func (s signal) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, s.text) {
		select {
		case s.logged <- struct{}{}:
		default:
		}
	}
	return nil
}

// own is a gateway whose configuration is in the workspace of an agent: at
// conf/chela.json, reached through the link named at, with an include and copies of
// earlier versions. The agent ops has the folder conf as its workspace.
type own struct {
	*Gateway
	*Client
	ws    string
	kept  map[string]string // files that must not change, with their content
	token string
}

func newOwn(t *testing.T, o Options) *own {
	t.Helper()
	w := &own{token: "token-of-own-files", kept: map[string]string{}}
	o.Dir = t.TempDir()
	w.ws = filepath.Join(o.Dir, "workspace")
	conf := filepath.Join(w.ws, "conf")
	for name, text := range map[string]string{
		"chela.json": `{env: {vars: {MINE: "odd"}}, session: {$include: "./more.json"}}`, "more.json": `{/* MINE */}`,
		"chela.json.bak": `{/* MINE */}`, "more.json.bak.4": `{/* MINE */}`,
	} {
		plant(t, filepath.Join(conf, name), text)
		w.kept[filepath.Join(conf, name)] = text
	}
	approvals := filepath.Join(o.Dir, "exec-approvals.json")
	w.kept[approvals] = `{"version":1,"MINE":1}`
	plant(t, approvals, w.kept[approvals])
	if err := os.Symlink("conf", filepath.Join(w.ws, "at")); err != nil {
		t.Fatal(err)
	}
	o.File, o.Model, o.Listen = filepath.Join(w.ws, "at", "chela.json"), uses(), &endpoint.Listen{Port: -1}
	o.Channels = map[string]channel.Channel{"open": &channeltest.Fake{}}
	sections := Config{
		"gateway":     json.RawMessage(fmt.Sprintf(`{"auth": {"token": %q}}`, w.token)),
		"channels":    json.RawMessage(`{"open": {"allowFrom": ["*"]}}`),
		"agents.list": json.RawMessage(fmt.Sprintf(`[{"id": "main"}, {"id": "ops", "workspace": %q}]`, conf)),
	}
	maps.Copy(sections, o.Config)
	o.Config = sections
	w.Gateway = Start(t, o)
	w.Client = w.Gateway.Client()
	return w
}

// unchanged checks that the files are as they were.
func (w *own) unchanged(t *testing.T) {
	t.Helper()
	for name, text := range w.kept {
		if b, err := os.ReadFile(name); err != nil || string(b) != text {
			t.Errorf("%s was changed: %q, %v", name, b, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(w.ws, "at")); err != nil || to != "conf" {
		t.Errorf("the link to the configuration leads to %q, %v", to, err)
	}
}

// secretly reports whether a text has something of the files.
func secretly(text string) bool { return strings.Contains(text, "MINE") }

// TestOwnFiles has a model try to read and change Chela's own files.
func TestOwnFiles(t *testing.T) {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	patch := func(lines string) string {
		return `apply_patch {"input":` + quoted("*** Begin Patch\n"+lines+"\n*** End Patch") + `}`
	}
	fileTools := func(t *testing.T, w *own) {
		approvals := quoted(filepath.Join(w.Dir, "exec-approvals.json"))
		for session, folder := range map[string]string{"main": "conf/", "agent:ops:main": ""} {
			for _, call := range []string{
				`read {"path":"%chela.json"}`, `read {"path":"%more.json"}`, `read {"path":"%chela.json.bak"}`,
				`read {"path":"%more.json.bak.4"}`, `read {"path":` + quoted(filepath.Join(w.ws, "at", "chela.json")) + `}`,
				`write {"path":"%chela.json","content":"{}"}`, `write {"path":"%more.json.bak","content":"{}"}`,
				`edit {"path":"%chela.json","oldText":"env","newText":"x"}`,
				patch("*** Delete File: %chela.json"), patch("*** Add File: %more.json\n+{}"),
				patch("*** Update File: %more.json\n@@\n-{/* MINE */}\n+{}"),
				`image {"path":"%chela.json"}`, `message {"to":"me","channel":"open","message":"x","media":["%chela.json"]}`,
				`read {"path":` + approvals + `}`, `write {"path":` + approvals + `,"content":"{}"}`,
			} {
				call = strings.ReplaceAll(call, "%", folder)
				end, asked := w.denied(session, call)
				if secretly(end.Text) || asked != "" || !strings.Contains(end.Text, "belongs to Chela") &&
					!strings.Contains(end.Text, "outside the workspace") {
					t.Errorf("%s: %s: asked %q, answered %q", session, call, asked, end.Text)
				}
			}
			for _, call := range []string{`grep {"pattern":"MINE"}`, `grep {"pattern":"M.NE","path":"%chela.json"}`,
				`find {"pattern":"*"}`, `ls {"path":"."}`} {
				if end, _ := w.denied(session, strings.ReplaceAll(call, "%", folder)); secretly(end.Text) {
					t.Errorf("%s: %s: %q", session, call, end.Text)
				}
			}
		}
		body := `{"tool":"read","args":{"path":"conf/chela.json"}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(w.URL(), "ws")+
			"/tools/invoke", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if b, _ := io.ReadAll(answer.Body); secretly(string(b)) || !bytes.Contains(b, []byte(`"ok":false`)) {
			t.Errorf("over HTTP: %s", b)
		}
		// the control: other files beside them
		if end, asked := w.denied("main", `write {"path":"conf/other.json","content":"fine"}`); asked != "" {
			t.Errorf("%q %q", asked, end.Text)
		}
		if end, asked := w.denied("agent:ops:main", `read {"path":"other.json"}`); asked != "" ||
			!strings.Contains(end.Text, "fine") {
			t.Errorf("%q %q", asked, end.Text)
		}
		w.unchanged(t)
	}
	// named are commands that name the files; they are asked about.
	named := func(t *testing.T, w *own) {
		for session, folder := range map[string]string{"main": "conf/", "agent:ops:main": ""} {
			for _, command := range []string{
				"cat %chela.json", "head -n5 %more.json", "cat ./%chela.json.bak", "wc -l < %chela.json",
				"grep --file=%more.json x", "grep -f%more.json x", "git show HEAD:%chela.json", "cat " + w.ws + "/at/chela.json",
				"cat " + filepath.Join(w.Dir, "exec-approvals.json"), "echo x > %chela.json", "mv %chela.json x",
			} {
				command = strings.ReplaceAll(command, "%", folder)
				end, asked := w.denied(session, `exec {"command":`+quoted(command)+`}`)
				if secretly(end.Text) || !strings.Contains(asked, "holds the configuration or the state of Chela") {
					t.Errorf("%s: %s: asked %q, answered %q", session, command, asked, end.Text)
				}
			}
		}
		w.unchanged(t)
	}
	t.Run("A8 in a sandbox, nothing that a model does unasked reads or changes the configuration or approvals",
		func(t *testing.T) {
			w := newOwn(t, Options{Dial: noHosts})
			t.Run("A8 with file tools", func(t *testing.T) { fileTools(t, w) })
			t.Run("A8 with commands that name them", func(t *testing.T) { named(t, w) })
			t.Run("A8 with commands that do not", func(t *testing.T) {
				for session, folder := range map[string]string{"main": "conf", "agent:ops:main": "."} {
					for _, command := range []string{
						"d=%; cat $d/*.json $d/*.bak*", "d=%; echo '{}' >$d/chela.json", "mv % other; mkdir %; echo '{}' >%/chela.json",
						"d=%; rm -rf $d; mkdir $d; echo '{}' >$d/chela.json", "rm -f at; ln -s elsewhere at",
						"grep -r MINE .", "find . -name '*.json*' -exec cat {} +", "tar cf - % | strings",
						"find / -name 'exec-approvals*' -exec cat {} + 2>/dev/null", "ln %/*.json .; cat *.json",
						"cp -r % copy; cat copy/*",
					} {
						command = strings.ReplaceAll(command, "%", folder)
						if end, _ := w.denied(session, `exec {"command":`+quoted(command)+`}`); secretly(end.Text) {
							t.Errorf("%s: %s: %q", session, command, end.Text)
						}
					}
				}
				w.unchanged(t)
				// the control: the same means work on other files
				if end, asked := w.denied("main",
					`exec {"command":"d=made; mkdir $d; echo x >$d/x; mv made moved; cat moved/*"}`); asked != "" || end.Text != "x" {
					t.Errorf("%q %q", asked, end.Text)
				}
			})
			t.Run("A8 with the program itself", func(t *testing.T) {
				for _, command := range []string{"chela config set tools.exec.mode full", "chela approvals allowlist add cat",
					"systemctl --user edit chela"} {
					if end, asked := w.denied("main", `exec {"command":`+quoted(command)+`}`); asked == "" {
						t.Errorf("%s: not asked: %q", command, end.Text)
					}
				}
				w.unchanged(t)
			})
		})
	t.Run("A8 without a sandbox, nothing that a model does unasked reads or changes the configuration or approvals",
		func(t *testing.T) {
			w := newOwn(t, Options{})
			fileTools(t, w)
			named(t, w)
			for _, command := range []string{"cat conf/*.json", "grep -r MINE .", "d=conf; cat $d/chela.json",
				"ls conf | xargs cat"} {
				if end, asked := w.denied("main", `exec {"command":`+quoted(command)+`}`); secretly(end.Text) || asked == "" {
					t.Errorf("%s: asked %q, answered %q", command, asked, end.Text)
				}
			}
			if end, asked := w.denied("main", `exec {"command":"cat conf/other.json"}`); asked != "" ||
				!strings.Contains(end.Text, "fine") {
				t.Errorf("%q %q", asked, end.Text)
			}
			w.unchanged(t)
		})
	t.Run("A8 an entry of the allowlist does not allow a command that names the configuration", func(t *testing.T) {
		w := newOwn(t, Options{Config: Config{"tools.exec": json.RawMessage(`{"mode": "ask"}`)}})
		approvals := filepath.Join(w.Dir, "exec-approvals.json")
		plant(t, approvals, `{"version": 1, "agents": {"*": {"allowlist": [{"pattern": "nl"}]}}}`)
		if end, asked := w.denied("main", `exec {"command":"nl AGENTS.md"}`); asked != "" {
			t.Errorf("the entry does not work: %q %q", asked, end.Text)
		}
		if end, asked := w.denied("main", `exec {"command":"nl conf/chela.json"}`); secretly(end.Text) ||
			!strings.Contains(asked, "holds the configuration") {
			t.Errorf("%q %q", asked, end.Text)
		}
	})
	t.Run("A8 a configuration that is missing in the workspace exists before a command runs", func(t *testing.T) {
		state := t.TempDir()
		file := filepath.Join(state, "workspace", "chela.json")
		c := Start(t, Options{Dir: state, File: file, Model: uses(), Dial: noHosts}).Client()
		c.Ask("main", `write {"path":"chela.json","content":"evil"}`)
		c.Ask("main", `exec {"command":"for f in chela; do echo evil >$f.json; done"}`)
		if b, err := os.ReadFile(file); err != nil || string(b) != "{}\n" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("A8 a file that the configuration includes from now on is private in a run that goes on", func(t *testing.T) {
		state, outside := t.TempDir(), t.TempDir()
		file, late := filepath.Join(outside, "chela.json"), filepath.Join(outside, "late.json")
		plant(t, file, `{gateway: {reload: {debounceMs: 1}}}`)
		plant(t, late, `{/* MINE */ dmScope: "per-peer"}`)
		plant(t, filepath.Join(outside, "bad.json"), `{/* MINE */}`)
		read := []string{`exec {"command":"true","host":"gateway"}`, `read {"path":"late.json"}`,
			`exec {"command":"for f in late bad; do cat $f.json; done"}`, `read {"path":"bad.json"}`}
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == llm.RoleTool && n >= len(read) {
				return llmtest.Say(last.PlainText())
			}
			name, args, _ := strings.Cut(read[n], " ")
			return llmtest.Call(fmt.Sprint("c", n), name, args)
		})
		log := signal{text: "cannot be used", logged: make(chan struct{}, 1)}
		g := Start(t, Options{
			Dir:    state,
			File:   file,
			Model:  model,
			Dial:   noHosts,
			Log:    slog.New(log),
			Config: Config{"agents.defaults": json.RawMessage(fmt.Sprintf(`{"model": "mock/m", "workspace": %q}`, outside))},
		})
		c := g.Client()
		run := c.Send("main", "go")
		q := c.question()
		plant(t, file, `{gateway: {reload: {debounceMs: 1}}, session: {$include: "./late.json"}}`)
		c.nextEvent(wire.EventConfigChanged)
		plant(t, file, `{gateway: {reload: {debounceMs: 1}, port: "x"}, session: {$include: "./bad.json"}}`)
		waittest.For(t, "the configuration is refused", log.logged)
		c.decide(q.ID, wire.AllowOnce)
		c.Await(run)
		rs := model.Requests()
		for i, want := range []string{"belongs to Chela", "late.json", "belongs to Chela"} {
			ms := rs[i+2].Messages
			if got := ms[len(ms)-1].PlainText(); secretly(got) || !strings.Contains(got, want) {
				t.Errorf("%s: %q", read[i+1], got)
			}
		}
	})
}

// TestDefaults checks what happens to commands of the main session without settings.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		name, compat                string
		sandbox, asks, sees, warned bool
	}{
		{"EX-25 a fresh configuration where there is a sandbox: sandboxed", "", true, false, false, false},
		{"EX-25 a fresh configuration where there is none: asks", "", false, true, false, false},
		{"EX-25 compat openclaw where there is a sandbox: unsandboxed, unasked, after a warning", "openclaw",
			true, false, true, true},
		{"EX-25 compat openclaw where there is none: unsandboxed, unasked, after a warning", "openclaw",
			false, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := signal{text: `compat is "openclaw"`, logged: make(chan struct{}, 1)}
			o := Options{Model: uses(), Log: slog.New(log), Config: Config{}}
			if tt.compat != "" {
				o.Config["compat"] = json.RawMessage(`"` + tt.compat + `"`)
			}
			if tt.sandbox {
				o.Dial = noHosts
			}
			g := Start(t, o)
			if warned := len(log.logged) > 0; warned != tt.warned {
				t.Errorf("warned at the start: %v", warned)
			}
			c := g.Client()
			command, err := json.Marshal("echo 1 > made; d=" + filepath.Dir(g.Dir) + "; ls $d/" +
				filepath.Base(g.Dir) + "/chela.db; cat made")
			if err != nil {
				t.Fatal(err)
			}
			end, asked := c.denied("main", `exec {"command":`+string(command)+`}`)
			if (asked != "") != tt.asks {
				t.Errorf("asked %q", asked)
			}
			if sees := strings.Contains(end.Text, "/chela.db\n"); sees != tt.sees {
				t.Errorf("it sees files of the host: %v: %q", sees, end.Text)
			}
			if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "made")); (err != nil) != tt.asks {
				t.Errorf("it ran: %v", err == nil)
			}
		})
	}
}
