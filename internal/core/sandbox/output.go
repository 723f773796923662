package sandbox

import (
	"bytes"
	"context"
	"errors"
	"sync"
)

// maxStderr is the number of bytes of a program's standard error that [Output] keeps.
const maxStderr = 16 << 10

// ErrOutput is the error of a program that prints more than it may.
var ErrOutput = errors.New("the program printed too much")

// Result is what a program that has ended left.
type Result struct {
	Output []byte
	Stderr string // its beginning, at most 16 KB
	Exit   Exit
}

// Output runs a plan to its end, with Stderr set. A program that prints more than limit
// bytes is ended, and the error is [ErrOutput]. If ctx ends, the error is its cause. A
// [*StartError] says that the program did not start.
func Output(ctx context.Context, b Broker, p Plan, limit int) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &limited{limit: limit, full: func() { cancel(ErrOutput) }}
	problems := &limited{limit: maxStderr}
	p.Stderr = problems
	pr, err := b.Start(ctx, p, out)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		return Result{}, &StartError{err}
	}
	exit, err := pr.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return Result{Output: out.bytes(), Stderr: string(problems.bytes()), Exit: exit}, err
}

// StartError is why a program could not be started.
type StartError struct{ Err error }

// Error returns the cause's text.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// limited keeps the first bytes that are written to it.
type limited struct {
	limit int
	full  func() // called when there are more; may be nil

	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(p), l.limit-l.b.Len())
	l.b.Write(p[:n])
	if n < len(p) && l.full != nil {
		l.full()
		l.full = nil
	}
	return len(p), nil
}

func (l *limited) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}
