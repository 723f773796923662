package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/tui"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

// chatFlags are the flags of `chela chat`.
type chatFlags struct {
	session sessionFlags
	plain   bool
	yes     bool
	wait    time.Duration
}

func (c *commands) chat() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Start or continue a conversation",
		Long: "Start or continue a conversation. In a terminal, the conversation stays in the\n" +
			"scrollback. If the input is not a terminal, or with --plain, each input line is\n" +
			"a message; answers go to standard output and everything else to standard error.",
		Example: "  chela chat\n  chela chat --session work\n  chela chat --agent ops\n  printf 'list the files here\\n' | chela chat",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.converse(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	c.addSessionFlags(cmd, &f.session)
	fs.BoolVar(&f.plain, "plain", false, "read and write plain lines, even in a terminal")
	fs.DurationVar(&f.wait, "wait", 10*time.Minute,
		"if the input is not a terminal: at its end, wait at most this long for the results of subagents")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow every action that needs approval")
	return cmd
}

// converse runs a conversation.
func (c *commands) converse(ctx context.Context, f chatFlags) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	r, err := c.remote(s)
	if err != nil {
		return err
	}
	fresh := r == nil && isNew(s)
	l, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { l.detach(ctx) }()
	key, err := f.session.key(ctx, c, l)
	if err != nil {
		return err
	}
	person := isTerminal(c.stdin) && isTerminal(c.stderr)
	var lines []string
	first := ""
	if person {
		if l, lines, first, err = c.welcome(ctx, s, l, key, fresh); err != nil {
			return err
		}
		if fresh {
			for _, line := range c.openClaw(s) {
				lines = append(lines, c.palette(c.stderr).Dim.Paint(line))
			}
		}
	}
	defer func() {
		l.remindOfCommands(context.WithoutCancel(ctx), key)
		l.remindOfJobs(context.WithoutCancel(ctx))
	}()
	if person && isTerminal(c.stdout) && !f.plain && c.getenv("TERM") != "dumb" {
		return c.screen(ctx, l, s, key, f.yes, lines, first)
	}
	for _, line := range lines {
		fmt.Fprintln(c.stderr, line)
	}
	o := c.talk(l, key, f.yes)
	o.Input, o.Prompt, o.Wait = repl.Lines(c.stdin), isTerminal(c.stderr), f.wait
	t := repl.New(o)
	if first != "" {
		t.Keep(first)
	}
	t.AskPending(ctx)
	return t.Run(ctx)
}

// talk returns the options of a line-based conversation in a session.
func (c *commands) talk(l *link, key string, yes bool) repl.Options {
	return repl.Options{
		Client: l.Client, Session: key, Yes: yes, Interactive: isTerminal(c.stdin),
		Printer: repl.Printer{Out: c.stdout, Err: c.stderr, Styles: c.palette(c.stderr)},
	}
}

// screen runs the conversation in the terminal user interface.
func (c *commands) screen(ctx context.Context, l *link, s Start, key string, yes bool,
	lines []string, first string) error {
	return tui.Run(ctx, tui.Options{
		Client: l.Client, Session: key, Yes: yes, Styles: c.palette(c.stdout), Lines: lines, First: first,
		History: filepath.Join(s.State, config.HistoryFile), In: c.stdin, Out: c.stdout, Getenv: c.getenv,
	})
}

// welcome returns the banner. On the first start without a model, it asks for
// an API key; if one is entered, it reconnects and returns the new link. first is a
// message that was typed instead of a key.
func (c *commands) welcome(ctx context.Context, s Start, l *link, key string,
	fresh bool) (_ *link, lines []string, first string, err error) {
	var st wire.Status
	if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &st); err != nil {
		return l, nil, "", err
	}
	d := st.Sessions.Defaults
	if fresh && offline(d) {
		provider := ""
		if provider, first, err = c.askKey(s); err != nil {
			return l, nil, "", err
		}
		if provider != "" {
			if err := l.close(ctx); err != nil {
				return l, nil, "", err
			}
			next, err := c.connect(ctx)
			if err != nil {
				return l, nil, "", err
			}
			l = next
			if err := c.tryKey(ctx, l, provider); err != nil {
				return l, nil, "", err
			}
			if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &st); err != nil {
				return l, nil, "", err
			}
			d = st.Sessions.Defaults
		}
	}
	var agents wire.AgentsList
	if err := l.Call(ctx, wire.MethodAgentsList, wire.None{}, &agents); err != nil {
		return l, nil, "", err
	}
	cwd := ""
	if !l.away() { // else this folder is not where the assistant works
		cwd, _ = os.Getwd() // without it, there is no hint
	}
	return l, c.banner(d, c.locate(agents.Agents, chela.SessionKey(key).Agent(), cwd), fresh), first, nil
}

// location is where the assistant works.
type location struct {
	workspace string // for people
	here      string // the command to work in the current folder; "": that is no other one
}

