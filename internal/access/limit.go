package access

import (
	"net/netip"
	"sync"
	"time"
)

// How many failures of an address are borne, and what follows.
const (
	maxFailures = 10
	window      = time.Minute
	lockout     = 5 * time.Minute
	maxHosts    = 4096 // addresses that are remembered
)

// limiter counts failures by address.
type limiter struct {
	mu    sync.Mutex
	hosts map[netip.Addr]*tries
}

// tries are the failures of an address.
type tries struct {
	first time.Time // of the failures that count
	n     int
	until time.Time // locked out until then
}

// locked returns for how long the address is locked out; 0: it is not.
func (l *limiter) locked(a netip.Addr) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.hosts[network(a)]
	if t == nil {
		return 0
	}
	return max(0, time.Until(t.until))
}

// failed counts a failure, and reports whether it is the one too many.
func (l *limiter) failed(a netip.Addr) (out bool) {
	a = network(a)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.hosts[a]
	if t == nil {
		l.roomLocked(now)
		t = &tries{first: now}
		l.hosts[a] = t
	}
	if now.Sub(t.first) > window {
		t.first, t.n = now, 0
	}
	if t.n++; t.n >= maxFailures {
		t.until, t.n, t.first = now.Add(lockout), 0, now
		return true
	}
	return false
}

// roomLocked forgets addresses until there is room for one more: first those
// whose failures do not count any more.
func (l *limiter) roomLocked(now time.Time) {
	if len(l.hosts) < maxHosts {
		return
	}
	for a, t := range l.hosts {
		if now.After(t.until) && now.Sub(t.first) > window {
			delete(l.hosts, a)
		}
	}
	for a, t := range l.hosts {
		if len(l.hosts) < maxHosts {
			return
		}
		if now.After(t.until) { // who is locked out stays so
			delete(l.hosts, a)
		}
	}
	for a := range l.hosts {
		if len(l.hosts) < maxHosts {
			return
		}
		delete(l.hosts, a)
	}
}

// network is what counts as one address: a whole /64 of IPv6, of which one
// host may have all.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
