package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/tui"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/lines"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

// chatFlags is what `chela chat` is told.
type chatFlags struct {
	session string
	plain   bool
	yes     bool
}

func (c *console) chat() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Begin or continue a conversation",
		Long: "Begin or continue a conversation. In a terminal it is a screen of its own that\n" +
			"leaves the conversation in the scrollback; with a pipe, or with --plain, each\n" +
			"line of the input is a message, answers go to standard output and everything\n" +
			"else to standard error.",
		Example: "  chela chat\n  chela chat --session work\n  printf 'list the files here\\n' | chela chat",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.converse(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "main", "the session `KEY`")
	fs.BoolVar(&f.plain, "plain", false, "read and write lines, also in a terminal")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow everything that asks")
	return cmd
}

// converse begins a conversation.
func (c *console) converse(ctx context.Context, f chatFlags) error {
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
	person := isTerminal(c.in) && isTerminal(c.err)
	var lines []string
	if person {
		if l, lines, err = c.welcome(ctx, s, l, fresh); err != nil {
			return err
		}
	}
	if person && isTerminal(c.out) && !f.plain && c.getenv("TERM") != "dumb" {
		return c.screen(ctx, l, s, f, lines)
	}
	for _, line := range lines {
		fmt.Fprintln(c.err, line)
	}
	o, err := c.talk(l, f.session, f.yes)
	if err != nil {
		return err
	}
	o.Lines, o.Prompt = talk.Lines(c.in), isTerminal(c.err)
	t := talk.New(o)
	t.Pending(ctx)
	return t.Run(ctx)
}

// talk is a conversation in a session, in lines.
func (c *console) talk(l *link, session string, yes bool) (talk.Options, error) {
	key, err := sessionKey(l.Hello(), session)
	return talk.Options{
		Client: l.Client, Session: key, Yes: yes, Person: isTerminal(c.in),
		Print: lines.Printer{Out: c.out, Err: c.err, Styles: c.palette(c.err)},
	}, err
}

// sessionKey returns the whole key of the session that a person named.
func sessionKey(h wire.Hello, name string) (string, error) {
	agent := chela.DefaultAgent
	if a := h.Snapshot.Defaults.Agent; a != "" {
		agent = chela.AgentID(a)
	}
	key, err := chela.ParseSessionKey(name, agent)
	if err != nil {
		return "", usageError{hinted{err, "--session main"}}
	}
	return string(key), nil
}

// screen shows the conversation on the terminal.
func (c *console) screen(ctx context.Context, l *link, s Start, f chatFlags, lines []string) error {
	key, err := sessionKey(l.Hello(), f.session)
	if err != nil {
		return err
	}
	return tui.Run(ctx, tui.Options{
		Client: l.Client, Session: key, Yes: f.yes, Styles: c.palette(c.out), Lines: lines,
		History: filepath.Join(s.State, "history"), In: c.in, Out: c.out,
	})
}

// welcome says which model answers and why, and on the first start without one
// asks for a key. The link that it returns is another one when a key was
// given.
func (c *console) welcome(ctx context.Context, s Start, l *link, fresh bool) (*link, []string, error) {
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
func (c *console) banner(d wire.StatusDefaults, fresh bool) []string {
	p := c.palette(c.err)
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
		lines = append(lines, p.Dim.Paint("a model: ")+c.command("models auth anthropic"))
	} else if fresh {
		lines = append(lines, p.Dim.Paint("another model: ")+c.command("models set PROVIDER/MODEL"))
	}
	if fresh || offline(d) {
		lines = append(lines, p.Dim.Paint("/help shows what can be typed here"))
	}
	return lines
}

// askKey offers to take a key of a model provider. It is not shown while it is
// typed.
func (c *console) askKey(s Start) (bool, error) {
	p := c.palette(c.err)
	fmt.Fprintln(c.err, p.Accent.Paint("Welcome to chela.")+" No language model was found on this machine.")
	fmt.Fprint(c.err, "Paste a key of Anthropic, OpenAI, OpenRouter, Google, Groq or xAI,\nor press Enter to go on with the built-in assistant: ")
	key, err := c.hidden()
	if key == "" || err != nil {
		return false, err
	}
	provider := providerOf(key)
	if provider == "" {
		c.report(errors.New("this is not a key of a provider that chela knows by its keys"), c.command("config set models.providers.NAME.apiKey KEY"))
		return false, nil
	}
	if err := c.app.SaveKey(s, provider, "", key); err != nil {
		return false, fmt.Errorf("key: %w", err)
	}
	fmt.Fprintln(c.err, p.Good.Paint("✓")+" key of "+provider+" saved in "+filepath.Join(s.State, "credentials"))
	return true, nil
}

// hidden reads a line that is not shown while it is typed.
func (c *console) hidden() (string, error) {
	b, err := term.ReadPassword(int(c.in.Fd()))
	fmt.Fprintln(c.err)
	if err != nil {
		return "", errInterrupted
	}
	return strings.TrimSpace(string(b)), nil
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
