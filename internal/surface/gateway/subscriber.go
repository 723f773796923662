package gateway

import (
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/wire"
)

// subscriber holds what decides which events a connection receives. It outlives
// the connection for a while; see replayLog.
type subscriber struct {
	id        string // of the connection
	resumedID string // of the resumed connection: the client may not have read its new hello

	// Set by the handshake and then constant.
	who       chela.Principal
	grant     access.Grant
	proto     int // protocol version
	role      string
	caps      []string
	resumable bool // events carry a cursor

	mu       sync.Mutex
	all      bool                      // subscribed to all sessions
	sessions map[chela.SessionKey]bool // subscribed to
	runs     map[chela.RunID]bool      // that it started and that have not ended
}

// watches reports whether the subscriber subscribed to the session.
func (v *subscriber) watches(key chela.SessionKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all || v.sessions[key]
}

// watchesAll reports whether the subscriber subscribed to all sessions.
func (v *subscriber) watchesAll() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all
}

// subscribe starts or ends the subscription to a session; the empty key stands
// for all.
func (v *subscriber) subscribe(key chela.SessionKey, on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case key == "":
		v.all = on
	case !on:
		delete(v.sessions, key)
	case v.sessions == nil:
		v.sessions = map[chela.SessionKey]bool{key: true}
	default:
		v.sessions[key] = true
	}
}

// ownsRun reports whether the subscriber started the run and wants its tool
// events.
func (v *subscriber) ownsRun(id chela.RunID) bool {
	if !slices.Contains(v.caps, wire.CapToolEvents) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runs[id]
}

func (v *subscriber) trackRun(id chela.RunID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.runs == nil {
		v.runs = map[chela.RunID]bool{}
	}
	v.runs[id] = true
}

func (v *subscriber) forgetRun(id chela.RunID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.runs, id)
}

// restore takes over the subscriptions of an earlier connection.
func (v *subscriber) restore(old *subscriber) {
	old.mu.Lock()
	defer old.mu.Unlock()
	v.all, v.sessions, v.runs = old.all, old.sessions, old.runs
	old.sessions, old.runs = nil, nil
}

// hasID reports whether id identifies this subscriber.
func (v *subscriber) hasID(id string) bool { return v.id == id || v.resumedID == id && id != "" }

// sameIdentity reports whether both have the same identity, rights and
// capabilities.
func (v *subscriber) sameIdentity(old *subscriber) bool {
	return v.who.ID == old.who.ID && v.who.Credential == old.who.Credential && v.role == old.role &&
		slices.Equal(v.who.Scopes, old.who.Scopes) && slices.Equal(v.caps, old.caps)
}
