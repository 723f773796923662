package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/tool"
)

// typeTime is how long a command may take to read what is typed.
const typeTime = 5 * time.Second

// command is a program that runs, or has run.
type command struct {
	id      string // once it goes on without its call
	session chela.SessionKey
	who     string // the id of the principal that began it
	text    string // as it was given
	dir     string
	began   time.Time
	tty     bool
	idle    time.Duration // of silence, after which it seems to wait for input
	note    string        // what is not as it was asked for

	cancel  context.CancelFunc
	process sandbox.Process
	record  *record
	out     *output
	done    chan struct{} // closed when it has ended and all is written

	typing sync.Mutex // held while something is written to the input

	mu    sync.Mutex
	input input // nil: there is none, or it is closed
	polls int   // that wait for the end, and will tell it
	told  bool  // somebody knows of the end

	// After done.
	exit     sandbox.Exit
	err      error
	ended    time.Time
	timedOut bool
}

// input is where a command reads from.
type input interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// begin starts a job. Its life is its own, and not the context's.
func (t *execTool) begin(ctx context.Context, j job, c tool.Call) (*command, error) {
	life, cancel := lifetime(ctx, j.timeout)
	k := &command{
		session: c.Session, who: chela.PrincipalFrom(ctx).ID, text: j.text, dir: j.plan.Dir, began: time.Now(), tty: j.tty, cancel: cancel,
		done: make(chan struct{}), record: &record{}, out: newOutput(t.MaxOutput, c.Update),
	}
	if t.Commands != nil {
		k.record.spool.dir, k.idle = t.Commands.o.Dir, t.Commands.o.Idle
	}
	err := k.start(life, t.Broker, j)
	if j.tty && errors.Is(err, sandbox.ErrNoTerminal) {
		k.tty, k.note = false, "there are no terminals here: it has pipes"
		err = k.start(life, t.Broker, j)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("exec: %w", err)
	}
	go k.wait(life)
	return k, nil
}

// lifetime is the context of a job, which does not end with that of its call.
func lifetime(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// start starts the program.
func (k *command) start(life context.Context, b sandbox.Broker, j job) (err error) {
	p := j.plan
	out := pipe{k.record, both, k.out}
	switch {
	case k.tty:
		k.record.asked = k.answer
		p.Terminal = &sandbox.Size{Rows: 30, Cols: 120}
	case j.background || j.tty:
		k.record.asked = nil
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("input pipe: %w", err)
		}
		defer r.Close()
		p.Stdin, k.input = r, w
		out.of = stdout
		p.Stderr = pipe{k.record, stderr, k.out}
	}
	k.process, err = b.Start(life, p, out)
	if errors.Is(err, syscall.ENOEXEC) && j.shell.Path != "" { // a text that does not name its interpreter
		p.Path, p.Argv = j.shell.Path, j.shell.Argv
		k.process, err = b.Start(life, p, out)
	}
	if err != nil {
		k.closeInput()
		return err
	}
	if term, ok := k.process.(sandbox.Terminal); ok && k.tty {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.input = term
	}
	return nil
}

// answer says where the cursor is: always in the corner, since no screen is
// kept. A program that does not read what it asked for is not waited for, nor
// is one that is being typed into.
func (k *command) answer() {
	if !k.typing.TryLock() {
		return
	}
	defer k.typing.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.input == nil || k.input.SetWriteDeadline(time.Now().Add(50*time.Millisecond)) != nil {
		return
	}
	_, _ = k.input.Write([]byte("\x1b[1;1R")) // see above
}

// wait waits for the end.
func (k *command) wait(life context.Context) {
	k.exit, k.err = k.process.Wait()
	k.timedOut = errors.Is(life.Err(), context.DeadlineExceeded)
	k.ended = time.Now()
	k.out.flush()
	k.cancel()
	k.mu.Lock()
	k.closeInput()
	k.mu.Unlock()
	close(k.done)
}

// closeInput closes what the command reads from: a terminal goes with its
// program.
func (k *command) closeInput() {
	if f, ok := k.input.(*os.File); ok {
		_ = f.Close() // nothing is buffered
	}
	k.input = nil
}

// shownTo reports whether a principal may see the command and type into it: in
// a group each has their own, and the owner has all.
func (k *command) shownTo(who chela.Principal) bool { return k.who == who.ID || who.IsOwner() }

// running reports whether the command has not ended.
func (k *command) running() bool {
	select {
	case <-k.done:
		return false
	default:
		return true
	}
}

// waits reports whether the command seems to wait for input.
func (k *command) waits() bool {
	if !k.running() {
		return false
	}
	k.mu.Lock()
	open := k.input != nil
	k.mu.Unlock()
	k.record.mu.Lock()
	defer k.record.mu.Unlock()
	last := k.record.last
	if last.IsZero() {
		last = k.began
	}
	return open && time.Since(last) >= k.idle
}

// send writes to the command's input.
func (k *command) send(b []byte, end bool) error {
	k.typing.Lock()
	defer k.typing.Unlock()
	k.mu.Lock()
	in := k.input
	k.mu.Unlock()
	switch {
	case !k.running():
		return fmt.Errorf("%s has ended", k.id)
	case in == nil:
		return fmt.Errorf("the input of %s is closed; a command reads what is written when it is started with background or pty", k.id)
	}
	if end && k.tty {
		b = append(b, 4) // what the key C-d sends
	}
	k.record.touch()
	if err := in.SetWriteDeadline(time.Now().Add(typeTime)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return fmt.Errorf("input of %s: %w", k.id, err)
	}
	n, err := in.Write(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s does not read its input; %d of %d bytes were taken", k.id, n, len(b))
	case err != nil:
		return fmt.Errorf("input of %s: %w", k.id, err)
	}
	if end && !k.tty {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.closeInput()
	}
	return nil
}

// touch notes that the command has something to do.
func (r *record) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
}

// status says how the command is, in a few words. Of one that runs it is the
// same as long as nothing changes.
func (k *command) status() string {
	if k.running() {
		return "running"
	}
	var s string
	switch {
	case k.timedOut:
		s = "timed out"
	case k.err != nil:
		s = "lost: " + k.err.Error()
	case k.exit.Signal != "":
		s = "ended by " + k.exit.Signal
	default:
		s = fmt.Sprintf("exit code %d", k.exit.Code)
	}
	return s + " after " + figure.Span(k.ended.Sub(k.began))
}

// name returns a short name: the program and what it is about.
func (k *command) name() string {
	var words []string
	for _, w := range strings.Fields(k.text) {
		if len(words) == 0 && strings.Contains(w, "=") {
			continue // a variable
		}
		if len(words) > 0 && strings.HasPrefix(w, "-") {
			continue
		}
		if len(words) == 0 {
			w = filepath.Base(w)
		}
		if words = append(words, w); len(words) == 2 {
			break
		}
	}
	return clip(strings.Join(words, " "), 60)
}

// clip returns the beginning of a text as one line.
func clip(s string, most int) string {
	s = strings.Join(strings.Fields(plain([]byte(s))), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
