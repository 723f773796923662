// Package canvas keeps what the canvases of sessions show, and the addresses at which screens
// may fetch it.
//
// Such an address has a secret in it, a capability, and needs no other credential: screens
// such as the view of a phone cannot send one. A capability belongs to a connection and ends
// with it, or to a link that a person was given. Both end some time after their last use. It
// lets its holder see the canvas of one session. It does not let anybody act.
package canvas

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits.
const (
	maxCanvases = 64   // of sessions; the one that was unchanged for longest is forgotten
	maxGrants   = 1024 // capabilities; the one that was unused for longest ends
	maxPerConn  = 16   // capabilities of one connection
	maxWatchers = 64   // screens that wait for changes
	maxProblems = 10   // of a canvas, until they are read
	maxProblem  = 300  // characters
)

// Lifetimes of capabilities after their last use.
const (
	connLifetime = 10 * time.Minute
	linkLifetime = time.Hour
	linkLimit    = 24 * time.Hour // whatever their use
)

// Options configures a Host. All fields are required.
type Options struct {
	Log       *slog.Logger
	Config    func() canvas.Config
	Workspace func(chela.AgentID) string
	Publish   func(chela.Event)
	URL       func() string // address of the port for people, such as http://127.0.0.1:18789; "": there is none
}

// Host implements [canvas.Host]. Use [New]. It is safe for concurrent use.
type Host struct {
	o Options

	mu       sync.Mutex
	canvases map[chela.SessionKey]*state
	grants   map[[sha256.Size]byte]*Grant
	bases    map[string]base // by connection
	watchers int
}

var _ canvas.Host = (*Host)(nil)

// base is how a connection reached the gateway.
type base struct{ url, device string }

// state is the canvas of a session.
type state struct {
	board    canvas.Board
	view     canvas.View
	problems []string
	changed  time.Time
	screens  map[*Screen]bool
}

// New returns a Host.
func New(o Options) *Host {
	return &Host{o: o, canvases: map[chela.SessionKey]*state{}, grants: map[[sha256.Size]byte]*Grant{},
		bases: map[string]base{}}
}

// On reports whether there is a canvas.
func (h *Host) On() bool { return h.o.Config().On() }

// Reloads reports whether pages are loaded again when their files change.
func (h *Host) Reloads() bool { return h.o.Config().Reloads() }

// of returns the canvas of a session. The caller holds the lock.
func (h *Host) ofLocked(key chela.SessionKey) *state {
	s := h.canvases[key]
	if s == nil {
		s = &state{screens: map[*Screen]bool{}}
		h.canvases[key] = s
	}
	s.changed = time.Now()
	for len(h.canvases) > maxCanvases {
		oldest := key
		for k, c := range h.canvases {
			if k != key && len(c.screens) == 0 && c.changed.Before(h.canvases[oldest].changed) {
				oldest = k
			}
		}
		if oldest == key {
			break // screens show all the others
		}
		delete(h.canvases, oldest)
	}
	return s
}

// showLocked changes what is shown.
func (h *Host) showLocked(key chela.SessionKey, kind canvas.Kind, page string) canvas.View {
	s := h.ofLocked(key)
	s.view = canvas.View{Kind: kind, Page: page, Version: s.view.Version + 1}
	return s.view
}

func (h *Host) publish(key chela.SessionKey, v canvas.View) {
	h.o.Publish(chela.Event{Session: key, Stream: chela.StreamCanvas, Time: time.Now(), Data: canvas.Changed{View: v}})
}

// View returns what the canvas of a session shows.
func (h *Host) View(key chela.SessionKey) canvas.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.canvases[key]; s != nil {
		return s.view
	}
	return canvas.View{}
}

// Show implements [canvas.Host].
func (h *Host) Show(_ context.Context, key chela.SessionKey, page string) (canvas.View, error) {
	kind := canvas.Page
	if page == "" {
		h.mu.Lock()
		s := h.canvases[key]
		pushed := s != nil && !s.board.Empty()
		h.mu.Unlock()
		if page = "index.html"; pushed {
			kind, page = canvas.Surfaces, ""
		}
	}
	if kind == canvas.Page {
		root, dir, err := h.Folder(key.Agent())
		if err == nil {
			name := page
			var info fs.FileInfo
			if info, err = root.Stat(filepath.FromSlash(name)); err == nil && info.IsDir() {
				page = strings.TrimSuffix(page, "/") + "/"
				info, err = root.Stat(filepath.FromSlash(name + "/index.html"))
			}
			if err == nil && !info.Mode().IsRegular() {
				err = errors.New("it is not a file")
			}
			root.Close()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return canvas.View{}, chela.Errorf(chela.CodeNotFound, "there is no page %s in %s; write it there first", page, dir)
		}
		if err != nil {
			return canvas.View{}, fmt.Errorf("canvas: %s: %w", page, err)
		}
	}
	h.mu.Lock()
	v := h.showLocked(key, kind, page)
	h.mu.Unlock()
	h.publish(key, v)
	return v, nil
}

