package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// onboarding are the flags of `chela onboard`, and what the steps found out. Each step
// writes what it has checked before the next one begins, so that a wizard that was left can
// be started again, and asks only for what is missing.
type onboarding struct {
	*commands
	quiet bool // --non-interactive: flags instead of questions
	risk  bool

	auth     string // provider, custom, offline, keep; "": what is found
	key      string // API key, or env:NAME or file:path
	refs     string // plaintext, ref
	baseURL  string
	model    string
	channel  string
	account  string   // of the channel
	again    bool     // ask for credentials that are set, too
	settings []string // KEY=VALUE
	skip     struct{ model, channel, check bool }
	work     string // the workspace
	port     int
	mode     string      // local, remote; "": as configured
	far      remoteFlags // of mode remote

	done struct {
		Model     string `json:"model"`
		Why       string `json:"modelReason,omitempty"`
		Checked   bool   `json:"modelChecked"`
		Channel   string `json:"channel,omitempty"`
		Owner     string `json:"owner,omitempty"`
		Config    string `json:"config"`
		State     string `json:"stateDir"`
		Workspace string `json:"workspace,omitempty"`
		Next      string `json:"next"`
	}
}

func (c *commands) onboard() *cobra.Command {
	o := onboarding{commands: c, account: "default"}
	cmd := &cobra.Command{
		Use: "onboard", Aliases: []string{"setup"}, Short: "Set up a model and a chat app, step by step", Args: exactly(0),
		Long: "Set up a model and a chat app, step by step. What is already set up is kept. Each step\n" +
			"is checked and saved before the next one, so you can stop at any time and start again.\n" +
			"With --non-interactive, flags answer the questions.",
		Example: "  chela onboard\n" +
			"  chela onboard --non-interactive --accept-risk --auth-choice anthropic --api-key sk-ant-…\n" +
			"  chela onboard --non-interactive --accept-risk --auth-choice custom \\\n    --custom-base-url http://127.0.0.1:8000/v1 --custom-model qwen3\n" +
			"  chela onboard --non-interactive --accept-risk --channel telegram --set botToken=123456:ABC\n" +
			"  chela onboard --mode remote --remote-url wss://home:18789 --remote-token TOKEN\n" +
			"  chela onboard --mode remote --remote-ssh me@home",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			if handled, err := o.chooseMode(ctx); handled || err != nil {
				stop()
				return err
			}
			serve, err := o.run(ctx)
			stop()
			if err != nil || !serve {
				return err
			}
			root := o.root()
			root.SetArgs(o.global("gateway", "run"))
			return root.ExecuteContext(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.quiet, "non-interactive", false, "ask nothing; needs --accept-risk")
	f.BoolVar(&o.risk, "accept-risk", false, "you have read what the assistant may do on this machine")
	f.StringVar(&o.auth, "auth-choice", "",
		"the model's `PROVIDER`; custom: a server with OpenAI's protocol; offline: none; keep: as it is")
	f.StringVar(&o.key, "api-key", "", "API `KEY` of the provider, or env:NAME or file:PATH")
	f.StringVar(&o.refs, "secret-input-mode", "plaintext",
		"`MODE` of keys: plaintext stores them, ref stores where they are (env:NAME, file:PATH)")
	f.StringVar(&o.baseURL, "custom-base-url", "", "`URL` of the server, for custom")
	f.StringVar(&o.model, "custom-model", "", "`NAME` of the model there, for custom; with a provider: its model")
	f.StringVar(&o.channel, "channel", "", "`NAME` of the chat app to set up")
	f.StringArrayVar(&o.settings, "set", nil, "a setting of the chat app, `KEY=VALUE`; repeatable")
	f.BoolVar(&o.skip.model, "skip-model", false, "leave the model as it is")
	f.BoolVar(&o.skip.channel, "skip-channels", false, "set up no chat app")
	f.BoolVar(&o.skip.check, "skip-health", false, "do not try the model and the chat app")
	f.StringVar(&o.work, "workspace", "", "`DIR` of the assistant's files")
	f.IntVar(&o.port, "gateway-port", 0, "`PORT` of the gateway")
	f.StringVar(&o.mode, "mode", "",
		"`MODE`: remote uses the gateway of another machine and sets up nothing here; local has one here")
	o.far.add(f)
	return c.withJSON(cmd)
}

// risks is what a person has to know before the assistant works on the machine.
const risks = `Chela works on this machine as you: it reads files, runs commands and sends
messages when a model asks for it. It works in its own folder without asking, in
a sandbox; it asks before anything else. Anybody whom you admit to a chat can
give it work, and texts that it reads may try to mislead it.
More: docs/access.md, docs/tools.md, docs/sandbox.md`

// run leads through the steps. It reports whether the gateway is to be started.
func (o *onboarding) run(ctx context.Context) (serve bool, err error) {
	o.repairs = true
	s, err := o.start()
	if err != nil {
		return false, err
	}
	o.done.State, o.done.Config = s.State, s.Config
	switch terminal := isTerminal(o.stdin) && isTerminal(o.stderr); {
	case o.quiet && !o.risk:
		return false,
			usage(errors.New(
				"--non-interactive needs --accept-risk: you agree that the assistant works on this machine (docs/tools.md)"))
	case !o.quiet && !terminal:
		return false, usage(o.suggest(errors.New("this is no terminal, so that questions cannot be asked"),
			"onboard --non-interactive --accept-risk --help"))
	}
	if _, err := o.tree(); err != nil {
		return false, err // says how to see what is wrong
	}
	if !o.quiet {
		o.title("Welcome to Chela")
		fmt.Fprintln(o.stderr, risks)
		for _, line := range o.openClaw(s) {
			fmt.Fprintln(o.stderr, line)
		}
		if !o.risk {
			switch ok, err := o.agree(ctx, "Go on", true); {
			case err != nil:
				return false, err
			case !ok:
				return false, errors.New("canceled; nothing was changed")
			}
		}
	}
	for _, step := range [...]func(context.Context) error{o.stepModel, o.stepGateway, o.stepChannel} {
		if err := step(ctx); err != nil {
			return false, err
		}
	}
	return o.finish(ctx)
}

// stepGateway sets what flags say about the gateway and the workspace.
func (o *onboarding) stepGateway(ctx context.Context) error {
	var edits []config.Edit
	if o.port != 0 {
		edits = append(edits, setting(o.port, "gateway", "port"))
	}
	if o.work != "" {
		edits = append(edits, setting(o.work, "agents", "defaults", "workspace"))
	}
	if o.done.Workspace = o.work; o.work == "" {
		if raw, err := o.section("agents.defaults.workspace"); err == nil && raw != nil {
			_ = json.Unmarshal(raw, &o.done.Workspace)
		}
	}
	if len(edits) == 0 {
		return nil
	}
	return o.change(ctx, edits...)
}

// finish records that the wizard was run, and says what to do next. It reports whether the
// gateway is to be started.
func (o *onboarding) finish(ctx context.Context) (serve bool, err error) {
	mode := "interactive"
	if o.quiet {
		mode = "non-interactive"
	}
	err = o.silently(func() error {
		return o.change(ctx, setting(map[string]string{
			"lastRunAt": time.Now().UTC().Format(time.RFC3339), "lastRunVersion": o.app.Version,
			"lastRunCommand": "onboard", "lastRunMode": mode,
		}, "wizard"))
	})
	if err != nil {
		return false, err
	}
	next := "chat"
	if o.done.Channel != "" {
		next = "gateway run"
	}
	o.done.Next = o.commandLine(next)
	if o.json {
		return false, o.printJSON(o.done)
	}
	if o.quiet {
		fmt.Fprintln(o.stderr, "next: "+o.done.Next)
		return false, nil
	}
	o.title("Ready")
	if o.done.Channel == "" {
		fmt.Fprintln(o.stderr, "Talk to it here: "+o.commandLine("chat"))
		fmt.Fprintln(o.stderr, "Add a chat app: "+o.commandLine("onboard"))
		return false, nil
	}
	fmt.Fprintf(o.stderr, "The assistant answers on %s while the gateway runs: %s\n", o.done.Channel,
		o.commandLine("gateway run"))
	return o.agree(ctx, "Start the gateway now", true)
}

// global returns arguments with the global flags of this installation.
func (o *onboarding) global(args ...string) []string {
	for _, f := range [...]struct{ name, value string }{{"profile", o.profile}, {"state-dir", o.state},
		{"config", o.config}, {"log-level", o.logLevel}} {
		if f.value != "" {
			args = append(args, "--"+f.name, f.value)
		}
	}
	return args
}

// silently calls f without what it prints to standard error.
func (o *onboarding) silently(f func() error) error {
	_, err := o.withheld(f)
	return err
}

// withheld calls f, and returns a function that prints what f would have.
func (o *onboarding) withheld(f func() error) (print func(), err error) {
	old, said := o.stderr, &bytes.Buffer{}
	o.stderr = said
	defer func() { o.stderr = old }()
	err = f()
	return func() { _, _ = said.WriteTo(old) }, err // as after any other print
}

func (o *onboarding) title(text string) {
	if !o.quiet {
		fmt.Fprintln(o.stderr, "\n"+o.palette(o.stderr).Accent.Paint(text))
	}
}

func (o *onboarding) good(text string) {
	if !o.json {
		fmt.Fprintln(o.stderr, o.palette(o.stderr).Good.Paint("✓")+" "+ansi.Line(text))
	}
}

// ask asks a question; the empty answer is def.
func (o *onboarding) ask(ctx context.Context, question, def string) (string, error) {
	if def != "" {
		question += " [" + def + "]"
	}
	fmt.Fprint(o.stderr, question+": ")
	line, err := o.answer(ctx)
	if line == "" {
		line = def
	}
	return line, err
}

// agree asks a yes-or-no question.
func (o *onboarding) agree(ctx context.Context, question string, def bool) (bool, error) {
	choices := "y/N"
	if def {
		choices = "Y/n"
	}
	for {
		fmt.Fprintf(o.stderr, "%s? [%s] ", question, choices)
		answer, err := o.answer(ctx)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "":
			return def, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// answer returns the next line of the person.
func (o *onboarding) answer(ctx context.Context) (string, error) {
	return o.await(ctx, func() (string, error) {
		var line []byte
		b := make([]byte, 1) // what follows belongs to the next question, which may hide it
		for len(line) < maxSecret {
			if n, err := o.stdin.Read(b); n == 0 {
				return "", err
			}
			if b[0] == '\n' {
				break
			}
			line = append(line, b[0])
		}
		return strings.TrimSpace(string(line)), nil
	})
}

// await returns the result of read, or errInterrupted if ctx ends first.
func (o *onboarding) await(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := read()
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", errInterrupted
		}
		return r.line, nil
	case <-ctx.Done():
		fmt.Fprintln(o.stderr)
		return "", errInterrupted
	}
}

// choose shows options and returns the index of the chosen one.
func (o *onboarding) choose(ctx context.Context, options []string) (int, error) {
	for i, text := range options {
		fmt.Fprintf(o.stderr, "  %d  %s\n", i+1, ansi.Line(text))
	}
	for {
		answer, err := o.ask(ctx, "Which one", "1")
		if err != nil {
			return 0, err
		}
		var n int
		if _, err := fmt.Sscanf(answer, "%d", &n); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
		fmt.Fprintf(o.stderr, "a number from 1 to %d\n", len(options))
	}
}

// secret asks for a secret, which is not shown.
func (o *onboarding) secret(ctx context.Context, question string) (string, error) {
	fmt.Fprint(o.stderr, question+": ")
	if state, err := term.GetState(int(o.stdin.Fd())); err == nil {
		defer func() { _ = term.Restore(int(o.stdin.Fd()), state) }() // if ctx ends
	}
	return o.await(ctx, o.readHidden)
}

// withTemporary starts an engine on a temporary state directory with a configuration, and
// calls f with a connection to it. Nothing of it remains.
func (o *onboarding) withTemporary(ctx context.Context, text []byte, prepare func(Start) error,
	f func(call func(method string, in, out any) error) error) error {
	dir, err := os.MkdirTemp("", "chela-onboard-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := o.start()
	if err != nil {
		return err
	}
	s.State, s.Config, s.LastGood = dir, dir+"/chela.json", dir+"/last-good.json"
	if err := os.WriteFile(s.Config, text, 0o600); err != nil {
		return err
	}
	if err := prepare(s); err != nil {
		return err
	}
	e, err := o.app.Start(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = stop(ctx, e) }()
	l, err := o.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	return f(func(method string, in, out any) error { return l.Call(ctx, method, in, out) })
}

// status returns the model that would answer now, and why.
func (o *onboarding) status(ctx context.Context) (d wire.StatusDefaults, err error) {
	var st wire.Status
	err = o.call(ctx, wire.MethodStatus, wire.None{}, &st)
	return st.Sessions.Defaults, err
}
