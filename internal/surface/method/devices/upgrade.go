package devices

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Limits of waiting for a decision.
const (
	maxWaits     = 8               // per request
	pollInterval = 5 * time.Second // polling interval for decisions made elsewhere
)

// requestUpgrade requests more scopes for a connected device. It only adds a
// request that a person may approve.
func (m methods) requestUpgrade(ctx context.Context, _ rpc.Peer, in wire.DeviceUpgrade) (wire.DeviceRequestID, error) {
	if n := len(in.Scopes); n == 0 || n > wire.MaxUpgradeScopes {
		return wire.DeviceRequestID{}, rpc.Invalid("at /scopes: must be 1 to %d scopes", wire.MaxUpgradeScopes)
	}
	scopes := pairing.KnownScopes(in.Scopes)
	if slices.ContainsFunc(in.Scopes, func(s string) bool { return !chela.Scope(s).Known() }) {
		return wire.DeviceRequestID{}, wire.Errorf(wire.InvalidRequest, "requested scopes contain an unknown operator scope")
	}
	if len(scopes) != len(in.Scopes) {
		return wire.DeviceRequestID{}, rpc.Invalid("at /scopes: must name each scope once")
	}
	var q pairing.Request
	var a pairing.Admission
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		q, a, err = pairing.Widen(tx.Devices(), who, scopes, now)
		return err
	})
	if err != nil {
		return wire.DeviceRequestID{}, err
	}
	if old := a.Superseded; old != nil {
		m.decided(*old, wire.PairRejected, q.Time)
	}
	if a.Requested != nil {
		m.o.Announce(wire.EventPairRequested, wireview.PairRequest(q))
	}
	return wire.DeviceRequestID{ID: q.ID}, nil
}

// waitUpgrade waits until the device's request is decided or expires. The token
// is returned once, to all who wait at that time.
func (m methods) waitUpgrade(ctx context.Context, p rpc.Peer, in wire.DeviceRequestID) (wire.DeviceUpgraded, error) {
	device, _ := pairing.DeviceOf(chela.PrincipalFrom(ctx))
	w := m.waits.join(device, in.ID)
	if w == nil {
		e := wire.Errorf(wire.Unavailable, "%d clients already wait for this request", maxWaits)
		e.Retryable = true
		return wire.DeviceUpgraded{}, e
	}
	defer m.waits.leave(w)
	p.Yield()
	for {
		next := m.waits.next() // before reading the state, so that no decision is missed
		out, left, err := m.outcome(ctx, w)
		if err != nil || out.Status != "" {
			return out, err
		}
		select {
		case <-next:
		case <-time.After(min(left, pollInterval)):
		case <-ctx.Done():
			return wire.DeviceUpgraded{}, ctx.Err()
		}
	}
}

// outcome returns the outcome of a request, or the time left to decide it.
func (m methods) outcome(ctx context.Context, w *wait) (out wire.DeviceUpgraded, left time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.Status != "" {
		return w.end, 0, nil
	}
	now, who := time.Now(), chela.PrincipalFrom(ctx)
	q, err := store.Get(ctx, m.o.Store, func(r store.Reader) (pairing.Request, error) {
		return pairing.PendingRequest(r.Devices(), who, w.request, now)
	})
	switch {
	case err == nil:
		w.until = q.Time.Add(pairing.Lifetime)
		return out, w.until.Sub(now), nil
	case !errors.Is(err, chela.ErrNotFound):
		return out, 0, err
	}
	c, err := change(ctx, m, func(tx store.Tx, who chela.Principal, now time.Time) (pairing.IssuedToken, error) {
		return pairing.ClaimToken(tx.Devices(), who, w.request, now)
	})
	out = wire.DeviceUpgraded{Status: wire.PairApproved, ID: w.request, Token: c.Token, Scopes: upgradeScopes(c.Scopes)}
	switch {
	case err == nil:
	case !errors.Is(err, chela.ErrNotFound):
		return wire.DeviceUpgraded{}, 0, err
	case w.until.IsZero():
		return wire.DeviceUpgraded{}, 0, chela.Errorf(chela.CodeNotFound, "scope upgrade expired or not found")
	case now.Before(w.until):
		out = wire.DeviceUpgraded{Status: wire.PairRejected, ID: w.request}
	default:
		out = wire.DeviceUpgraded{Status: wire.PairExpired, ID: w.request}
	}
	w.end = out
	return out, 0, nil
}

// upgradeScopes returns at most MaxUpgradeScopes scopes: if there are more,
// without those included in others.
func upgradeScopes(scopes []chela.Scope) []string {
	if len(scopes) > wire.MaxUpgradeScopes {
		scopes = slices.DeleteFunc(slices.Clone(scopes), func(s chela.Scope) bool {
			return slices.ContainsFunc(scopes, func(o chela.Scope) bool {
				return o != s && chela.Principal{Scopes: []chela.Scope{o}}.May(s)
			})
		})
	}
	return wireview.Scopes(scopes)
}

// waits is the set of requests that clients wait for.
type waits struct {
	mu      sync.Mutex
	open    []*wait
	changed chan struct{} // closed after a decision
}

func newWaits() *waits { return &waits{changed: make(chan struct{})} }

// wait is a request that clients wait for.
type wait struct {
	device, request string
	n               int // number of waiting clients

	mu    sync.Mutex
	until time.Time           // expiry; zero: not read yet
	end   wire.DeviceUpgraded // outcome
}

// join returns the wait for a request; nil if too many clients wait for it.
func (w *waits) join(device, request string) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.open, func(o *wait) bool { return o.device == device && o.request == request })
	if i < 0 {
		w.open = append(w.open, &wait{device: device, request: request, n: 1})
		return w.open[len(w.open)-1]
	}
	if w.open[i].n == maxWaits {
		return nil
	}
	w.open[i].n++
	return w.open[i]
}

// leave removes a wait without clients.
func (w *waits) leave(o *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.n--; o.n == 0 {
		w.open = slices.DeleteFunc(w.open, func(have *wait) bool { return have == o })
	}
}

// next returns a channel that is closed after the next decision.
func (w *waits) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// wake wakes all waiting clients.
func (w *waits) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}
