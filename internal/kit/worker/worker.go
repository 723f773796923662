// Package worker runs functions on goroutines that are reused. A new goroutine
// starts with a small stack, which has to grow for functions with deep calls; a
// reused one has the larger stack already.
package worker

import "time"

// linger is how long an idle goroutine waits for the next function.
const linger = time.Second

// Pool is a set of goroutines. It grows with the functions that run at once.
type Pool struct {
	next chan func()
	done chan struct{}
}

// New returns a Pool.
func New() *Pool { return &Pool{next: make(chan func()), done: make(chan struct{})} }

// Close ends the idle goroutines. Busy ones end after their function.
func (p *Pool) Close() { close(p.done) }

// Go calls f on a goroutine and does not wait for it, like a go statement.
func (p *Pool) Go(f func()) {
	select {
	case p.next <- f:
	default:
		go p.work(f)
	}
}

func (p *Pool) work(f func()) {
	t := time.NewTimer(linger)
	defer t.Stop()
	for {
		f()
		t.Reset(linger)
		select {
		case f = <-p.next:
		case <-t.C:
			return
		case <-p.done:
			return
		}
	}
}
