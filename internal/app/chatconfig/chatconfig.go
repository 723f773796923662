// Package chatconfig shows and changes single values of the configuration in a chat.
// Because other people may read the chat, it neither shows nor accepts a value that
// could be a secret.
package chatconfig

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// Config shows and changes the configuration. Both fields are required.
type Config struct {
	// Tree returns the configuration in use.
	Tree func() *config.Tree
	// Change edits the files and applies the result. It reports whether the change
	// has taken effect completely; if not, a restart is needed.
	Change func(ctx context.Context, draft func(now *config.Tree) (*config.Draft, error)) (inForce bool, err error)
}

// Get returns the effective value at a path as JSON; for the empty path, all values
// that are set.
func (c Config) Get(path string) (string, error) {
	t := c.Tree()
	text := t.InForce()
	if path != "" {
		v, err := t.Get(path)
		if err != nil {
			return "", err
		}
		if text = config.At(text, path); text == nil {
			text = v.JSON // its default
		}
	}
	var b bytes.Buffer
	err := json.Indent(&b, text, "", "  ")
	return b.String(), err
}

// Set sets a value that a person typed. It reports whether it has taken effect.
func (c Config) Set(ctx context.Context, path, text string) (bool, error) {
	value, err := json5.Literal(text)
	if err != nil {
		return false, err
	}
	return c.Change(ctx, func(now *config.Tree) (*config.Draft, error) {
		d, err := now.Draft(config.Edit{Path: path, Value: value})
		if err != nil {
			return nil, err
		}
		if shown := config.At(d.Tree().Written(), path); !bytes.Equal(shown, config.At(value, "")) {
			return nil, &chela.Error{
				Code: chela.CodeInvalid, Message: "the value of " + path + " may be a secret, which must not be sent in a chat",
				Hint: "chela config set " + path + " -",
			}
		}
		return d, nil
	})
}

// Unset removes a value. It reports whether that has taken effect.
func (c Config) Unset(ctx context.Context, path string) (bool, error) {
	return c.Change(ctx, func(now *config.Tree) (*config.Draft, error) { return now.Draft(config.Edit{Path: path}) })
}

// Overrides shows and changes values that are in force instead of those of the files,
// until the process ends. Both fields are required.
type Overrides struct {
	// Tree returns the configuration in use.
	Tree func() *config.Tree
	// Change puts the result in force.
	Change func(ctx context.Context, change func(now *config.Tree) (*config.Tree, error)) error
}

// Show returns a line for each override.
func (o Overrides) Show() string {
	var b bytes.Buffer
	for _, v := range o.Tree().Overrides() {
		b.WriteString(v.Path + " = " + string(v.Value) + "\n")
	}
	return b.String()
}

// Set overrides a value with one that a person typed.
func (o Overrides) Set(ctx context.Context, path, text string) error {
	value, err := json5.Literal(text)
	if err != nil {
		return err
	}
	return o.Change(ctx, func(now *config.Tree) (*config.Tree, error) { return now.Override(path, value) })
}

// Unset ends an override; "": all of them.
func (o Overrides) Unset(ctx context.Context, path string) error {
	return o.Change(ctx, func(now *config.Tree) (*config.Tree, error) { return now.WithoutOverride(path) })
}
