package console

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Console is what a command works with. All of it is required.
type Console struct {
	In     *os.File
	Out    io.Writer // for answers
	Err    io.Writer // for everything else
	Getenv func(string) string

	// NoColor writes without colours.
	NoColor bool
	// Dial connects to the gateway, calls f and disconnects.
	Dial func(ctx context.Context, f func(*client.Client) error) error
	// Command returns how a person types a subcommand of chela for this
	// installation.
	Command func(rest string) string
}

// Call calls one method of the gateway and stores its result.
func (c *Console) Call(ctx context.Context, method string, params, result any) error {
	return c.Dial(ctx, func(l *client.Client) error { return l.Call(ctx, method, params, result) })
}

// Palette returns the styles for w.
func (c *Console) Palette(w io.Writer) ansi.Palette {
	switch {
	case !IsTerminal(w):
		return ansi.Palette{}
	case c.NoColor, c.Getenv("NO_COLOR") != "", c.Getenv("TERM") == "dumb":
		return ansi.Monochrome()
	}
	return ansi.Colours()
}

// IsTerminal reports whether a person sees what is written to f, or types what
// is read from it.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// SessionKey returns the whole key of the session that a person named.
func SessionKey(h wire.Hello, name string) (string, error) {
	agent := chela.DefaultAgent
	if a := h.Snapshot.Defaults.Agent; a != "" {
		agent = chela.AgentID(a)
	}
	key, err := chela.ParseSessionKey(name, agent)
	if err != nil {
		return "", Usage(Hint(err, "--session main"))
	}
	return string(key), nil
}
