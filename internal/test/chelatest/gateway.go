package chelatest

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
	"github.com/chela-ai/chela/wire"
)

// Options configures a test application. The zero value uses the built-in
// offline assistant.
type Options struct {
	Dir      string                     // state directory; "": a new one
	Model    llm.Provider               // the model mock/m; nil: the configured model
	Config   Config                     // sections; agents.defaults.model is set if Model is set
	Home     string                     // of commands; "": Dir
	File     string                     // the configuration's file; "": chela.json in Dir
	Environ  []string                   // further variables from which those of commands are taken
	Env      map[string]string          // all environment variables
	HTTP     *http.Client               // HTTP client for model servers; nil: the network
	Channels map[string]channel.Channel // message accounts
	Limits   map[string]channel.Limits
	Tools    []tool.Tool // in addition to the stock ones
	Before   []hook.Before
	After    []hook.After
	Failed   []hook.After
	Hooks    func(*hook.Points) // adds further hooks
	Step     func(string)
	Now      func() time.Time // the wall clock of the schedule; nil: time.Now
	Wrap     func(store.Store) store.Store
	Listen   *endpoint.Listen         // opens the port; nil: no port
	Register func(*standard.Registry) // additional parts; nil: none
	Git      bool                     // make repositories of new workspaces
	Bundled  bool                     // with the bundled skills
	Store    *standard.Store          // nil: the stock one
	// Dial confines commands, which reach the hosts that they are allowed through
	// it. nil: commands are not confined.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Grant is a folder that confined commands can change besides what they are
	// meant to; "": there is none.
	Grant string
	Log   *slog.Logger // nil: the log of the test, from level warn
}

// registry returns the standard parts and those of the test.
func (o *Options) registry() *standard.Registry {
	r := &standard.Registry{Shared: true}
	if o.Dial != nil {
		r.Launches = true
		r.Sandbox("test", standard.Sandbox{Confine: func(env standard.SandboxEnv) sandbox.Backend {
			var b sandbox.Backend = native.New(native.Options{Home: cmp.Or(o.Home, o.Dir), Layers: filepath.Join(env.State,
				"cache", "sandbox"), Never: env.Never, Dial: o.Dial})
			if o.Grant != "" {
				b = generous{b, o.Grant}
			}
			return b
		}})
	}
	if o.Store != nil {
		r.Store("test", *o.Store) // the first one is used
	}
	standard.Register(r)
	if !o.Bundled {
		r.Skills(nil)
	}
	for name, ch := range o.Channels {
		r.Channel(Account(name, ch, o.Limits[name]))
	}
	r.Tool("test", "", func(standard.ToolEnv, json.RawMessage) ([]tool.Tool, error) { return o.Tools, nil })
	r.Hook("test", "", func(_ standard.HookEnv, _ json.RawMessage, to *hook.Points) error {
		for _, h := range o.Before {
			to.BeforeToolCall.Add(h)
		}
		for _, h := range o.After {
			to.AfterToolCall.Add(h)
		}
		for _, h := range o.Failed {
			to.ToolCallFailed.Add(h)
		}
		if o.Hooks != nil {
			o.Hooks(to)
		}
		return nil
	})
	if o.Register != nil {
		o.Register(r)
	}
	return r
}

// generous is a sandbox in which all programs can also change a folder.
type generous struct {
	sandbox.Backend
	folder string
}

// Start starts a plan with more rights.
func (g generous) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Rights != nil {
		r := *p.Rights
		r.Change = append(slices.Clip(r.Change), g.folder)
		p.Rights = &r
	}
	return g.Backend.Start(ctx, p, out)
}

// Account returns a factory of a channel that has one instance for all
// accounts.
func Account(name string, ch channel.Channel, limits channel.Limits) channel.Factory {
	return channel.Factory{
		Name: name, Limits: limits, Accounts: func(json.RawMessage) []string { return []string{""} },
		New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) { return ch, nil },
	}
}

// Gateway is a running application.
type Gateway struct {
	*app.Engine
	Dir string
	t   testing.TB
}

// Start starts an application. It is stopped at the end of the test.
func Start(t testing.TB, o Options) *Gateway {
	t.Helper()
	if o.Dial != nil {
		needsNamespaces(t)
	}
	g, err := TryStart(t, o)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return g
}

// TryStart is like Start, but returns why the application does not start.
func TryStart(t testing.TB, o Options) (*Gateway, error) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ao, err := o.app()
	if err != nil {
		t.Fatalf("configuration: %v", err)
	}
	e, err := app.New(t.Context(), ao)
	if err != nil {
		return nil, err
	}
	g := &Gateway{Engine: e, Dir: o.Dir, t: t}
	t.Cleanup(g.Stop)
	return g, nil
}

