package canvas

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Grant is a capability.
type Grant struct {
	Session chela.SessionKey
	Done    <-chan struct{} // closed when it has ended

	key      [sha256.Size]byte
	conn     string // "": a link
	address  string // of a link
	lifetime time.Duration
	expires  time.Time
	limit    time.Time // zero: that of its connection
	done     chan struct{}
}

// grantLocked makes a capability.
func (h *Host) grantLocked(g *Grant) (secret string) {
	secret, now := secretOf(), time.Now()
	g.key, g.expires, g.done = sha256.Sum256([]byte(secret)), now.Add(g.lifetime), make(chan struct{})
	g.Done = g.done
	own := 0
	for _, o := range h.grants {
		if o.ended(now) {
			h.endLocked(o)
		} else if o.conn == g.conn && g.conn != "" {
			own++
		}
	}
	for ; own >= maxPerConn; own-- {
		h.endLocked(h.oldestLocked(func(o *Grant) bool { return o.conn == g.conn }))
	}
	for len(h.grants) >= maxGrants {
		h.endLocked(h.oldestLocked(func(*Grant) bool { return true }))
	}
	h.grants[g.key] = g
	return secret
}

// oldestLocked returns the capability of those that are of a kind that was unused for longest.
func (h *Host) oldestLocked(of func(*Grant) bool) (oldest *Grant) {
	for _, o := range h.grants {
		if of(o) && (oldest == nil || o.expires.Before(oldest.expires)) {
			oldest = o
		}
	}
	return oldest
}

func (g *Grant) ended(now time.Time) bool {
	return !now.Before(g.expires) || !g.limit.IsZero() && !now.Before(g.limit)
}

func (h *Host) endLocked(g *Grant) {
	if h.grants[g.key] == g {
		delete(h.grants, g.key)
		close(g.done)
	}
}

// Find returns the capability with a secret, and counts as a use of it. Secrets are looked up
// by their hash, so the time that this takes says nothing about them.
func (h *Host) Find(secret string) (*Grant, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.grants[sha256.Sum256([]byte(secret))]
	return g, g != nil && h.useLocked(g)
}

// Use counts as a use of a capability. It reports false if it has ended.
func (h *Host) Use(g *Grant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.useLocked(g)
}

func (h *Host) useLocked(g *Grant) bool {
	now := time.Now()
	if h.grants[g.key] != g {
		return false
	}
	if g.ended(now) {
		h.endLocked(g)
		return false
	}
	g.expires = now.Add(g.lifetime)
	return true
}

// Open makes the capability of a new connection, and returns its address; "": there is no
// canvas. url is how the client reached the gateway.
func (h *Host) Open(conn, device, url string) string {
	if !h.On() || url == "" {
		return ""
	}
	h.mu.Lock()
	h.bases[conn] = base{url, device}
	h.mu.Unlock()
	address, _, _ := h.Renew(conn, chela.MainSession(chela.DefaultAgent))
	return address
}

// Close ends the capabilities of a connection.
func (h *Host) Close(conn string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.bases, conn)
	for _, g := range h.grants {
		if g.conn == conn {
			h.endLocked(g)
		}
	}
}

// Renew makes a capability of a connection for the canvas of a session, and returns its
// address and its end. ok is false if the connection has none.
func (h *Host) Renew(conn string, key chela.SessionKey) (address string, expires time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.bases[conn]
	if !ok || !h.On() {
		return "", time.Time{}, false
	}
	g := &Grant{Session: key, conn: conn, lifetime: connLifetime}
	return addressOf(b.url, h.grantLocked(g)), g.expires, true
}

// Link implements [canvas.Host].
func (h *Host) Link(key chela.SessionKey) (string, time.Time) {
	to := h.o.URL()
	if to == "" || !h.On() {
		return "", time.Time{}
	}
	v := h.View(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.grants { // a session has one link
		if g.conn == "" && g.Session == key && strings.HasPrefix(g.address, to) && h.useLocked(g) {
			return g.address + v.Path(), g.expires
		}
	}
	g := &Grant{Session: key, lifetime: linkLifetime, limit: time.Now().Add(linkLimit)}
	g.address = addressOf(to, h.grantLocked(g))
	return g.address + v.Path(), g.expires
}

func addressOf(base, secret string) string {
	return strings.TrimSuffix(base, "/") + strings.TrimSuffix(canvas.CapabilityPath, "/") + "/" + secret
}

// Params returns the parameters of a canvas command of a node. A page of the canvas becomes an
// address that the node can open.
func (h *Host) Params(device, command string, key chela.SessionKey, raw json.RawMessage) (json.RawMessage, error) {
	if command != "canvas.present" && command != "canvas.navigate" {
		return raw, nil
	}
	var p map[string]json.RawMessage
	if json.Unmarshal(raw, &p) != nil || p["url"] == nil {
		return raw, nil
	}
	var target string
	if err := json.Unmarshal(p["url"], &target); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%s: url is not a text", command)
	}
	page, external, ok := canvas.PageOf(target)
	switch {
	case !ok:
		return nil, chela.Errorf(chela.CodeInvalid, "%s: %.200q is neither a page of the canvas nor an http or https address",
			command, target)
	case external:
		return raw, nil
	}
	address, err := h.addressFor(device, key)
	if err != nil {
		return nil, err
	}
	if page == "" {
		page = "index.html"
	}
	u := url.URL{Path: canvas.PagesPath + page}
	if p["url"], err = json.Marshal(address + u.EscapedPath()); err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// addressFor returns the address of a new capability of a connection of a device.
func (h *Host) addressFor(device string, key chela.SessionKey) (string, error) {
	if !h.On() {
		return "", &chela.Error{Code: chela.CodeUnavailable, Message: "the canvas is off, so its pages cannot be shown",
			Hint: "chela config set canvasHost.enabled true"}
	}
	if key == "" {
		key = chela.MainSession(chela.DefaultAgent)
	}
	h.mu.Lock()
	conn := ""
	for c, b := range h.bases {
		if b.device == device && device != "" {
			conn = c
		}
	}
	h.mu.Unlock()
	if address, _, ok := h.Renew(conn, key); ok {
		return address, nil
	}
	return "", fmt.Errorf("canvas: the address at which the node reaches the gateway is not known")
}
