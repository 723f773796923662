// Package externaltest contains programs for tests of package external: a broker whose
// programs are functions of the test, and a chat in folders that runs as a function or as
// a process.
package externaltest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Program is a program. It ends when it returns, with an exit code. ctx ends when it is
// told to end; it cannot be forced.
type Program func(ctx context.Context, in io.Reader, out, log io.Writer) int

// Broker runs functions as programs, each start the next one; the last one is repeated. It
// is safe for concurrent use.
type Broker struct {
	Programs []Program

	mu    sync.Mutex
	plans []sandbox.Plan
	ended int
}

var _ sandbox.Broker = (*Broker)(nil)

// Name implements sandbox.Broker.
func (*Broker) Name() string { return "test" }

// Start implements sandbox.Broker.
func (b *Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.Programs) == 0 {
		return nil, errors.New("there is no program")
	}
	run := b.Programs[min(len(b.plans), len(b.Programs)-1)]
	b.plans = append(b.plans, p)
	pr := &process{done: make(chan int, 1), b: b}
	ctx, pr.kill = context.WithCancel(ctx)
	in, feed := io.Pipe()
	go func() { // as the input of a process: what was read here may not have been read there
		_, _ = io.Copy(feed, p.Stdin)
		_ = feed.Close()
	}()
	go func() {
		code := run(ctx, in, out, p.Stderr)
		_ = in.Close()
		pr.done <- code
	}()
	return pr, nil
}

// Plans returns what was started.
func (b *Broker) Plans() []sandbox.Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sandbox.Plan(nil), b.plans...)
}

// Running returns the number of programs that have not ended.
func (b *Broker) Running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.plans) - b.ended
}

type process struct {
	b    *Broker
	done chan int
	kill func()
}

func (p *process) Wait() (sandbox.Exit, error) {
	code := <-p.done
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.ended++
	return sandbox.Exit{Code: code}, nil
}

func (p *process) Kill() { p.kill() }

func (*process) PID() int { return 1 }

// Hang never ends until it is told to, and reads nothing.
func Hang(ctx context.Context, _ io.Reader, _, _ io.Writer) int {
	<-ctx.Done()
	time.Sleep(100 * time.Millisecond)
	return 1
}
