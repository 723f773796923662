package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// conn holds the files that connect a program to this process.
type conn struct {
	flows  []flow
	theirs []*os.File // the program's ends
	token  token
}

// token is a pipe whose write end is held only by processes that inherited
// it.
type token struct{ ours, theirs *os.File }

// flow is one output stream of the program.
type flow struct {
	from *os.File
	to   io.Writer
}

// connect creates the standard files of the command.
func connect(cmd *exec.Cmd, p sandbox.Plan, out io.Writer) (*conn, error) {
	c := &conn{}
	if p.Terminal != nil {
		ours, theirs, err := openTerminal(*p.Terminal)
		if err != nil {
			return nil, err
		}
		c.flows = []flow{{ours, out}}
		c.theirs = []*os.File{theirs}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		if _, err := c.pipe(io.Discard); err != nil { // in a container another terminal may have the same name
			c.started()
			c.close()
			return nil, err
		}
		return c, nil
	}
	w, err := c.pipe(out)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	if p.Stderr != nil {
		if w, err = c.pipe(p.Stderr); err != nil {
			c.started()
			c.close()
			return nil, err
		}
		cmd.Stderr = w
	}
	return c, nil
}

// pipe adds a flow and returns the program's end of it.
func (c *conn) pipe(to io.Writer) (*os.File, error) {
	r, w, err := openPipe()
	if err != nil {
		return nil, fmt.Errorf("output pipe: %w", err)
	}
	c.flows = append(c.flows, flow{r, to})
	c.theirs, c.token = append(c.theirs, w), token{r, w}
	return w, nil
}

// started closes this process's copies of the program's files, after the
// program was started or failed to start.
func (c *conn) started() {
	for _, f := range c.theirs {
		_ = f.Close() // nothing was written through it
	}
}

// cut closes the flows that are still held open by a process that was not
// found. The others end by themselves once they have been read completely.
func (c *conn) cut() {
	for _, f := range c.flows {
		if !abandoned(f.from) {
			_ = f.from.Close() // there is no buffered data
		}
	}
}

// close closes the flows. It may be called more than once.
func (c *conn) close() {
	for _, f := range c.flows {
		_ = f.from.Close() // there is no buffered data
	}
}

// terminal is a process that runs in a terminal.
type terminal struct {
	*process
	keys *os.File
}

var _ sandbox.Terminal = terminal{}

func (t terminal) Write(b []byte) (int, error) {
	n, err := t.keys.Write(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("terminal: %w", err)
	}
	return n, err
}

func (t terminal) SetWriteDeadline(at time.Time) error { return t.keys.SetWriteDeadline(at) }
