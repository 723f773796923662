package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/wire"
)

// change writes changes into the configuration, all or none: the engine that
// runs does it, which works with them then, and without one this process.
func (c *commands) change(ctx context.Context, edits ...config.Edit) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	if c.app.Attach != nil {
		if e, err := c.app.Attach(ctx, s); err == nil { // otherwise none runs
			l, err := c.dial(ctx, e)
			if err != nil {
				return err
			}
			defer l.Close()
			done, err := c.changeBy(ctx, l, s.Config, edits)
			if done || err != nil {
				return err
			}
		}
	}
	t, err := c.tree()
	if err != nil {
		return err
	}
	next, err := t.Edit("", edits...)
	if err != nil {
		return err
	}
	c.wrote(next.Path(), "")
	for _, w := range append(next.Warnings(), next.Unguarded()...) {
		c.problem(w)
	}
	return nil
}

// tries is how often a change is made anew because somebody else was faster.
const tries = 3

// changeBy has an engine make the changes. It is not done when the engine works
// with another file.
func (c *commands) changeBy(ctx context.Context, l *client.Client, file string, edits []config.Edit) (done bool, err error) {
	for range tries {
		var now wire.ConfigSnapshot
		if err := l.Call(ctx, wire.MethodConfigGet, wire.None{}, &now); err != nil || now.Path != file {
			return false, err
		}
		if !now.Valid {
			return false, c.Hint(errors.New("the configuration is broken and must be mended by hand first"), "config validate")
		}
		text, err := config.Edited(now.Parsed, edits...)
		if err != nil {
			return false, err
		}
		var out wire.ConfigWritten
		err = l.Call(ctx, wire.MethodConfigSet, wire.ConfigSet{Raw: string(text), BaseHash: now.Hash}, &out)
		if err == nil {
			c.changed(out)
			return true, nil
		}
		if e, ok := errors.AsType[*wire.Error](err); !ok || !strings.HasPrefix(e.Message, wire.ConfigStale) {
			return false, err
		}
	}
	return false, errors.New("somebody else changes the configuration at the same time")
}

// changed says what became of a change.
func (c *commands) changed(w wire.ConfigWritten) {
	keys := strings.Join(w.Cold, ", ")
	switch {
	case w.Starts:
		c.wrote(w.Path, "the gateway starts anew with it")
	case w.Restart && len(w.Cold) == len(w.Changed):
		c.wrote(w.Path, "it counts from the next start of the gateway")
	case w.Restart:
		c.wrote(w.Path, "it counts from now on, but from the next start of the gateway: "+keys)
	default:
		c.wrote(w.Path, "it counts from now on")
	}
	for _, p := range w.Warnings {
		c.problem(config.Problem{Path: p.Path, Message: p.Message})
	}
}

// wrote says which file was changed, and from when on that counts; "": nobody
// works with it.
func (c *commands) wrote(path, when string) {
	if when != "" {
		path += " (" + when + ")"
	}
	fmt.Fprintln(c.Err, c.Palette(c.Err).Good.Paint("✓")+" "+path)
}
