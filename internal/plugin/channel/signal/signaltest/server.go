package signaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// Person is somebody on Signal.
type Person struct {
	UUID, Number, Name, Username string

	// Outcome is the result of sending to the person; "": SUCCESS.
	Outcome    string
	RetryAfter int    // seconds, of RATE_LIMIT_FAILURE
	Token      string // of a challenge
}

// Group is a group. The account is a member unless it is closed.
type Group struct {
	ID, Name string
	Members  []string // UUIDs
	Closed   bool
}

// Message is a message of the account as people see it.
type Message struct {
	Time     int64 // of the first version
	Chat     string
	Text     string
	Styles   []string
	Files    []File
	Quote    Quote
	Versions []int64 // times of the versions, first one first
	Gone     bool
}

// File is an attachment.
type File struct {
	Type, Name string
	Data       []byte
}

// Quote is what a message refers to.
type Quote struct {
	Time         int64
	Author, Text string
}

// Reaction is a reaction of the account.
type Reaction struct {
	Chat, Author, Emoji string
	Time                int64
	Removed             bool
}

// Fault makes a request fail.
type Fault struct {
	Method     string // of JSON-RPC, or "events" or "check"; "": any
	Status     int    // of HTTP; 0: 200
	RetryAfter time.Duration
	Code       int    // of an error of JSON-RPC; 0: none
	Message    string // of it
	Accept     bool   // the request has its effect before it fails
	Cut        bool   // the connection ends instead of an answer
	Body       string // instead of the answer
}

// Server is a daemon. Its methods are safe for concurrent use. The exported fields must not
// be changed while it serves.
type Server struct {
	Account, UUID string // of the account
	// Multi says that the daemon was started without an account, and so serves all of them.
	Multi bool

	mu        sync.Mutex
	people    map[string]*Person
	groups    map[string]*Group
	messages  []*Message
	reactions []Reaction
	files     map[string][]byte
	typing    []string
	receipts  []string
	now       int64
	faults    []Fault
	requests  []string
	problems  []string
	queue     []*item
	streams   int // open ones
	opened    int // all
	lost      int // events that no client received
	half      bool
	hang      bool
	cut       chan struct{} // closed to end the streams
	changed   chan struct{} // closed at the next change
	stopped   chan struct{}
}

// item is an event that has not been sent.
type item struct {
	data string
	done chan struct{} // closed when the client has read what follows the event
}

// New returns a daemon for the account +491700000000.
func New() *Server {
	return &Server{
		Account: "+491700000000",
		UUID:    "99999999-9999-4999-8999-999999999999",
		people:  map[string]*Person{},
		groups:  map[string]*Group{},
		files:   map[string][]byte{},
		cut:     make(chan struct{}),
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

// Add adds a person.
func (s *Server) Add(p Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[p.UUID] = &p
}

// AddGroup adds a group.
func (s *Server) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups[g.ID] = &g
}

// AddFile adds an attachment that the daemon has downloaded.
func (s *Server) AddFile(id string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id] = data
}

// Fail makes the next requests that fit fail, each once.
func (s *Server) Fail(f ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f...)
}

// Object is an object of JSON.
type Object = map[string]any

// Envelope returns an envelope of a person with one more member.
func (s *Server) Envelope(from string, time int64, member string, content any) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Object{
		"source":                   from,
		"sourceNumber":             nil,
		"sourceUuid":               nil,
		"sourceName":               nil,
		"sourceDevice":             1,
		"timestamp":                time,
		"serverReceivedTimestamp":  time + 1,
		"serverDeliveredTimestamp": time + 2,
		member:                     content,
	}
	if p := s.people[from]; p != nil {
		e["source"], e["sourceUuid"], e["sourceName"] = p.UUID, p.UUID, p.Name
		if p.Number != "" {
			e["source"], e["sourceNumber"] = p.Number, p.Number
		}
	} else {
		e["sourceNumber"] = from
	}
	return e
}

// Now returns a time for a message, each once.
func (s *Server) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nowLocked()
}

func (s *Server) nowLocked() int64 {
	s.now = max(s.now+1, time.Now().UnixMilli())
	return s.now
}

// Say makes a person send a message, to a group or to the account if group is empty. The
// members are added to the message. It returns the time of the message.
func (s *Server) Say(from, group, text string, members Object) int64 {
	at, _ := s.say(from, group, text, members)
	return at
}

