package matrixtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// Event is an event of a room.
type Event struct {
	Type     string         `json:"type"`
	ID       string         `json:"event_id"`
	Sender   string         `json:"sender"`
	State    *string        `json:"state_key,omitempty"`
	Time     int64          `json:"origin_server_ts"`
	Content  map[string]any `json:"content"`
	Unsigned map[string]any `json:"unsigned,omitempty"`
	room     string
	txn      string
}

// Fault makes a request fail.
type Fault struct {
	Path       string // a part of the path; empty: any
	Method     string // empty: any
	Status     int    // 0: it does not fail
	Code       string
	RetryAfter time.Duration
	Accept     bool // the request has its effect before it fails
	Cut        bool // the connection ends instead of an answer
}

// Room is a room.
type Room struct {
	ID      string
	Name    string
	Alias   string
	Members []string
	Crypt   bool
}

// Server is a homeserver with one bot. Its methods are safe for concurrent use.
type Server struct {
	Bot, Display, Password string

	// OldMedia says that the server knows only the endpoints for media without
	// authentication.
	OldMedia bool
	// MaxUpload is the size of the largest file; 0: 1 MB.
	MaxUpload int

	mu       sync.Mutex
	token    string // the valid access token
	logins   int
	rooms    map[string]*Room
	names    map[string]string
	events   []Event
	invites  map[string]string // room, inviter
	fresh    map[string]string // invites that /sync has not shown yet
	direct   map[string]any
	txns     map[string]string
	media    map[string][]byte
	kinds    map[string]string
	faults   []Fault
	requests []string
	bodies   []map[string]any // of the messages of the bot
	synced   int              // events before the token of the last request of /sync; -1: none
	changed  chan struct{}    // closed at the next change
	stopped  chan struct{}
}

// New returns a homeserver with a bot whose access token is "secret-token".
func New() *Server {
	return &Server{
		Bot:      "@bot:example.org",
		Display:  "Chela",
		Password: "secret-password",
		token:    "secret-token",
		rooms:    map[string]*Room{},
		names:    map[string]string{},
		invites:  map[string]string{},
		fresh:    map[string]string{},
		direct:   map[string]any{},
		txns:     map[string]string{},
		media:    map[string][]byte{},
		kinds:    map[string]string{},
		synced:   -1,

		changed: make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

// Listen serves in memory until the test ends, and returns a client for it.
func (s *Server) Listen(t testing.TB) *http.Client {
	_, hc, stop := llmtest.ServePipe(&http.Server{Handler: s, ReadHeaderTimeout: time.Minute})
	t.Cleanup(func() {
		close(s.stopped)
		stop()
	})
	return hc
}

// ListenLoopback serves on a socket until the test ends, and returns its URL.
func (s *Server) ListenLoopback(t testing.TB) string {
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.stopped)
		server.Close()
	})
	return server.URL
}

// notifyLocked wakes those who wait for a change.
func (s *Server) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Add adds a room. The bot is a member unless it is invited.
func (s *Server) Add(r Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms[r.ID] = &r
}

// Name gives a person a display name.
func (s *Server) Name(user, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[user] = name
}

// Invite invites the bot to a room.
func (s *Server) Invite(room, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invites[room], s.fresh[room] = from, from
	s.notifyLocked()
}

// Say makes a person send an event to a room, and returns its id.
func (s *Server) Say(room, sender, kind string, content map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addLocked(Event{Type: kind, Sender: sender, Content: content, room: room})
}

