// Package worker runs functions on goroutines that stay for a moment. A new
// goroutine begins with a small stack, and what runs deep pays for its growth
// each time; one that has just done the same has it.
package worker

import "time"

// linger is how long a goroutine waits for more.
const linger = time.Second

// Pool is a set of goroutines. There are as many as are busy at once, and for a
// second as many as were.
type Pool struct {
	next chan func()
	done chan struct{}
}

// New returns a Pool.
func New() *Pool { return &Pool{next: make(chan func()), done: make(chan struct{})} }

// Close has no goroutine wait any more. Those that are busy end with what they
// do.
func (p *Pool) Close() { close(p.done) }

// Go runs f as a go statement does.
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
