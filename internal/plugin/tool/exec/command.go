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

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// inputTimeout is how long a command may take to read its input.
const inputTimeout = 5 * time.Second

// idleTime is the time without output or input after which a command with an open
// input seems to wait for it.
const idleTime = 15 * time.Second

// command is a running or ended program.
type command struct {
	id      string // set once it is in the background
	session chela.SessionKey
	call    string // id of the tool call that started it
	owner   string // id of the principal that started it
	text    string // the command as given
	dir     string
	began   time.Time
	tty     bool
	note    string // note about an option that could not be honoured

	cancel  context.CancelFunc
	swapped func() string   // returns a script of the approval that was changed
	changed func() []string // see Options.Starts; nil: nobody is told
	process sandbox.Process
	record  *record
	out     *output
	done    chan struct{} // closed when it has ended and all output is written

	inputMu sync.Mutex // held while writing to the input

	mu       sync.Mutex
	input    input // nil: none, or closed
	waiters  int   // polls that wait for the end and will report it
	notified bool  // the end was reported to the session
	stopped  bool  // somebody ended it

	// The result, valid after done is closed.
	exit     sandbox.Exit
	refused  []string // rights that it lacked in the sandbox, as far as is known
	private  bool     // it came across private files in the sandbox, and could not read them
	lost     []string // files that it changed without a way back
	edited   string   // a script of the approval that was changed while it ran; "": none
	err      error
	ended    time.Time
	timedOut bool
}

// input is the standard input of a command.
type input interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// start starts a job. The command does not end with ctx.
func (t *execTool) start(ctx context.Context, j job, c tool.Call) (*command, error) {
	life, cancel := lifetime(ctx, j.timeout)
	k := &command{
		session: c.Session,
		call:    c.ID,
		owner:   chela.PrincipalFrom(ctx).ID,
		text:    j.text,
		dir:     j.plan.Dir,
		began:   time.Now(),
		tty:     j.tty,
		cancel:  cancel,
		done:    make(chan struct{}),
		record:  &record{},
		out:     newOutput(t.MaxOutput, c.Update),
	}
	if t.Commands != nil {
		k.record.spool.dir = t.Commands.o.Dir
	}
	broker := t.Broker
	if j.cage != nil {
		broker = j.cage
	}
	if t.Starts != nil && !j.reads {
		k.changed = t.Starts(ctx)
	}
	if err := j.checkSources(); err != nil { // at the last moment
		cancel()
		k.looked()
		return nil, fmt.Errorf("exec: %w", err)
	}
	k.swapped = func() string { return j.changedSource(true) }
	err := k.startProcess(life, broker, j)
	if j.tty && errors.Is(err, sandbox.ErrNoTerminal) {
		k.tty, k.note = false, "terminals are not supported here, so it runs with pipes"
		err = k.startProcess(life, broker, j)
	}
	if err != nil {
		cancel()
		k.looked()
		return nil, fmt.Errorf("exec: %w", err)
	}
	go k.wait(life)
	return k, nil
}

// lifetime returns the context of a job. It is not canceled with the context
// of the call.
func lifetime(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// startProcess starts the program.
func (k *command) startProcess(life context.Context, b sandbox.Broker, j job) (err error) {
	p := j.plan
	if p.Rights != nil { // a session reaches the servers that it started, and a person in a group their own
		p.Peers = string(k.session) + "\xff" + k.owner
	}
	out := pipe{k.record, both, k.out}
	switch {
	case k.tty:
		k.record.onCursorQuery = k.sendCursorPosition
		p.Terminal = &sandbox.Size{Rows: 30, Cols: 120}
	case j.background || j.tty:
		k.record.onCursorQuery = nil
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
	if errors.Is(err, syscall.ENOEXEC) && j.shell.Path != "" { // a script without an interpreter line
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

// sendCursorPosition answers a query for the cursor position. It always
// reports the top left corner, because no screen is kept. It does not wait
// for a program that does not read the answer, or for input that is being
// written.
func (k *command) sendCursorPosition() {
	if !k.inputMu.TryLock() {
		return
	}
	defer k.inputMu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.input == nil || k.input.SetWriteDeadline(time.Now().Add(50*time.Millisecond)) != nil {
		return
	}
	_, _ = k.input.Write([]byte("\x1b[1;1R")) // best effort
}

// wait waits for the end of the program.
func (k *command) wait(life context.Context) {
	k.exit, k.err = k.process.Wait()
	k.timedOut = errors.Is(life.Err(), context.DeadlineExceeded)
	k.ended = time.Now()
	k.out.flush()
	k.cancel()
	k.looked()
	k.edited = k.swapped()
	k.mu.Lock()
	k.closeInput()
	k.mu.Unlock()
	close(k.done)
}

// looked has the changes of the command recorded, once.
func (k *command) looked() {
	if k.changed != nil {
		k.lost = k.changed()
		k.changed = nil
	}
}

// closeInput closes the input. A terminal is closed with its program.
func (k *command) closeInput() {
	if f, ok := k.input.(*os.File); ok {
		_ = f.Close() // there is no buffered data
	}
	k.input = nil
}

// visibleTo reports whether a principal may see the command and write to it.
// Owners have access to all commands, other members of a group only to their
// own.
func (k *command) visibleTo(principal chela.Principal) bool {
	return k.owner == principal.ID || principal.IsOwner()
}

// running reports whether the command has not ended.
func (k *command) running() bool {
	select {
	case <-k.done:
		return false
	default:
		return true
	}
}

// waitsForInput reports whether the command seems to wait for input.
func (k *command) waitsForInput() bool {
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
	return open && time.Since(last) >= idleTime
}

// send writes to the command's input.
func (k *command) send(b []byte, end bool) error {
	k.inputMu.Lock()
	defer k.inputMu.Unlock()
	k.mu.Lock()
	in := k.input
	k.mu.Unlock()
	switch {
	case !k.running():
		return fmt.Errorf("%s has ended", k.id)
	case in == nil:
		return fmt.Errorf("the input of %s is closed; to write to a command, start it with background or pty", k.id)
	}
	if end && k.tty {
		b = append(b, 4) // the byte sent by C-d
	}
	k.record.touch()
	if err := in.SetWriteDeadline(time.Now().Add(inputTimeout)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return fmt.Errorf("input of %s: %w", k.id, err)
	}
	n, err := in.Write(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s does not read its input; %d of %d bytes were written", k.id, n, len(b))
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

// status describes the state of the command in a few words. While the command
// runs, the text does not change.
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
	s += " after " + humanize.Span(k.ended.Sub(k.began))
	for _, note := range [...]string{lostNote(k.lost), editedNote(k.edited)} {
		if note != "" {
			s += "; " + note
		}
	}
	return s
}

// name returns a short name: the program and its first operand.
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
	return oneLine(strings.Join(words, " "), 60)
}

// clip returns the beginning of a text as one line.
func oneLine(s string, maxChars int) string {
	return humanize.Truncate(strings.Join(strings.Fields(plain([]byte(s))), " "), maxChars)
}
