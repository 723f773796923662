// Package spoken is the configuration as it is spoken of in a conversation:
// value by value, and with others looking on. What could be a secret is neither
// shown nor taken.
package spoken

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/json5"
)

// Config shows and changes the configuration. Both fields are required.
type Config struct {
	// Tree returns the configuration that is in force.
	Tree func() *config.Tree
	// Change has the files changed and puts the result in force; it reports
	// whether all of it is, or some with the next start.
	Change func(ctx context.Context, draft func(now *config.Tree) (*config.Draft, error)) (inForce bool, err error)
}

// Get returns what is in force at a path, as JSON; for the empty path, all that
// is set.
func (c Config) Get(path string) (string, error) {
	t := c.Tree()
	text := t.InForce()
	if path != "" {
		v, err := t.Get(path)
		if err != nil {
			return "", err
		}
		steps, err := config.ParsePath(path)
		if err != nil {
			return "", err
		}
		if text = at(text, steps); text == nil {
			text = v.JSON // its default
		}
	}
	var b bytes.Buffer
	err := json.Indent(&b, text, "", "  ")
	return b.String(), err
}

// Set sets a value, as a person types it. It reports whether it is in force.
func (c Config) Set(ctx context.Context, path, text string) (bool, error) {
	value, err := json5.Literal(text)
	if err != nil {
		return false, err
	}
	steps, err := config.ParsePath(path)
	if err != nil {
		return false, err
	}
	return c.Change(ctx, func(now *config.Tree) (*config.Draft, error) {
		d, err := now.Draft(config.Edit{Path: path, Value: value})
		if err != nil {
			return nil, err
		}
		if shown := at(d.Tree().Written(), steps); !bytes.Equal(shown, at(value, nil)) {
			return nil, &chela.Error{
				Code: chela.CodeInvalid, Message: "what is set at " + path + " may be a secret, which does not belong in a conversation",
				Hint: "chela config set " + path + " -",
			}
		}
		return d, nil
	})
}

// Unset takes a value away. It reports whether that is in force.
func (c Config) Unset(ctx context.Context, path string) (bool, error) {
	return c.Change(ctx, func(now *config.Tree) (*config.Draft, error) { return now.Draft(config.Edit{Path: path}) })
}

// at returns what a text says at a path, with its keys in order; nil: nothing.
func at(text json.RawMessage, steps []string) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	for _, step := range steps {
		switch in := v.(type) {
		case map[string]any:
			inner, ok := in[step]
			if !ok {
				return nil
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}
