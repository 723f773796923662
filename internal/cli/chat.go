package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/lines"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

// chatFlags is what `chela chat` is told.
type chatFlags struct {
	place place
	plain bool
	yes   bool
}

func (c *commands) chat() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Begin or continue a conversation",
		Long: "Begin or continue a conversation. In a terminal it is a screen of its own that\n" +
			"leaves the conversation in the scrollback; with a pipe, or with --plain, each\n" +
			"line of the input is a message, answers go to standard output and everything\n" +
			"else to standard error.",
		Example: "  chela chat\n  chela chat --session work\n  chela chat --agent ops\n  printf 'list the files here\\n' | chela chat",
		Args:    console.Exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.converse(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	c.placeFlags(cmd, &f.place)
	fs.BoolVar(&f.plain, "plain", false, "read and write lines, also in a terminal")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow everything that asks")
	return cmd
}

// converse begins a conversation.
func (c *commands) converse(ctx context.Context, f chatFlags) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	_, serr := os.Stat(filepath.Join(s.State, "chela.db"))
	fresh := errors.Is(serr, os.ErrNotExist)
	l, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { l.part(ctx) }()
	key, err := f.place.key(ctx, c, l)
	if err != nil {
		return err
	}
	person := console.IsTerminal(c.In) && console.IsTerminal(c.Err)
	var lines []string
	if person {
		if l, lines, err = c.welcome(ctx, s, l, fresh); err != nil {
			return err
		}
	}
	if person && console.IsTerminal(c.Out) && !f.plain && c.Getenv("TERM") != "dumb" {
		return c.screen(ctx, l, s, key, f.yes, lines)
	}
	for _, line := range lines {
		fmt.Fprintln(c.Err, line)
	}
	o := c.talk(l, key, f.yes)
	o.Lines, o.Prompt = talk.Lines(c.In), console.IsTerminal(c.Err)
	t := talk.New(o)
	t.Pending(ctx)
	return t.Run(ctx)
}

// talk is a conversation in a session, in lines.
func (c *commands) talk(l *link, key string, yes bool) talk.Options {
	return talk.Options{
		Client: l.Client, Session: key, Yes: yes, Person: console.IsTerminal(c.In),
		Print: lines.Printer{Out: c.Out, Err: c.Err, Styles: c.Palette(c.Err)},
	}
}

// screen shows the conversation on the terminal.
func (c *commands) screen(ctx context.Context, l *link, s Start, key string, yes bool, lines []string) error {
	return tui.Run(ctx, tui.Options{
		Client: l.Client, Session: key, Yes: yes, Styles: c.Palette(c.Out), Lines: lines,
		History: filepath.Join(s.State, "history"), In: c.In, Out: c.Out,
	})
}

// welcome says which model answers and why, and on the first start without one
// asks for a key. The link that it returns is another one when a key was
// given.
func (c *commands) welcome(ctx context.Context, s Start, l *link, fresh bool) (*link, []string, error) {
	var st wire.Status
	if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &st); err != nil {
		return l, nil, err
	}
	d := st.Sessions.Defaults
	if fresh && offline(d) && c.app.SaveKey != nil {
		saved, err := c.askKey(s)
		if err != nil {
			return l, nil, err
		}
		if saved {
			if err := l.close(ctx); err != nil {
				return l, nil, err
			}
			next, err := c.connect(ctx)
			if err != nil {
				return l, nil, err
			}
			l = next
			if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &st); err != nil {
				return l, nil, err
			}
			d = st.Sessions.Defaults
		}
	}
	return l, c.banner(d, fresh), nil
}

// offline reports whether the built-in assistant answers: there is no model.
func offline(d wire.StatusDefaults) bool { return d.Provider == "offline" }

// banner is what a person should know at the start, at most three lines.
func (c *commands) banner(d wire.StatusDefaults, fresh bool) []string {
	p := c.Palette(c.Err)
	model := strings.Trim(d.Provider+"/"+d.Model, "/")
	if offline(d) {
		model = "built-in assistant, which is not a language model"
	}
	line := p.Accent.Paint("chela "+c.app.Version) + " " + p.Dim.Paint("·") + " " + ansi.Line(model)
	if d.Reason != "" {
		line += p.Dim.Paint(" (" + ansi.Line(d.Reason) + ")")
	}
	lines := []string{line}
	if offline(d) {
		lines = append(lines, p.Dim.Paint("a model: ")+c.Command("models auth anthropic"))
	} else if fresh {
		lines = append(lines, p.Dim.Paint("another model: ")+c.Command("models set PROVIDER/MODEL"))
	}
	if fresh || offline(d) {
		lines = append(lines, p.Dim.Paint("/help shows what can be typed here"))
	}
	return lines
}

// askKey offers to take a key of a model provider. It is not shown while it is
// typed.
func (c *commands) askKey(s Start) (bool, error) {
	p := c.Palette(c.Err)
	fmt.Fprintln(c.Err, p.Accent.Paint("Welcome to chela.")+" No language model was found on this machine.")
	fmt.Fprint(c.Err, "Paste a key of Anthropic, OpenAI, OpenRouter, Google, Groq or xAI,\nor press Enter to go on with the built-in assistant: ")
	key, err := c.Hidden()
	if key == "" || err != nil {
		return false, err
	}
	provider := providerOf(key)
	if provider == "" {
		c.Report(errors.New("this is not a key of a provider that chela knows by its keys"), c.Command("config set models.providers.NAME.apiKey KEY"))
		return false, nil
	}
	if err := c.app.SaveKey(s, provider, "", key); err != nil {
		return false, fmt.Errorf("key: %w", err)
	}
	fmt.Fprintln(c.Err, p.Good.Paint("✓")+" key of "+provider+" saved in "+filepath.Join(s.State, "credentials"))
	return true, nil
}

// providerOf tells by its beginning whose key it is; "" when nobody's.
func providerOf(key string) string {
	for _, k := range [...]struct{ prefix, provider string }{
		{"sk-ant-", "anthropic"}, {"sk-or-", "openrouter"}, {"sk-", "openai"}, {"AIza", "google"}, {"gsk_", "groq"}, {"xai-", "xai"},
	} {
		if strings.HasPrefix(key, k.prefix) {
			return k.provider
		}
	}
	return ""
}
