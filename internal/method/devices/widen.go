package devices

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Bounds of waiting for a person.
const (
	maxWaits = 8               // for one request
	again    = 5 * time.Second // what is decided elsewhere is seen after this
)

// widen has a device that is connected ask for more scopes. Nothing becomes
// wider by it but the list of what a person may approve.
func (m methods) widen(ctx context.Context, _ rpc.Peer, in wire.DeviceWiden) (wire.DeviceRequestID, error) {
	const method = wire.MethodDeviceWiden
	if n := len(in.Scopes); n == 0 || n > wire.MaxWiden {
		return wire.DeviceRequestID{}, rpc.Invalid(method, "at /scopes: must be 1 to %d scopes", wire.MaxWiden)
	}
	scopes := pairing.Scopes(in.Scopes)
	if slices.ContainsFunc(in.Scopes, func(s string) bool { return !chela.Scope(s).Known() }) {
		return wire.DeviceRequestID{}, wire.Errorf(wire.InvalidRequest, "requested scopes contain an unknown operator scope")
	}
	if len(scopes) != len(in.Scopes) {
		return wire.DeviceRequestID{}, rpc.Invalid(method, "at /scopes: must name each scope once")
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
		m.o.Announce(wire.EventPairRequested, shape.PairRequest(q))
	}
	return wire.DeviceRequestID{ID: q.ID}, nil
}

// widened waits until the request of the device is decided, at most as long as
// it can be. The token is told once: to all who wait for it then.
func (m methods) widened(ctx context.Context, p rpc.Peer, in wire.DeviceRequestID) (wire.DeviceWidened, error) {
	device, _ := pairing.DeviceOf(chela.PrincipalFrom(ctx))
	w := m.waits.join(device, in.ID)
	if w == nil {
		e := wire.Errorf(wire.Unavailable, "%d others wait for this request", maxWaits)
		e.Retryable = true
		return wire.DeviceWidened{}, e
	}
	defer m.waits.leave(w)
	p.Yield()
	for {
		next := m.waits.next() // before the look: what is decided after it wakes
		out, left, err := m.look(ctx, w)
		if err != nil || out.Status != "" {
			return out, err
		}
		t := time.NewTimer(min(left, again))
		select {
		case <-next:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return wire.DeviceWidened{}, ctx.Err()
		}
		t.Stop()
	}
}

// look says what became of a request, or how long it may still be decided.
func (m methods) look(ctx context.Context, w *wait) (out wire.DeviceWidened, left time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.Status != "" {
		return w.end, 0, nil
	}
	now, who := time.Now(), chela.PrincipalFrom(ctx)
	var q pairing.Request
	err = m.o.Store.View(ctx, func(r store.Reader) (err error) {
		q, err = pairing.Awaited(r.Devices(), who, w.request, now)
		return err
	})
	switch {
	case err == nil:
		w.until = q.Time.Add(pairing.Lifetime)
		return out, w.until.Sub(now), nil
	case !errors.Is(err, chela.ErrNotFound):
		return out, 0, err
	}
	var c pairing.Claimed
	err = m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		c, err = pairing.Take(tx.Devices(), who, w.request, now)
		return err
	})
	out = wire.DeviceWidened{Status: wire.PairApproved, ID: w.request, Token: c.Token, Scopes: told(c.Scopes)}
	switch {
	case err == nil:
	case !errors.Is(err, chela.ErrNotFound):
		return wire.DeviceWidened{}, 0, err
	case w.until.IsZero():
		return wire.DeviceWidened{}, 0, chela.Errorf(chela.CodeNotFound, "scope upgrade expired or not found")
	case now.Before(w.until):
		out = wire.DeviceWidened{Status: wire.PairRejected, ID: w.request}
	default:
		out = wire.DeviceWidened{Status: wire.PairExpired, ID: w.request}
	}
	w.end = out
	return out, 0, nil
}

// told returns scopes in as many words as an answer has: without those that
// others hold, when there are more.
func told(scopes []chela.Scope) []string {
	if len(scopes) > wire.MaxWiden {
		scopes = slices.DeleteFunc(slices.Clone(scopes), func(s chela.Scope) bool {
			return slices.ContainsFunc(scopes, func(o chela.Scope) bool {
				return o != s && chela.Principal{Scopes: []chela.Scope{o}}.May(s)
			})
		})
	}
	return shape.Scopes(scopes)
}

// waits is the requests that somebody waits for.
type waits struct {
	mu      sync.Mutex
	open    []*wait
	changed chan struct{} // closed when something is decided
}

func newWaits() *waits { return &waits{changed: make(chan struct{})} }

// wait is a request that somebody waits for.
type wait struct {
	device, request string
	n               int // who wait

	mu    sync.Mutex
	until time.Time          // when it can no longer be decided; zero: nobody saw it
	end   wire.DeviceWidened // what became of it
}

// join returns the wait for a request; nil when too many wait.
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

// leave forgets a wait that nobody is in any more.
func (w *waits) leave(o *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.n--; o.n == 0 {
		w.open = slices.DeleteFunc(w.open, func(have *wait) bool { return have == o })
	}
}

// next returns what is closed when something is decided.
func (w *waits) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// wake has all look again.
func (w *waits) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}
