package access

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of failures per address, and the lockout that follows.
const (
	maxFailures = 10
	window      = time.Minute
	lockout     = 5 * time.Minute
	maxHosts    = 4096 // addresses stored
)

// Limiter counts failures by address, and locks an address out after too many of them.
// Use [NewLimiter]. It is safe for concurrent use.
type Limiter struct {
	most            int // failures in a window that lock out
	window, lockout time.Duration

	mu    sync.Mutex
	hosts map[netip.Addr]*failures
}

// NewLimiter returns a Limiter that locks an address out for a time after a number of
// failures in a window.
func NewLimiter(most int, window, lockout time.Duration) *Limiter {
	return &Limiter{most: most, window: window, lockout: lockout, hosts: map[netip.Addr]*failures{}}
}

// failures is the failures of an address.
type failures struct {
	first time.Time // start of the current window
	n     int
	until time.Time // end of the lockout
}

// Locked returns the remaining lockout of the address; 0 if it is not locked
// out.
func (l *Limiter) Locked(a netip.Addr) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.hosts[network(a)]
	if t == nil {
		return 0
	}
	return max(0, time.Until(t.until))
}

// Add counts a failure and reports whether the address is now locked out.
func (l *Limiter) Add(a netip.Addr) (out bool) {
	a = network(a)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.hosts[a]
	if t == nil {
		l.evictLocked(now)
		t = &failures{first: now}
		l.hosts[a] = t
	}
	if now.Sub(t.first) > l.window {
		t.first, t.n = now, 0
	}
	if t.n++; t.n >= l.most {
		t.until, t.n, t.first = now.Add(l.lockout), 0, now
		return true
	}
	return false
}

// evictLocked removes addresses until there is room for one more, expired ones
// first. If all are locked out, it removes the one whose lockout ends first.
func (l *Limiter) evictLocked(now time.Time) {
	if len(l.hosts) < maxHosts {
		return
	}
	for a, t := range l.hosts {
		if now.After(t.until) && now.Sub(t.first) > l.window {
			delete(l.hosts, a)
		}
	}
	for a, t := range l.hosts {
		if len(l.hosts) < maxHosts {
			return
		}
		if now.After(t.until) { // keep lockouts
			delete(l.hosts, a)
		}
	}
	if len(l.hosts) < maxHosts {
		return
	}
	var first netip.Addr
	for a, t := range l.hosts {
		if !first.IsValid() || t.until.Before(l.hosts[first].until) {
			first = a
		}
	}
	delete(l.hosts, first)
}

// network returns the key of an address. A /64 of IPv6 counts as one address,
// because one host may own all of it.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
