package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/wire"
)

// change applies edits to the configuration, all or none. The running engine
// makes them and applies the new configuration; without one, this process
// writes the file.
func (c *commands) change(ctx context.Context, edits ...config.Edit) error {
	return c.changeBy(ctx, func(func(string) json.RawMessage) ([]config.Edit, error) { return edits, nil })
}

// editor returns the edits to make in a configuration, whose sections it gets by path.
// It may be called more than once.
type editor func(section func(path string) json.RawMessage) ([]config.Edit, error)

// setting is the change of the value at a path, which is plain.
func setting(value any, path ...string) config.Edit {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return config.Edit{Path: config.FormatPath(path), Value: b}
}

// changeBy is [commands.change] for edits that depend on the present configuration. A
// configuration that is invalid now may be changed to another invalid one: it is being repaired
// step by step.
func (c *commands) changeBy(ctx context.Context, by editor) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	if r, err := c.remote(s); err == nil && r != nil { // what is wrong with gateway.remote is being set right
		before := by
		by = func(section func(string) json.RawMessage) ([]config.Edit, error) {
			edits, err := before(section)
			if err == nil &&
				slices.ContainsFunc(edits, func(e config.Edit) bool { return !strings.HasPrefix(e.Path, "gateway.") }) {
				c.printOwn(r)
			}
			return edits, err
		}
	}
	if e, err := c.app.Attach(ctx, s); err == nil { // otherwise no engine is running
		l, err := c.dial(ctx, e)
		if err != nil {
			return err
		}
		defer l.Close()
		done, err := c.changeRemote(ctx, l, s.Config, by)
		if done || err != nil {
			return err
		}
	}
	t, err := c.tree()
	if err != nil {
		return err
	}
	now := t.Now()
	edits, err := by(now.Section)
	if err != nil || len(edits) == 0 {
		return err
	}
	d, err := now.Draft(edits...)
	if err != nil {
		return err
	}
	unusable := c.validate(ctx, s, d.Tree())
	if unusable != nil && c.validate(ctx, s, now) == nil { // otherwise it is being repaired
		return chela.Errorf(chela.CodeInvalid, "refused: %w", unusable)
	}
	if unusable == nil && c.app.Refuse != nil {
		if err := c.app.Refuse(ctx, s, now, d.Tree()); err != nil {
			return chela.Errorf(chela.CodeInvalid, "refused: %w", err)
		}
	}
	next, err := d.Write()
	if err != nil {
		return err
	}
	c.printWritten(next.Path(), "")
	problems := append(next.Warnings(), next.Unguarded()...)
	if unusable != nil {
		problems = append(problems, config.Problem{Message: unusable.Error(), Fatal: true})
	}
	for _, p := range problems {
		c.problem(p)
	}
	return nil
}

// validate returns the error with which an engine would refuse a configuration.
func (c *commands) validate(ctx context.Context, s Start, t *config.Tree) error {
	if c.app.Validate == nil {
		return nil
	}
	return c.app.Validate(ctx, s, t)
}

// maxAttempts is how often a change is attempted while other clients change
// the configuration at the same time.
const maxAttempts = 3

// changeRemote asks a running engine to make the changes. It reports false if
// the engine uses another configuration file. The hash of what was read goes with the change, so
// that it never overwrites what another client wrote in between; then it is made again from the
// new state.
func (c *commands) changeRemote(ctx context.Context, l *client.Client, file string, by editor) (done bool, err error) {
	for range maxAttempts {
		var now wire.ConfigSnapshot
		if err := l.Call(ctx, wire.MethodConfigGet, wire.None{}, &now); err != nil || now.Path != file {
			return false, err
		}
		if !now.Valid {
			return false, c.suggest(errors.New("the configuration file is invalid; correct it first"), "config validate")
		}
		edits, err := by(func(path string) json.RawMessage { return config.At(now.Parsed, path) })
		if err != nil || len(edits) == 0 {
			return err == nil, err
		}
		text, err := config.Edited(now.Parsed, edits...)
		if err != nil {
			return false, err
		}
		var out wire.ConfigWritten
		err = l.Call(ctx, wire.MethodConfigSet, wire.ConfigSet{Raw: string(text), BaseHash: now.Hash}, &out)
		if err == nil {
			c.printChange(out)
			return true, nil
		}
		if e, ok := errors.AsType[*wire.Error](err); !ok || !strings.HasPrefix(e.Message, wire.ConfigStale) {
			return false, err
		}
	}
	return false, errors.New("another client is changing the configuration at the same time; try again")
}

// printChange prints which file an engine changed and when the change takes
// effect.
func (c *commands) printChange(w wire.ConfigWritten) {
	keys := strings.Join(w.Cold, ", ")
	switch {
	case w.Starts:
		c.printWritten(w.Path, "the gateway is restarting")
	case w.Restart && len(w.Cold) == len(w.Changed):
		c.printWritten(w.Path, "takes effect after a restart of the gateway")
	case w.Restart:
		c.printWritten(w.Path, "takes effect immediately, but after a restart of the gateway for: "+keys)
	default:
		c.printWritten(w.Path, "takes effect immediately")
	}
	for _, p := range w.Warnings {
		c.problem(config.Problem{Path: p.Path, Message: p.Message})
	}
}

// printWritten prints which file was changed and, unless it is empty, when the
// change takes effect.
func (c *commands) printWritten(path, when string) {
	if when != "" {
		path += " (" + when + ")"
	}
	fmt.Fprintln(c.stderr, c.palette(c.stderr).Good.Paint("✓")+" "+path)
}