// Text makes a person send a text.
func (s *Server) Text(room, sender, text string) string {
	return s.Say(room, sender, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

// Member changes the membership of a person.
func (s *Server) Member(room, user, membership, before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	r.Members = slices.DeleteFunc(r.Members, func(m string) bool { return m == user })
	if membership == "join" {
		r.Members = append(r.Members, user)
	}
	s.addLocked(Event{
		Type: "m.room.member", Sender: user, State: &user, room: room, Content: map[string]any{"membership": membership},
		Unsigned: map[string]any{"prev_content": map[string]any{"membership": before}},
	})
}

func (s *Server) addLocked(e Event) string {
	e.ID = fmt.Sprintf("$e%d", len(s.events)+1)
	e.Time = time.Now().UnixMilli()
	s.events = append(s.events, e)
	s.notifyLocked()
	return e.ID
}

// Again makes the server deliver an event again, as if it were new.
func (s *Server) Again(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.ID == id {
			s.events = append(s.events, e)
			s.notifyLocked()
			return
		}
	}
}

// Redact deletes an event as a moderator does.
func (s *Server) Redact(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redactLocked(id)
}

func (s *Server) redactLocked(id string) bool {
	for i := range s.events {
		if e := &s.events[i]; e.ID == id && e.State == nil {
			e.Content, e.Unsigned = map[string]any{}, map[string]any{"redacted_because": map[string]any{}}
			return true
		}
	}
	return false
}

// Fail makes the next requests that match fail, one for each fault.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Revoke makes the access token invalid. With a token, that one becomes valid.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
	s.notifyLocked()
}

// Logins returns how often the bot has logged in.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// Media stores a file and returns its address.
func (s *Server) Media(kind string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mediaLocked(kind, data)
}

func (s *Server) mediaLocked(kind string, data []byte) string {
	id := fmt.Sprintf("m%d", len(s.media)+1)
	s.media[id], s.kinds[id] = data, kind
	return "mxc://example.org/" + id
}

// Waiting waits until the client asks for news after all events: it has stored its token.
func (s *Server) Waiting(ctx context.Context) error {
	for {
		s.mu.Lock()
		done, changed := s.synced >= len(s.events), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Shown returns the texts that people see of the bot in a room or in a thread of it, oldest
// first.
func (s *Server) Shown(room, thread string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		if e.room != room || e.Sender != s.Bot || e.Type != "m.room.message" || len(e.Content) == 0 {
			continue
		}
		rel, _ := e.Content["m.relates_to"].(map[string]any)
		if rel["rel_type"] == "m.replace" {
			continue
		}
		if in, _ := rel["event_id"].(string); in != thread {
			continue
		}
		text, _ := e.Content["body"].(string)
		for _, edit := range s.events {
			rel, _ := edit.Content["m.relates_to"].(map[string]any)
			if rel["rel_type"] == "m.replace" && rel["event_id"] == e.ID && edit.Sender == e.Sender {
				text, _ = edit.Content["m.new_content"].(map[string]any)["body"].(string)
			}
		}
		out = append(out, text)
	}
	return out
}

// Sent returns the contents of the messages that the bot sent, in the order of their
// arrival, without repetitions.
func (s *Server) Sent() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Reactions returns the emoji with which the bot reacted to an event.
func (s *Server) Reactions(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		rel, _ := e.Content["m.relates_to"].(map[string]any)
		if e.Type == "m.reaction" && e.Sender == s.Bot && rel["event_id"] == id {
			out = append(out, fmt.Sprint(rel["key"]))
		}
	}
	return out
}

// Requests returns the requests whose path contains part, as "METHOD path".
func (s *Server) Requests(part string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		if strings.Contains(r, part) {
			out = append(out, r)
		}
	}
	return out
}

// Joined reports whether the bot is in a room.
func (s *Server) Joined(room string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inLocked(room)
}

func (s *Server) inLocked(room string) bool {
	r := s.rooms[room]
	return r != nil && slices.Contains(r.Members, s.Bot)
}

// Rooms returns the ids of all rooms.
func (s *Server) Rooms() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.rooms))
}

// reply writes an answer.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuse writes an error.
func refuse(w http.ResponseWriter, status int, code, text string) {
	reply(w, status, map[string]any{"errcode": code, "error": text})
}
