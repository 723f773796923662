package pairing_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// machine performs operations on two devices and on a model of them, and
// compares the two.
type machine struct {
	t      *testing.T
	do     func(func(pairing.Table) error) error // runs f in a transaction, rolled back if f returns an error
	now    time.Time
	next   func(n int) int // returns a number below n
	models map[string]*model
	asked  []string // ids of all requests
	log    []string
}

// model is the expected state of a device.
type model struct {
	known, removed bool
	grants         map[string]*grantModel
	tokens         []token
	accesses       []pairing.Access
	request        *pairing.Request
}

// grantModel is the expected state of a grant. A new epoch invalidates the tokens
// and accesses of the epochs before.
type grantModel struct {
	live, narrowed bool
	scopes         []chela.Scope
	epoch          int
	issued         time.Time // of an epoch, as its first access says
	issuedIn       int       // that epoch
	claim          string    // the request whose token can be claimed
	claimed        time.Time
}

type token struct {
	text, role string
	epoch      int
}

var roles = []string{wire.RoleOperator, wire.RoleNode}

var some = [][]chela.Scope{
	{}, {chela.ScopeRead}, {chela.ScopeWrite}, {chela.ScopePairing}, {chela.ScopeRead, chela.ScopeWrite},
	{chela.ScopePairing, chela.ScopeRead}, {chela.ScopeAdmin},
	{chela.ScopeApprovals, chela.ScopePairing, chela.ScopeWrite},
}

// stored returns a machine on a real store.
func stored(t *testing.T, next func(int) int) *machine {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return newMachine(t, next, func(f func(pairing.Table) error) error {
		return db.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return f(tx.Devices()) })
	})
}

func newMachine(t *testing.T, next func(int) int, do func(func(pairing.Table) error) error) *machine {
	m := &machine{t: t, do: do, now: now, next: next, models: map[string]*model{}}
	for _, id := range [...]string{"a", "b"} {
		m.models[id] = &model{grants: map[string]*grantModel{wire.RoleOperator: {}, wire.RoleNode: {}}}
	}
	return m
}

// memory is an in-memory devices table, for fuzz runs: opening a store takes
// longer than the run.
type memory struct {
	devices  map[string]pairing.Device
	requests map[string]pairing.Request // by device
	invites  []pairing.Invite
}

func (m *memory) update(f func(pairing.Table) error) error {
	next := &memory{maps.Clone(m.devices), maps.Clone(m.requests), m.invites}
	err := f(next)
	if err == nil {
		*m = *next
	}
	return err
}

func (m *memory) Device(id string) (pairing.Device, error) {
	d, ok := m.devices[id]
	if !ok {
		return d, chela.ErrNotFound
	}
	return d, nil
}

func (m *memory) Devices() ([]pairing.Device, error) {
	return slices.Collect(maps.Values(m.devices)), nil
}

func (m *memory) Request(id string) (pairing.Request, error) {
	for _, r := range m.requests {
		if r.ID == id {
			return r, nil
		}
	}
	return pairing.Request{}, chela.ErrNotFound
}

func (m *memory) Requests() ([]pairing.Request, error) {
	return slices.Collect(maps.Values(m.requests)), nil
}

func (m *memory) Invites() ([]pairing.Invite, error) { return slices.Clone(m.invites), nil }

func (m *memory) DeleteDevice(id string) error { delete(m.devices, id); return nil }

func (m *memory) PutInvites(all []pairing.Invite) error { m.invites = all; return nil }

func (m *memory) PutDevice(d pairing.Device) error { m.devices[d.ID] = d; return nil }

func (m *memory) PutRequest(r pairing.Request) error { m.requests[r.Device] = r; return nil }

func (m *memory) DropRequest(id string) error {
	maps.DeleteFunc(m.requests, func(_ string, r pairing.Request) bool { return r.ID == id })
	return nil
}

func (m *machine) fail(format string, args ...any) {
	m.t.Helper()
	for _, l := range m.log {
		m.t.Log(l)
	}
	m.t.Fatalf(format, args...)
}

func pick[T any](m *machine, list []T) T { return list[m.next(len(list))] }