// app returns the options of the application. It has no socket.
func (o *Options) app() (app.Options, error) {
	c := Config{}
	maps.Copy(c, o.Config)
	ao := app.Options{
		Log:      o.Log,
		State:    o.Dir,
		HTTP:     o.HTTP,
		Env:      func(name string) string { return o.Env[name] },
		Environ:  append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + cmp.Or(o.Home, o.Dir)}, o.Environ...),
		Step:     o.Step,
		Now:      o.Now,
		Wrap:     o.Wrap,
		NoSocket: true,
		NoProbe:  true,
		NoGit:    !o.Git,
		Listen:   o.Listen,
		Registry: o.registry(),
	}
	if o.Model != nil {
		ao.Providers = map[string]llm.Provider{"mock": o.Model}
		c["models"] = merge(c["models"],
			`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 1000000, "input": ["text", "image"]}]}}}`)
		c["agents.defaults"] = merge(c["agents.defaults"], `{"model": "mock/m"}`)
	}
	ao.ConfigPath = cmp.Or(o.File, filepath.Join(o.Dir, "chela.json"))
	tree, err := config.Options{Env: ao.Env, Overrides: c}.Load(ao.ConfigPath)
	ao.Config = tree
	return ao, err
}

// merge returns an object with the members of def that it lacks.
func merge(have json.RawMessage, def string) json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, b := range [...]json.RawMessage{json.RawMessage(def), have} {
		var m map[string]json.RawMessage
		if len(b) > 0 && json.Unmarshal(b, &m) == nil {
			maps.Copy(out, m)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return b
}

// Stop stops the application gracefully. It may be called more than once.
func (g *Gateway) Stop() {
	if g.Engine == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	if err := g.Engine.Close(ctx); err != nil {
		g.t.Errorf("stop: %v", err)
	}
	g.Engine = nil
}

// Client connects a client that receives all events. It is closed at the end of
// the test.
func (g *Gateway) Client() *Client {
	g.t.Helper()
	c, err := client.Dial(g.t.Context(), client.Options{
		Dial: g.Dial, Caps: []string{wire.CapToolEvents}, Once: true,
	})
	if err != nil {
		g.t.Fatalf("connect: %v", err)
	}
	g.t.Cleanup(func() { c.Close() })
	return &Client{Client: c, t: g.t}
}

// Client is a connection that behaves like a terminal.
type Client struct {
	*client.Client
	t     testing.TB
	ended []Ended // what ended while something else was awaited
}

// Ended is the answer to a message, as a client sees it.
type Ended struct {
	Run   string
	State string // final, aborted, error
	Text  string // the final text that a client shows
	Error string
	Stop  string       // stop reason
	Seen  []wire.Event // all events of the run
}

// Send sends a message and returns the id of its run.
func (c *Client) Send(session, text string) string {
	c.t.Helper()
	id, err := c.Client.Send(c.t.Context(), session, text)
	if err != nil {
		c.t.Fatalf("send %q: %v", text, err)
	}
	return id
}

// Ask sends a message and waits until its run ends.
func (c *Client) Ask(session, text string) Ended {
	c.t.Helper()
	return c.Await(c.Send(session, text))
}

// patience is how long the end of a run is awaited, which may have many steps.
const patience = 5 * waittest.Limit

// Await reads events until the run ends.
func (c *Client) Await(run string) Ended {
	c.t.Helper()
	for i, end := range c.ended {
		if end.Run == run {
			c.ended = slices.Delete(c.ended, i, i+1)
			return end
		}
	}
	var seen []wire.Event
	limit := time.After(patience)
	for {
		select {
		case ev, ok := <-c.Events():
			if !ok {
				c.t.Fatalf("the connection was closed during run %s: %v", run, c.Err())
			}
			seen = append(seen, ev)
			if ev.Name != wire.EventChat {
				continue
			}
			var chat wire.Chat
			if err := ev.Decode(&chat); err != nil {
				c.t.Fatalf("chat event: %v", err)
			}
			if chat.State == wire.StateDelta {
				continue
			}
			end := Ended{Run: chat.RunID, State: chat.State, Error: chat.ErrorMessage, Stop: chat.Stop, Seen: seen}
			if chat.Message != nil {
				end.Text = chat.Message.Text()
			}
			if chat.RunID == run {
				return end
			}
			c.ended = append(c.ended, end)
		case <-limit:
			c.t.Fatalf("run %s did not end in %v", run, patience)
		}
	}
}

// answer waits for an answer that contains a text, in any run.
func (c *Client) answer(piece string) string {
	c.t.Helper()
	for i, end := range c.ended {
		if end.State == wire.StateFinal && strings.Contains(end.Text, piece) {
			c.ended = c.ended[i+1:]
			return end.Text
		}
	}
	limit := time.After(waittest.Limit)
	for {
		select {
		case ev, ok := <-c.Events():
			if !ok {
				c.t.Fatalf("the connection was closed: %v", c.Err())
			}
			var chat wire.Chat
			if ev.Name != wire.EventChat || ev.Decode(&chat) != nil || chat.State != wire.StateFinal || chat.Message == nil {
				continue
			}
			if text := chat.Message.Text(); strings.Contains(text, piece) {
				return text
			}
		case <-limit:
			c.t.Fatalf("no answer with %q", piece)
		}
	}
}

// testWriter writes lines to the log of the test.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", p)
	return len(p), nil
}
