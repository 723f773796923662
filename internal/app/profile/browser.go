package profile

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
)

// newBrowsers returns the browsers, none of which runs.
func (f *Factory) newBrowsers() *browser.Browsers {
	o := browser.Options{Log: f.o.Log, State: f.o.State, Broker: f.broker, Environ: f.o.Environ, Files: f.o.Files}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	return browser.New(o)
}

// useBrowsers puts the settings of the browsers in force.
func (g *Generation) useBrowsers() {
	if g.browsers == nil {
		return
	}
	c, err := browser.ParseConfig(g.Config.Section("browser"))
	if err != nil { // it was checked when the tools were made
		return
	}
	g.browsers.Use(c)
}

// closeBrowsers stops the browsers.
func (f *Factory) closeBrowsers() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f.browsers.Close(ctx)
}

// Browse carries out an action in a browser for the person. The arguments are those of the
// tool. Files to upload are those that the default agent may read.
func (g *Generation) Browse(ctx context.Context, args json.RawMessage) (map[string]any, error) {
	var in browser.Input
	if err := json.Unmarshal(args, &in.Args); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "browser: %w", err)
	}
	c, err := browser.ParseConfig(g.Config.Section("browser"))
	if err != nil {
		return nil, err
	}
	if !c.On() || g.browsers == nil {
		return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "the browser is off",
			Hint: "chela config set browser.enabled true"}
	}
	rule := g.Settings.Paths(chela.DefaultAgent, g.private)
	in.Read = func(path string) ([]byte, error) {
		return rule.Read(tool.Call{Dir: g.Workspace(chela.DefaultAgent), Private: true}, path, media.MaxFile)
	}
	out, err := g.browsers.Do(ctx, in)
	if err != nil {
		return nil, chela.Errorf(chela.CodeUnavailable, "%w", err)
	}
	return out.Details, nil
}