// live reports whether the device has a live grant.
func (d *model) live() bool {
	return d.known && !d.removed && (d.grants[wire.RoleOperator].live || d.grants[wire.RoleNode].live)
}

// step performs one operation and checks that the store and the model agree.
func (m *machine) step() {
	m.now = m.now.Add(time.Duration(m.next(40)) * time.Second)
	id := pick(m, []string{"a", "b"})
	switch m.next(11) {
	case 0, 1, 2:
		m.admit(id)
	case 3:
		m.redeem(id)
	case 4, 5:
		m.approve()
	case 6:
		m.rotate(id)
	case 7:
		m.revoke(id)
	case 9:
		m.widen(id)
	case 10:
		m.claimToken(id)
	case 8:
		if m.next(2) == 0 {
			m.remove(id)
		} else {
			m.reject()
		}
	}
	m.check()
}

func (m *machine) identity(id string) pairing.Identity {
	return pairing.Identity{
		ID:     id,
		Key:    "k",
		Role:   pick(m, roles),
		Scopes: pick(m, some),
		Client: wire.ClientInfo{ID: "cli"},
	}
}

// caller returns a principal that decides: the owner, a person with few scopes,
// or a device.
func (m *machine) caller() chela.Principal {
	switch scopes := pick(m, some); m.next(4) {
	case 0:
		return chela.Owner("socket")
	case 3:
		return chela.Owner(pairing.Credential(pick(m, []string{"a", "b"})))
	case 1:
		return chela.Principal{ID: "owner", Credential: "token", Scopes: scopes}
	default:
		return chela.Principal{ID: "owner", Credential: pairing.Credential(pick(m, []string{"a", "b"})), Scopes: scopes}
	}
}

func (m *machine) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *machine) admit(id string) {
	in := m.identity(id)
	p := pairing.Proof{Local: m.next(2) == 0, Authority: pick(m, some)}
	var a pairing.Admission
	if err := m.do(func(t pairing.Table) (err error) { a, err = pairing.Admit(t, in, p, m.now); return err }); err != nil {
		m.fail("admit: %v", err)
	}
	m.logf("%s admit %s %v local=%v %v: %v", id, in.Role, in.Scopes, p.Local, p.Authority, a.Refusal)
	d, g := m.models[id], m.models[id].grants[in.Role]
	covered := d.live() && g.live && pairing.ScopeSet(g.scopes).Covers(in.Scopes)
	wider := d.live() && g.live && !g.narrowed && !covered
	silent := p.Local && (!d.known || wider) && pairing.ScopeSet(p.Authority).Covers(in.Scopes)
	if (a.Refusal == nil) != (covered || silent) {
		m.fail("admitted: %v, want %v", a.Refusal == nil, covered || silent)
	}
	if a.Refusal != nil {
		m.ask(d, in, a)
		return
	}
	if silent {
		d.known = true
		if !g.live {
			g.epoch++
		}
		g.scopes, g.live, g.claim = union(g.scopes, in.Scopes), true, ""
	}
	if !pairing.ScopeSet(p.Authority).Covers(a.Access.Scopes) || !pairing.ScopeSet(g.scopes).Covers(a.Access.Scopes) ||
		!pairing.ScopeSet(in.Scopes).Covers(a.Access.Scopes) {
		m.fail("scopes %v exceed %v, %v or %v", a.Access.Scopes, p.Authority, g.scopes, in.Scopes)
	}
	m.checkIssued(g, a.Access.Issued)
	d.addAccess(a.Access, g.epoch)
}

// checkIssued checks that all accesses of an epoch have the time of its beginning.
func (m *machine) checkIssued(g *grantModel, at time.Time) {
	if g.issuedIn != g.epoch {
		g.issued, g.issuedIn = at, g.epoch
	}
	if at.IsZero() || at.After(m.now) || !at.Equal(g.issued) {
		m.fail("a grant of %v was issued at %v, want %v", m.now, at, g.issued)
	}
}

// addAccess records an access, with the epoch instead of its time.
func (d *model) addAccess(p pairing.Access, epoch int) {
	p.Issued = time.Unix(int64(epoch), 0)
	d.accesses = append(d.accesses, p)
	d.tokens = append(d.tokens, token{p.Token, p.Role, epoch})
}