// SayAndWait is like Say with a message to a group, and returns when the client has taken
// the event and reads on.
func (s *Server) SayAndWait(ctx context.Context, from, group, text string) error {
	_, it := s.say(from, group, text, nil)
	select {
	case <-it.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) say(from, group, text string, members Object) (int64, *item) {
	at := s.Now()
	return at, s.send(s.Account, s.Envelope(from, at, "dataMessage", s.Data(at, group, text, members)))
}

// Data returns a message.
func (s *Server) Data(at int64, group, text string, members Object) Object {
	d := Object{"timestamp": at, "message": text, "expiresInSeconds": 0, "isExpirationUpdate": false, "viewOnce": false}
	if text == "" {
		d["message"] = nil
	}
	if group != "" {
		s.mu.Lock()
		g := s.groups[group]
		s.mu.Unlock()
		d["groupInfo"] = Object{"groupId": group, "groupName": g.Name, "revision": 3, "type": "DELIVER"}
	}
	for k, v := range members {
		d[k] = v
	}
	return d
}

// Send sends the event of an envelope.
func (s *Server) Send(envelope Object) { s.send(s.Account, envelope) }

// SendAs sends an event of another account.
func (s *Server) SendAs(account string, envelope Object) { s.send(account, envelope) }

func (s *Server) send(account string, envelope Object) *item {
	data, err := json.Marshal(Object{"account": account, "envelope": envelope})
	if err != nil {
		panic(err)
	}
	return s.raw(string(data))
}

// Raw sends an event with any data.
func (s *Server) Raw(data string) { s.raw(data) }

func (s *Server) raw(data string) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := &item{data: data, done: make(chan struct{})}
	s.queue = append(s.queue, it)
	s.notifyLocked()
	return it
}

func (s *Server) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Cut ends the open streams.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Half makes the stream end within the next event, which is lost.
func (s *Server) Half() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.half = true
}

// Hang says whether the streams stay open without anything in them.
func (s *Server) Hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = on
	s.notifyLocked()
}

// Streams returns how many streams are open, and how many were opened.
func (s *Server) Streams() (open, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams, s.opened
}

// Lost returns the number of events that no client received.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Messages returns the messages of the account in a chat, also those that were deleted.
func (s *Server) Messages(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.Chat == chat {
			out = append(out, *m)
		}
	}
	return out
}

// Shown returns the texts of the account that people see in a chat.
func (s *Server) Shown(chat string) []string {
	var out []string
	for _, m := range s.Messages(chat) {
		if !m.Gone {
			out = append(out, m.Text)
		}
	}
	return out
}

// Reactions returns all reactions of the account.
func (s *Server) Reactions() []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reactions)
}

// Receipts returns the read receipts, as "<author> <time>".
func (s *Server) Receipts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receipts)
}

// Typing returns the chats in which the account has typed.
func (s *Server) Typing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.typing)
}

// Requests returns the methods that were called.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Problems returns what was wrong with requests in ways that the daemon itself would ignore.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// stream serves events. As with --receive-mode=on-connection, events wait until there is a
// stream.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if s.Multi && r.URL.Query().Get("account") != s.Account {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.streams++
	s.opened++
	cut := s.cut
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams--
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	c := http.NewResponseController(w)
	_ = c.Flush()
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		s.mu.Lock()
		changed, hang, half := s.changed, s.hang, s.half
		var it *item
		if len(s.queue) > 0 && !hang {
			it, s.queue, s.half = s.queue[0], s.queue[1:], false
		}
		s.mu.Unlock()
		if it != nil {
			s.deliver(w, c, it, half)
			continue
		}
		select {
		case <-tick.C:
			if !hang {
				fmt.Fprint(w, ":\n")
				_ = c.Flush()
			}
		case <-changed:
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		}
	}
}

// deliver writes an event and a comment after it. The client reads the comment after it has
// processed the event.
func (s *Server) deliver(w http.ResponseWriter, c *http.ResponseController, it *item, half bool) {
	defer close(it.done)
	event := "event:receive\ndata:" + it.data + "\n\n"
	if half {
		fmt.Fprint(w, event[:len(event)/2])
		_ = c.Flush()
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, event)
	if c.Flush() != nil {
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
		return
	}
	fmt.Fprint(w, ":\n")
	_ = c.Flush()
}
