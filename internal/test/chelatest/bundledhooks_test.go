package chelatest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBundledHooks tests the hooks that are part of Chela.
func TestBundledHooks(t *testing.T) {
	t.Parallel()
	t.Run("boot-md carries out BOOT.md once for each start, and its answer goes nowhere", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			o := Options{Dir: t.TempDir(),
				Config: Config{"hooks": json.RawMessage(`{"internal": {"entries": {"boot-md": {"enabled": true}}}}`)}}
			writeFiles(t, o.Dir, map[string]string{"workspace/BOOT.md": "water the plants"})
			for range 2 {
				h := hookedWith(t, "", Options{Dir: o.Dir, Config: o.Config})
				time.Sleep(time.Second)
				got := h.prompts()
				if len(got) != 1 || !strings.Contains(got[0], "water the plants") ||
					!strings.Contains(got[0], "The gateway has started") {
					t.Errorf("the model got %q", got)
				}
				c := h.Client()
				if lines := c.lines("main"); len(lines) != 0 {
					t.Errorf("main session: %q", lines)
				}
				if lines := c.lines("agent:main:boot"); len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "answer 1") {
					t.Errorf("session of the hook: %q", lines)
				}
				c.Close()
				h.Stop()
			}
			if err := os.Remove(filepath.Join(o.Dir, "workspace", "BOOT.md")); err != nil {
				t.Fatal(err)
			}
			h := hookedWith(t, "", Options{Dir: o.Dir, Config: o.Config})
			time.Sleep(time.Second)
			if got := h.prompts(); len(got) != 0 {
				t.Errorf("without a file, the model got %q", got)
			}
			h.Stop()
			time.Sleep(time.Second)
		})
	})
	t.Run("boot-md does nothing in an engine without a port", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir, model := t.TempDir(), uses()
			writeFiles(t, dir, map[string]string{"workspace/BOOT.md": "water the plants"})
			g := Start(t,
				Options{Dir: dir, Model: model,
					Config: Config{"hooks": json.RawMessage(`{"internal": {"entries": {"boot-md": {"enabled": true}}}}`)}})
			time.Sleep(time.Second)
			if n := len(model.Requests()); n != 0 {
				t.Errorf("%d model calls", n)
			}
			g.Stop()
		})
	})
	t.Run("bootstrap-extra-files adds files of the workspace with known names, and no private ones", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			t.Skip("needs links")
		}
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{
			"workspace/packages/a/AGENTS.md": "extra rules of a", "workspace/packages/a/NOTES.md": "notes of a",
			"workspace/packages/b/SOUL.md": "not in the pattern",
			"credentials/key.txt":          "a stored key",
		})
		link := filepath.Join(dir, "workspace", "packages", "c", "AGENTS.md")
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "credentials", "key.txt"), link); err != nil {
			t.Fatal(err)
		}
		var system string
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			system = systemOf(r)
			return llmtest.Say("ok")
		})
		g := Start(t,
			Options{Dir: dir, Model: model,
				Config: Config{"hooks": json.RawMessage(`{"internal": {"entries": {"bootstrap-extra-files": {
			"enabled": true, "paths": ["packages/*/AGENTS.md", "packages/*/NOTES.md"]}}}}`)}})
		g.Client().Ask("main", "hi")
		if !strings.Contains(system, "extra rules of a") || strings.Contains(system, "notes of a") ||
			strings.Contains(system, "not in the pattern") || strings.Contains(system, "a stored key") {
			t.Errorf("%s", system)
		}
	})
}

