package gateway

import (
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// viewer is what decides which events a connection gets. For a while it
// outlives the connection: see record.
type viewer struct {
	id    string // of the connection
	alias string // of the one that it went on with: the client may not have read its hello

	// Set by the handshake, and not changed after it.
	who   chela.Principal
	grant access.Grant
	proto int // protocol version
	role  string
	caps  []string
	marks bool // is told where events stand

	mu      sync.Mutex
	all     bool // watches all sessions
	watched map[chela.SessionKey]bool
	owned   map[chela.RunID]bool
}

// watches reports whether the viewer asked for events of the session.
func (v *viewer) watches(key chela.SessionKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all || v.watched[key]
}

// watchesAll reports whether the viewer asked for events of all sessions.
func (v *viewer) watchesAll() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all
}

// watch begins or ends events of a session; of all for the empty key.
func (v *viewer) watch(key chela.SessionKey, on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case key == "":
		v.all = on
	case !on:
		delete(v.watched, key)
	case v.watched == nil:
		v.watched = map[chela.SessionKey]bool{key: true}
	default:
		v.watched[key] = true
	}
}

// owns reports whether the viewer started the run and wants to see its tools.
func (v *viewer) owns(id chela.RunID) bool {
	if !slices.Contains(v.caps, wire.CapToolEvents) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.owned[id]
}

func (v *viewer) own(id chela.RunID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.owned == nil {
		v.owned = map[chela.RunID]bool{}
	}
	v.owned[id] = true
}

func (v *viewer) disown(id chela.RunID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.owned, id)
}

// inherit takes over what an earlier connection of the client asked for.
func (v *viewer) inherit(old *viewer) {
	old.mu.Lock()
	defer old.mu.Unlock()
	v.all, v.watched, v.owned = old.all, old.watched, old.owned
	old.watched, old.owned = nil, nil
}

// called reports whether a client means the viewer by the id of a connection.
func (v *viewer) called(id string) bool { return v.id == id || v.alias == id && id != "" }

// same reports whether both were let in as the same and with the same
// abilities, so that what one may see the other may.
func (v *viewer) same(old *viewer) bool {
	return v.who.ID == old.who.ID && v.who.Credential == old.who.Credential && v.role == old.role &&
		slices.Equal(v.who.Scopes, old.who.Scopes) && slices.Equal(v.caps, old.caps)
}
