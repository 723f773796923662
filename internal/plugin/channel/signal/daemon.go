package signal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// daemonGrace is how long signal-cli may take to end.
const daemonGrace = 5 * time.Second

// variables are the environment variables that signal-cli gets.
var variables = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT",
	"PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
	"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "JAVA_HOME", "JAVA_OPTS", "SIGNAL_CLI_OPTS",
}

// daemon is the signal-cli that the channel starts. It is used by Run only.
type daemon struct {
	bot      *bot
	programs Programs

	ctx  context.Context // of the process; ends after the stream has ended, so that no event is lost between them
	run  *running        // nil: none was started
	wait sync.WaitGroup
}

// running is a process of signal-cli.
type running struct {
	log  *lines
	done chan struct{} // closed when it has ended
	err  error         // why; set before done is closed
}

// prepare makes the daemon ready for being started. The function that it returns ends it and
// waits for its end.
func (d *daemon) prepare(ctx context.Context) (stop func()) {
	dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.ctx, d.run = dctx, nil
	return func() { cancel(); d.wait.Wait() }
}

// start starts the daemon unless it runs, and returns when it answers.
func (d *daemon) start(ctx context.Context) error {
	if d.run != nil {
		select {
		case <-d.run.done:
			d.run = nil
		default:
		}
	}
	if d.run == nil {
		if err := d.launch(ctx); err != nil {
			return err
		}
	}
	limit := time.Now().Add(d.bot.c.startup)
	for {
		const pause = 250 * time.Millisecond
		err := d.bot.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.run.done:
			return d.run.err
		default:
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(limit) {
			return fmt.Errorf("signal: signal-cli was started, but did not answer within %s (see the log, or set channels.signal.startupTimeoutMs): %w", d.bot.c.startup, err)
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// ended returns why the daemon has ended; nil: it runs.
func (d *daemon) ended(ctx context.Context) error {
	const soon = time.Second // the stream ends a little before the process
	t := time.NewTimer(soon)
	defer t.Stop()
	select {
	case <-d.run.done:
		return d.run.err
	case <-ctx.Done():
	case <-t.C:
	}
	return nil
}

// program returns the path of signal-cli.
func (d *daemon) program(environ []string) (string, error) {
	name := cmp.Or(d.bot.c.CLIPath, "signal-cli")
	if rest, ok := strings.CutPrefix(name, "~/"); ok && d.bot.env.Getenv != nil {
		name = filepath.Join(d.bot.env.Getenv("HOME"), rest)
	}
	path := name
	if filepath.IsAbs(name) {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			path = ""
		}
	} else {
		path = sandbox.Look(environ)(name)
	}
	if path == "" {
		return "", &channel.Error{Permanent: true,
			Err: fmt.Errorf("signal: %s was not found (install signal-cli from https://github.com/AsamK/signal-cli, or type: chela config set channels.signal.cliPath /path/to/signal-cli; for a daemon elsewhere: chela config set channels.signal.httpUrl http://127.0.0.1:8080)", name)}
	}
	return path, nil
}

// launch starts the process. Something that answers at the address already is not taken for the
// daemon: it would not be ended with the gateway, and may belong to somebody else.
func (d *daemon) launch(ctx context.Context) error {
	b := d.bot
	var environ []string
	for _, name := range variables {
		if b.env.Getenv == nil {
			break
		}
		if v := b.env.Getenv(name); v != "" {
			environ = append(environ, name+"="+v)
		}
	}
	path, err := d.program(environ)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.env.Dir, 0o700); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	broker, err := d.programs(ctx, b.env.Log, b.env.Dir)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	if err := b.check(ctx); err == nil {
		return fmt.Errorf("signal: another program listens at %s already (if it is your signal-cli, type: chela config set channels.signal.httpUrl %s; otherwise choose another channels.signal.httpPort)", b.c.bind, b.c.base)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r := &running{log: &lines{log: b.env.Log}, done: make(chan struct{})}
	plan := sandbox.Plan{
		Path:  path,
		Argv:  append([]string{path}, b.arguments()...),
		Dir:   b.env.Dir,
		Env:   environ,
		Grace: daemonGrace,
	}
	pr, err := broker.Start(d.ctx, plan, r.log)
	if err != nil {
		return fmt.Errorf("signal: %s could not be started: %w", path, err)
	}
	b.env.Log.Info("signal-cli started", "program", path, "pid", pr.PID())
	d.run = r
	d.wait.Go(func() {
		defer close(r.done)
		exit, err := pr.Wait()
		r.err = d.failure(exit, err, r.log.last())
	})
	return nil
}

// arguments returns the arguments of signal-cli.
func (b *bot) arguments() []string {
	var args []string
	if b.c.ConfigPath != "" {
		args = append(args, "--config", b.c.ConfigPath)
	}
	args = append(args, "-a", b.c.Account, "daemon", "--http", b.c.bind, "--no-receive-stdout",
		"--receive-mode=on-connection")
	if b.c.IgnoreAttachments {
		args = append(args, "--ignore-attachments")
	}
	if b.c.IgnoreStories {
		args = append(args, "--ignore-stories")
	}
	return args
}

// failure returns the error for the end of the process.
func (d *daemon) failure(exit sandbox.Exit, err error, last string) error {
	how := "exit status " + strconv.Itoa(exit.Code)
	if exit.Signal != "" {
		how = exit.Signal
	}
	if last != "" {
		how += ": " + last
	}
	end := errors.New("signal: signal-cli ended: " + how)
	if err != nil {
		end = fmt.Errorf("%w: %w", end, err)
	}
	if strings.Contains(last, "not registered") {
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("%w (link the account: signal-cli link -n Chela; or register it: signal-cli -a %s register)", end,
				d.bot.c.Account)}
	}
	return end
}

// Limits of the output of signal-cli that is logged.
const (
	maxLine  = 400 // bytes
	maxLines = 60  // a minute
)

// lines writes the lines of a program to the log.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex
	line    []byte // the beginning of the current line
	latest  string // the last line that is not empty
	minute  time.Time
	logged  int // lines in that minute
	skipped int
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range p {
		switch {
		case c == '\n':
			l.endLocked()
		case len(l.line) < 2*maxLine:
			l.line = append(l.line, c)
		}
	}
	return len(p), nil
}

// endLocked ends the current line.
func (l *lines) endLocked() {
	text := humanize.TruncateBytes(oneLine(string(l.line)), maxLine)
	l.line = l.line[:0]
	if text == "" {
		return
	}
	l.latest = text
	if now := time.Now(); now.Sub(l.minute) >= time.Minute {
		if l.skipped > 0 {
			l.log.Warn("signal-cli: lines left out", "lines", l.skipped)
		}
		l.minute, l.logged, l.skipped = now, 0, 0
	}
	if l.logged >= maxLines {
		l.skipped++
		return
	}
	l.logged++
	level := slog.LevelDebug
	if strings.HasPrefix(text, "WARN") || strings.HasPrefix(text, "ERROR") {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "signal-cli", "line", text)
}

// last returns the last line.
func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked()
	return l.latest
}