// TestGatewayHooks tests the hooks about the start and the end of the gateway, which may
// hang.
func TestGatewayHooks(t *testing.T) {
	t.Parallel()
	// stops returns how long the gateway takes to stop with hooks that take some time,
	// and which of them came to an end.
	stops := func(t *testing.T, restart bool, takes map[string]time.Duration) (took time.Duration, ended []string) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			on := func(name string) hook.Hook[hook.Gateway, hook.None] {
				return hook.Hook[hook.Gateway, hook.None]{Name: name,
					Func: func(ctx context.Context, g hook.Gateway) (hook.None, error) {
						select {
						case <-time.After(takes[name]):
						case <-ctx.Done():
							return hook.None{}, ctx.Err()
						}
						mu.Lock()
						defer mu.Unlock()
						ended = append(ended, name+" "+string(g.Reason))
						return hook.None{}, nil
					}}
			}
			begun := time.Now()
			g := Start(t, Options{Model: uses(), Listen: &endpoint.Listen{Listener: llmtest.Pipe()},
				Hooks: func(p *hook.Points) {
					p.GatewayStart.Add(on("start"))
					p.GatewayStop.Add(on("stop"))
					p.GatewayPreRestart.Add(on("restart"))
					p.SessionEnd.Add(hook.Hook[hook.SessionEnd, hook.None]{Name: "end",
						Func: func(ctx context.Context, e hook.SessionEnd) (hook.None, error) {
							select {
							case <-time.After(takes["end"]):
								mu.Lock()
								defer mu.Unlock()
								ended = append(ended, "end "+e.Reason)
							case <-ctx.Done():
							}
							return hook.None{}, nil
						}})
				}})
			if waited := time.Since(begun); waited > time.Second {
				t.Errorf("the start took %s", waited)
			}
			c := g.Client()
			c.Ask("main", `act {}`)
			c.Close()
			time.Sleep(time.Minute)
			begun = time.Now()
			stop := g.Engine.Close
			if restart {
				stop = g.Engine.CloseForRestart
			}
			if err := stop(context.Background()); err != nil {
				t.Error(err)
			}
			g.Engine = nil
			took = time.Since(begun)
			time.Sleep(time.Minute)
		})
		slices.Sort(ended)
		return took, ended
	}
	for _, tt := range []struct {
		name    string
		restart bool
		takes   map[string]time.Duration
		most    time.Duration
		ended   []string
	}{
		{"hooks that take their time are waited for", false, map[string]time.Duration{
			"start": 9 * time.Second,
			"stop":  4 * time.Second,
			"end":   time.Second,
		}, 6 * time.Second, []string{"end shutdown", "start ", "stop shutdown"}},
		{"a stop waits five seconds for hooks that hang", false,
			map[string]time.Duration{"start": time.Hour, "stop": time.Hour, "end": time.Hour}, 14 * time.Second, nil},
		{"a restart waits longer for its hooks", true, map[string]time.Duration{
			"restart": 9 * time.Second,
			"stop":    time.Second,
		}, 11 * time.Second, []string{"end restart", "restart restart", "start ", "stop restart"}},
		{"a restart does not wait for ever", true, map[string]time.Duration{"restart": time.Hour, "stop": time.Second},
			19 * time.Second, []string{"end restart", "start ", "stop restart"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			took, ended := stops(t, tt.restart, tt.takes)
			if took > tt.most || !slices.Equal(ended, tt.ended) {
				t.Errorf("it took %s, and %q ended; want at most %s, and %q", took, ended, tt.most, tt.ended)
			}
		})
	}
}

func TestHookFolders(t *testing.T) {
	t.Parallel()
	t.Run("a folder that is added, changed or removed counts within a few seconds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			g := Start(t, Options{Dir: dir, Model: uses()})
			c := g.Client()
			time.Sleep(time.Minute)
			installed(t, dir, "late", `{"events": ["command:new"]}`, "exit 0")
			time.Sleep(10 * time.Second)
			if h := c.hookStatus()["late"]; !h.Loadable || !slices.Equal(h.Events, []string{"command:new"}) {
				t.Errorf("added: %+v", h)
			}
			installed(t, dir, "late", `{"events": ["command:new", "command:stop"]}`, "exit 0")
			time.Sleep(10 * time.Second)
			if h := c.hookStatus()["late"]; !slices.Equal(h.Events, []string{"command:new", "command:stop"}) {
				t.Errorf("changed: %+v", h)
			}
			if err := os.RemoveAll(filepath.Join(dir, "hooks", "late")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if h, ok := c.hookStatus()["late"]; ok {
				t.Errorf("removed: %+v", h)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("resolve_exec_env adds variables to a command, those of a later hook win, and other tools get none",
		func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				t.Skip("needs a shell")
			}
			var seen []string
			adds := func(name string, env map[string]string) hook.Hook[hook.ResolveExecEnv, hook.ExecEnv] {
				return hook.Hook[hook.ResolveExecEnv, hook.ExecEnv]{Name: name,
					Func: func(_ context.Context, e hook.ResolveExecEnv) (hook.ExecEnv, error) {
						seen = append(seen, e.Tool+" "+e.Command)
						return hook.ExecEnv{Env: env}, nil
					}}
			}
			c := Start(t,
				Options{Model: uses(), Config: Config{"tools.exec": json.RawMessage(`{"security": "full", "ask": "off"}`)},
					Hooks: func(p *hook.Points) {
						p.ResolveExecEnv.Add(adds("a", map[string]string{"GREETING": "hello", "NAME": "Ada"}))
						p.ResolveExecEnv.Add(adds("b", map[string]string{"NAME": "Bob"}))
					}}).Client()
			if end := c.Ask("main", `exec {"command": "echo $GREETING, $NAME"}`); !strings.Contains(end.Text, "hello, Bob") {
				t.Errorf("%q %s", end.Text, end.Error)
			}
			c.Ask("main", `read {"path": "AGENTS.md"}`)
			if len(seen) != 2 || seen[0] != "exec echo $GREETING, $NAME" {
				t.Errorf("the hooks saw %q", seen)
			}
		})
}