func union(a, b []chela.Scope) []chela.Scope {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// ask checks that a refused device has exactly one pending request.
func (m *machine) ask(d *model, in pairing.Identity, a pairing.Admission) {
	old := d.request
	if old != nil && old.Expired(m.now) {
		old = nil
	}
	same := old != nil && old.Role == in.Role && slices.Equal(old.Scopes, in.Scopes)
	switch {
	case same != (a.Requested == nil):
		m.fail("a new request: %v, want %v", a.Requested != nil, !same)
	case (old != nil && !same) != (a.Superseded != nil):
		m.fail("superseded %v, had %v", a.Superseded, old)
	case same:
		old.Time = m.now
		return
	}
	if a.Requested.Repair != d.known {
		m.fail("repair: %v, want %v", a.Requested.Repair, d.known)
	}
	d.request = a.Requested
	m.asked = append(m.asked, a.Requested.ID)
}

func (m *machine) redeem(id string) {
	d := m.models[id]
	if len(d.tokens) == 0 {
		return
	}
	in, tok := m.identity(id), pick(m, d.tokens)
	var a pairing.Admission
	if err := m.do(func(t pairing.Table) (err error) {
		a, err = pairing.Redeem(t, in, tok.text, m.now)
		return err
	}); err != nil {
		m.fail("redeem: %v", err)
	}
	m.logf("%s redeem %s %v: %v", id, in.Role, in.Scopes, a.Refusal)
	g := d.grants[in.Role]
	want := tok.role == in.Role && m.valid(d, tok) && pairing.ScopeSet(g.scopes).Covers(in.Scopes)
	if (a.Refusal == nil) != want {
		m.fail("redeemed: %v, want %v", a.Refusal == nil, want)
	}
	if want {
		m.checkIssued(g, a.Access.Issued)
		d.accesses = append(d.accesses, pairing.Access{
			Device:     id,
			Role:       in.Role,
			Generation: a.Access.Generation,
			Scopes:     a.Access.Scopes,
			Issued:     time.Unix(int64(g.epoch), 0),
		})
	}
}

// valid reports whether a token is valid: it is one of the last four of the
// grant's current epoch.
func (m *machine) valid(d *model, tok token) bool {
	g := d.grants[tok.role]
	if !d.live() || !g.live || tok.epoch != g.epoch {
		return false
	}
	var of []string
	for _, t := range d.tokens {
		if t.role == tok.role && t.epoch == tok.epoch {
			of = append(of, t.text)
		}
	}
	return slices.Contains(of[max(0, len(of)-4):], tok.text)
}

// pending returns the device of a request that can still be decided.
func (m *machine) pending(request string) (string, *model) {
	for id, d := range m.models {
		if d.request != nil && d.request.ID == request && !d.request.Expired(m.now) {
			return id, d
		}
	}
	return "", nil
}

func (m *machine) approve() {
	if len(m.asked) == 0 {
		return
	}
	who, req := m.caller(), m.asked[max(0, len(m.asked)-1-m.next(3))]
	err := m.do(func(t pairing.Table) error { _, _, err := pairing.Approve(t, who, req, m.now); return err })
	id, d := m.pending(req)
	m.logf("%s approve by %s %v: %v", id, who.Credential, who.Scopes, err)
	self, _ := pairing.DeviceOf(who)
	want := d != nil && who.May(chela.ScopePairing) && pairing.ScopeSet(who.Scopes).Covers(d.request.Scopes) &&
		(self != id || who.IsOwner())
	if (err == nil) != want {
		m.fail("approved: %v, want %v", err, want)
	}
	if !want {
		return
	}
	g := d.grants[d.request.Role]
	if !g.live || d.removed {
		*g = grantModel{epoch: g.epoch + 1}
	}
	g.live, g.scopes, g.claim = true, union(g.scopes, d.request.Scopes), ""
	if pairing.ScopeSet(d.request.Scopes).Covers(g.scopes) {
		g.claim, g.claimed = req, m.now
	}
	d.known, d.removed, d.request = true, false, nil
}

// widen requests more scopes over a connection of the device.
func (m *machine) widen(id string) {
	who := chela.Principal{ID: "owner", Credential: pairing.Credential(id), Scopes: pick(m, some)}
	scopes, d := pick(m, some), m.models[id]
	var a pairing.Admission
	err := m.do(func(t pairing.Table) (err error) { _, a, err = pairing.Widen(t, who, scopes, m.now); return err })
	m.logf("%s widens %v to %v: %v", id, who.Scopes, scopes, err)
	g := d.grants[wire.RoleOperator]
	if want := d.live() && g.live && pairing.ScopeSet(scopes).Covers(who.Scopes); (err == nil) != want {
		m.fail("widened: %v, want %v", err, want)
	}
	if err == nil {
		m.ask(d, pairing.Identity{Role: wire.RoleOperator, Scopes: union(g.scopes, scopes)}, a)
	}
}

// claimToken claims the token of a request that may have been approved.
func (m *machine) claimToken(id string) {
	if len(m.asked) == 0 {
		return
	}
	who, req := chela.Principal{ID: "owner", Credential: pairing.Credential(id)}, m.asked[max(0, len(m.asked)-1-m.next(3))]
	var c pairing.IssuedToken
	err := m.do(func(t pairing.Table) (err error) { c, err = pairing.ClaimToken(t, who, req, m.now); return err })
	m.logf("%s claims %s: %v", id, req, err)
	d, g := m.models[id], m.models[id].grants[wire.RoleOperator]
	want := d.live() && g.live && g.claim == req && m.now.Before(g.claimed.Add(pairing.Lifetime))
	if (err == nil) != want || want && !slices.Equal(c.Scopes, g.scopes) {
		m.fail("claimed: %v %v, want %v", c.Scopes, err, want)
	}
	if want {
		g.claim = ""
		d.tokens = append(d.tokens, token{c.Token, wire.RoleOperator, g.epoch})
	}
}

func (m *machine) reject() {
	if len(m.asked) == 0 {
		return
	}
	who, req := m.caller(), m.asked[len(m.asked)-1]
	err := m.do(func(t pairing.Table) error { _, err := pairing.Reject(t, who, req, m.now); return err })
	_, d := m.pending(req)
	m.logf("reject by %v: %v", who.Scopes, err)
	if want := d != nil && who.May(chela.ScopePairing); (err == nil) != want {
		m.fail("rejected: %v, want %v", err, want)
	}
	if err == nil {
		d.request = nil
	}
}

// may reports whether the principal may change a device.
func (m *machine) may(who chela.Principal, id string) bool {
	self, isDevice := pairing.DeviceOf(who)
	d := m.models[id]
	return d.known && !d.removed && who.May(chela.ScopePairing) && (!isDevice || self == id || who.IsOwner())
}

func (m *machine) rotate(id string) {
	who, role := m.caller(), pick(m, roles)
	d, g := m.models[id], m.models[id].grants[role]
	var scopes []chela.Scope
	if m.next(2) == 0 {
		scopes = pick(m, some)
	}
	var tok string
	err := m.do(func(t pairing.Table) (err error) {
		_, tok, err = pairing.Rotate(t, who, id, role, scopes, m.now)
		return err
	})
	m.logf("%s rotate %s %v by %s %v: %v", id, role, scopes, who.Credential, who.Scopes, err)
	left := g.scopes
	if scopes != nil {
		left = scopes
	}
	want := m.may(who, id) && g.live && pairing.ScopeSet(g.scopes).Covers(left) &&
		pairing.ScopeSet(who.Scopes).Covers(left)
	if (err == nil) != want {
		m.fail("rotated: %v, want %v", err, want)
	}
	self, _ := pairing.DeviceOf(who)
	if (tok != "") != (want && self == id) {
		m.fail("token %q for %s", tok, who.Credential)
	}
	if !want {
		return
	}
	g.scopes, g.narrowed, g.claim = union(nil, left), g.narrowed || scopes != nil, ""
	g.epoch++
	if tok != "" {
		d.tokens = append(d.tokens, token{tok, role, g.epoch})
	}
}

func (m *machine) revoke(id string) {
	who, role := m.caller(), pick(m, roles)
	g := m.models[id].grants[role]
	want := m.may(who, id) && g.live
	err := m.do(func(t pairing.Table) error { _, err := pairing.Revoke(t, who, id, role, m.now); return err })
	m.logf("%s revoke %s by %s %v: %v", id, role, who.Credential, who.Scopes, err)
	if (err == nil) != want {
		m.fail("revoked: %v, want %v", err, want)
	}
	if want {
		g.live, g.claim = false, ""
		g.epoch++
	}
}

func (m *machine) remove(id string) {
	who, d := m.caller(), m.models[id]
	want := m.may(who, id)
	err := m.do(func(t pairing.Table) error { _, _, err := pairing.Remove(t, who, id, m.now); return err })
	m.logf("%s remove by %s %v: %v", id, who.Credential, who.Scopes, err)
	if (err == nil) != want {
		m.fail("removed: %v, want %v", err, want)
	}
	if !want {
		return
	}
	d.removed, d.request = true, nil
	for _, g := range d.grants {
		g.live, g.claim = false, ""
		g.epoch++
	}
}

// check compares every grant, and every token and access ever given, with the
// model.
func (m *machine) check() {
	undo := errors.New("undo")
	err := m.do(func(t pairing.Table) error {
		for id, d := range m.models {
			m.checkDevice(t, id, d)
		}
		return undo
	})
	if !errors.Is(err, undo) {
		m.fail("check: %v", err)
	}
}

func (m *machine) checkDevice(t pairing.Table, id string, d *model) {
	have, err := t.Device(id)
	if err != nil && (d.known || !errors.Is(err, chela.ErrNotFound)) {
		m.fail("device %s: %v", id, err)
	}
	if have.Live() != d.live() {
		m.fail("device %s is live: %v, want %v", id, have.Live(), d.live())
	}
	for role, g := range d.grants {
		if got := have.Grant(role); got.Live() != g.live || g.live && !slices.Equal(got.Scopes, g.scopes) {
			m.fail("device %s as %s: %+v, want %+v", id, role, got, *g)
		}
	}
	for _, tok := range d.tokens {
		a, err := pairing.Redeem(t, pairing.Identity{ID: id, Role: tok.role}, tok.text, m.now)
		if want := m.valid(d, tok); err != nil || (a.Refusal == nil) != want {
			m.fail("device %s: token of epoch %d valid: %v, want %v (%v)", id, tok.epoch, a.Refusal == nil, want, err)
		}
	}
	for _, p := range d.accesses {
		g := d.grants[p.Role]
		if want, err := g.live && p.Issued.Unix() == int64(g.epoch), pairing.Check(t, p); (err == nil) != want {
			m.fail("device %s: access of epoch %d valid: %v, want %v", id, p.Issued.Unix(), err, want)
		}
		who, err := pairing.Current(t, p.Principal())
		op := d.grants[wire.RoleOperator]
		if err != nil || !op.live && who.ID != "" || !pairing.ScopeSet(op.scopes).Covers(who.Scopes) {
			m.fail("device %s: current principal %+v, grant %+v (%v)", id, who, *op, err)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := stored(t, rand.New(rand.NewPCG(seed, 1)).IntN)
			for range 80 {
				m.step()
			}
		})
	}
}

// FuzzMachine chooses the operations from the input.
func FuzzMachine(f *testing.F) {
	f.Add([]byte("pair, approve, rotate, revoke, reconnect, replay"))
	f.Add([]byte{0, 0, 0, 0, 0, 6, 0, 6, 30, 4, 0, 0, 0, 8, 0, 7, 0, 0, 9, 9, 9, 9})
	f.Fuzz(func(t *testing.T, choices []byte) {
		at := 0
		m := newMachine(t, func(n int) int {
			at++
			if at > len(choices) {
				return 0
			}
			return int(choices[at-1]) % n
		}, (&memory{devices: map[string]pairing.Device{}, requests: map[string]pairing.Request{}}).update)
		for at < len(choices) && at < 400 {
			m.step()
		}
	})
}
