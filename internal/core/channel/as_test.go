package channel_test

import (
	"context"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// plain can send; can has abilities by name.
type (
	plain struct{ channel.Channel }
	typer struct{ plain }
	can   struct {
		plain
		typing bool
	}
)

func (typer) Typing(context.Context, chela.Address) error { return nil }

func (c can) As(target any) bool {
	if t, ok := target.(*channel.Typer); ok && c.typing {
		*t = typer{}
		return true
	}
	return false
}

func TestAs(t *testing.T) {
	for name, tt := range map[string]struct {
		c    channel.Channel
		want bool
	}{
		"nil":                        {nil, false},
		"a type without the ability": {plain{}, false},
		"a type with the ability":    {typer{}, true},
		"a nil pointer":              {(*typer)(nil), true},
		"varied, without":            {can{}, false},
		"varied, with":               {can{typing: true}, true},
	} {
		ability, ok := channel.As[channel.Typer](tt.c)
		if ok != tt.want || (ability != nil) != tt.want {
			t.Errorf("%s: %v, %v, want %v", name, ability, ok, tt.want)
		}
	}
	if _, ok := channel.As[channel.Editor](can{typing: true}); ok {
		t.Error("the ability of a varied channel is not its own")
	}
}