// locate returns where an agent works, and how to work in the folder cwd.
func (c *commands) locate(agents []wire.AgentInfo, id chela.AgentID, cwd string) (p location) {
	home := filepath.Clean(c.getenv("HOME"))
	taken := map[string]bool{}
	other, dir := "", ""
	for _, a := range agents {
		taken[a.ID] = true
		switch {
		case a.ID == string(id):
			dir = a.Workspace
		case sameFolder(a.Workspace, cwd):
			other = a.ID
		}
	}
	p.workspace = dir
	if rest, ok := strings.CutPrefix(dir, home+string(filepath.Separator)); ok && home != "." {
		p.workspace = "~/" + filepath.ToSlash(rest)
	}
	rel, err := filepath.Rel(dir, cwd)
	switch {
	case dir == "", cwd == "", sameFolder(cwd, home), filepath.Dir(cwd) == cwd, sameFolder(dir, cwd),
		err == nil && filepath.IsLocal(rel):
		return p
	case other != "":
		p.here = c.commandLine("chat --agent " + other)
		return p
	}
	name := string(chela.AgentIDOf(filepath.Base(cwd)))
	for n := 2; name == "" || taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", cmp.Or(string(chela.AgentIDOf(filepath.Base(cwd))), "here"), n)
	}
	p.here = c.commandLine("agents add " + name + " --workspace .")
	return p
}

// sameFolder reports whether two paths name the same folder.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// offline reports whether no model is configured, so that the built-in assistant answers.
func offline(d wire.StatusDefaults) bool { return d.Provider == "offline" }

// banner returns the lines shown at the start, at most four. The first one says where the
// assistant works.
func (c *commands) banner(d wire.StatusDefaults, at location, fresh bool) []string {
	p := c.palette(c.stderr)
	model := strings.Trim(d.Provider+"/"+d.Model, "/")
	if offline(d) {
		model = "built-in assistant, not a language model"
	}
	line := p.Accent.Paint("chela "+c.app.Version) + " " + p.Dim.Paint("·") + " "
	if at.workspace != "" {
		line += "works in " + ansi.Line(at.workspace) + " " + p.Dim.Paint("·") + " "
	}
	line += ansi.Line(model)
	if d.Reason != "" {
		line += p.Dim.Paint(" (" + ansi.Line(d.Reason) + ")")
	}
	lines := []string{line}
	if at.here != "" {
		lines = append(lines, p.Dim.Paint("to work in this folder: ")+ansi.Line(at.here))
	}
	if offline(d) {
		lines = append(lines, p.Dim.Paint("to add a model: ")+c.commandLine("models auth anthropic"))
	} else if fresh {
		lines = append(lines, p.Dim.Paint("to change the model: ")+c.commandLine("models set PROVIDER/MODEL"))
	}
	if fresh || offline(d) {
		lines = append(lines, p.Dim.Paint("type /help for commands"))
	}
	return lines
}

// askKey asks for an API key of a model provider, without echo, and saves it.
// It returns the provider whose key was saved; "": none. A text that is not a key is
// returned, too: it is the first message.
func (c *commands) askKey(s Start) (provider, text string, err error) {
	p := c.palette(c.stderr)
	fmt.Fprintln(c.stderr, p.Accent.Paint("Welcome to chela.")+" No language model was found on this machine.")
	fmt.Fprint(c.stderr, "Paste an API key for Anthropic, OpenAI, OpenRouter, Google, Groq or xAI,\nor press Enter to use the built-in assistant: ")
	key, err := c.readHidden()
	if key == "" || err != nil {
		return "", "", err
	}
	provider = providerOf(key)
	switch {
	case provider == "" && isText(key):
		fmt.Fprintln(c.stderr, "That is not an API key. It is sent to the built-in assistant as your first message.")
		return "", key, nil
	case provider == "":
		c.report(errors.New("unrecognized API key"), c.commandLine("config set models.providers.NAME.apiKey KEY"))
		return "", "", nil
	}
	if err := c.app.SaveKey(s, provider, "", key); err != nil {
		return "", "", fmt.Errorf("key: %w", err)
	}
	fmt.Fprintln(c.stderr, p.Good.Paint("✓")+" key for "+provider+" saved in "+filepath.Join(s.State, "credentials"))
	return provider, "", nil
}

// tryKey asks a provider for a short answer with a new key, and says so if there is none.
// The key stays: the network may be away.
func (c *commands) tryKey(ctx context.Context, l *link, provider string) error {
	var out wire.ModelsProbed
	if err := l.Call(ctx, wire.MethodModelsProbe, wire.ModelsProbe{Provider: provider}, &out); err != nil {
		return fmt.Errorf("try the key: %w", err)
	}
	if why := refusedBy(out); why != "" {
		c.report(fmt.Errorf("%s: %s", provider, ansi.Line(why)), c.commandLine("models auth "+provider))
	}
	return nil
}

// shortestKey is the number of characters that every API key has.
const shortestKey = 16

// isText reports whether what was typed is plainly no API key: it has blanks, letters
// beyond ASCII, or few characters.
func isText(s string) bool {
	return len(s) < shortestKey || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// providerOf returns the provider whose API keys begin like key, or "".
func providerOf(key string) string {
	for _, k := range [...]struct{ prefix, provider string }{
		{"sk-ant-", "anthropic"}, {"sk-or-", "openrouter"}, {"sk-", "openai"}, {"AIza", "google"},
		{"gsk_", "groq"}, {"xai-", "xai"},
	} {
		if strings.HasPrefix(key, k.prefix) {
			return k.provider
		}
	}
	return ""
}