// Hide implements [canvas.Host].
func (h *Host) Hide(key chela.SessionKey) {
	h.mu.Lock()
	s := h.canvases[key]
	if s == nil || s.view.Kind == canvas.Nothing {
		h.mu.Unlock()
		return
	}
	v := h.showLocked(key, canvas.Nothing, "")
	h.mu.Unlock()
	h.publish(key, v)
}

// Push implements [canvas.Host].
func (h *Host) Push(key chela.SessionKey, messages []canvas.Message) (canvas.Pushed, error) {
	h.mu.Lock()
	var board canvas.Board
	if s := h.canvases[key]; s != nil {
		board = s.board
	}
	next, err := board.With(messages)
	if err != nil {
		h.mu.Unlock()
		return canvas.Pushed{}, err
	}
	s := h.ofLocked(key)
	s.board = next
	for screen := range s.screens {
		screen.add(messages)
	}
	v, show := s.view, s.view.Kind != canvas.Surfaces
	if show {
		v = h.showLocked(key, canvas.Surfaces, "")
	}
	h.mu.Unlock()
	if show {
		h.publish(key, v)
	}
	return canvas.Pushed{Messages: len(messages), Surfaces: next.Surfaces(), Missing: next.Missing()}, nil
}

// Reset implements [canvas.Host].
func (h *Host) Reset(key chela.SessionKey) {
	h.mu.Lock()
	s := h.canvases[key]
	if s == nil {
		h.mu.Unlock()
		return
	}
	s.board, s.problems = canvas.Board{}, nil
	for screen := range s.screens {
		screen.renew()
	}
	v, hide := s.view, s.view.Kind == canvas.Surfaces
	if hide {
		v = h.showLocked(key, canvas.Nothing, "")
	}
	h.mu.Unlock()
	if hide {
		h.publish(key, v)
	}
}

// Forget removes the canvas of a session.
func (h *Host) Forget(key chela.SessionKey) {
	h.Reset(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.canvases[key]; s != nil && len(s.screens) == 0 {
		delete(h.canvases, key)
	}
	for _, g := range h.grants {
		if g.Session == key {
			h.endLocked(g)
		}
	}
}

// Offers reports whether the canvas of a session has a control that sends an action.
func (h *Host) Offers(key chela.SessionKey, surface, part, action string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.canvases[key]
	return s != nil && s.view.Kind == canvas.Surfaces && s.board.Offers(surface, part, action)
}

// Report records what went wrong on a screen, for the assistant.
func (h *Host) Report(key chela.SessionKey, problem string) {
	if r := []rune(problem); len(r) > maxProblem {
		problem = string(r[:maxProblem]) + "…"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.canvases[key]
	if s == nil || problem == "" || len(s.problems) >= maxProblems || slices.Contains(s.problems, problem) {
		return
	}
	s.problems = append(s.problems, problem)
}

// Problems implements [canvas.Host].
func (h *Host) Problems(key chela.SessionKey) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.canvases[key]
	if s == nil {
		return nil
	}
	out := s.problems
	s.problems = nil
	return out
}

// Folder opens the folder of the pages of an agent, which the caller closes, and returns its
// path. No link in a workspace leads out of the folder.
func (h *Host) Folder(id chela.AgentID) (*os.Root, string, error) {
	if dir := h.o.Config().Root; dir != "" {
		dir, err := expand(dir)
		if err != nil {
			return nil, dir, err
		}
		root, err := os.OpenRoot(dir)
		return root, dir, err
	}
	work := h.o.Workspace(id)
	dir := filepath.Join(work, canvas.Folder)
	outer, err := os.OpenRoot(work)
	if err != nil {
		return nil, dir, err
	}
	defer outer.Close()
	root, err := outer.OpenRoot(canvas.Folder)
	return root, dir, err
}

// expand returns the path of a folder of the configuration.
func expand(dir string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return dir, err
		}
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		return dir, fmt.Errorf("canvasHost.root: %s is not an absolute path", dir)
	}
	return filepath.Clean(dir), nil
}

// secretOf returns a new secret of a capability.
func secretOf() string { return rand.Text() + rand.Text() }
