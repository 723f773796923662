// Package httpchattest is a program that chats with the gateway by HTTP requests, for tests
// of package httpchat. It refuses what a careful program refuses.
package httpchattest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Fault is how a request fails.
type Fault struct {
	Status     int    // of the answer; 0: the connection is cut
	RetryAfter string // header
	Accept     bool   // the message was accepted before
}

// Message is a message as people see it.
type Message struct{ ID, Key, Chat, Text string }

// Server gets the answers of the gateway.
type Server struct {
	URL    string
	Secret secret.Value

	http     *http.Server
	listener net.Listener

	mu       sync.Mutex
	messages []*Message
	faults   []Fault
	problems []string
	calls    []string // operations
	last     string   // body of the last request
	id       int
	plain    bool // answers have no id
}

// New returns a server that is reached by connections in memory. Close ends it.
func New(key string) *Server {
	return start(key, llmtest.Pipe(), "http://chat.test/answers?token=in-the-url")
}

// Listen returns a server on a socket of the loopback interface.
func Listen(ctx context.Context, key string) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return start(key, l, "http://"+l.Addr().String()+"/answers"), nil
}

func start(key string, l net.Listener, url string) *Server {
	s := &Server{URL: url, Secret: secret.New(key), listener: l}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.http.Serve(l) }() // until Close
	return s
}

// Close ends the server.
func (s *Server) Close() { _ = s.http.Close() }

// Client returns a client that reaches the server.
func (s *Server) Client() *http.Client {
	if l, ok := s.listener.(*llmtest.Listener); ok {
		return l.Client()
	}
	return &http.Client{Transport: &http.Transport{}}
}

// Fail makes the next requests fail.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Plain makes answers have no id.
func (s *Server) Plain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain = true
}

// Shown returns the texts in a chat, oldest first.
func (s *Server) Shown(chat string) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.Chat == chat {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// Problems returns what a careful program refuses.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.problems...)
}

// Calls returns the operations that arrived, and Last the body of the last one.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Last returns the body of the last request.
func (s *Server) Last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

type operation struct {
	Op   string `json:"op"`
	Key  string `json:"key"`
	Chat struct {
		ID   string         `json:"id"`
		Kind chela.PeerKind `json:"kind"`
	} `json:"chat"`
	ID    string `json:"id"`
	Text  string `json:"text"`
	Emoji string `json:"emoji"`
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.file(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = string(body)
	signed, err := signature.Parse(r.Header, time.Now())
	var o operation
	switch {
	case err != nil || !signed.Valid(s.Secret, body):
		s.refuseLocked(w, http.StatusUnauthorized, "the signature is wrong")
		return
	case json.Unmarshal(body, &o) != nil || o.Chat.ID == "" || o.Chat.Kind == "":
		s.refuseLocked(w, http.StatusBadRequest, "wrong body")
		return
	case r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Idempotency-Key") != o.Key ||
		(o.Op == "send") != (o.Key != ""):
		s.refuseLocked(w, http.StatusBadRequest, "wrong headers")
		return
	}
	s.calls = append(s.calls, o.Op)
	var fault *Fault
	if len(s.faults) > 0 {
		fault, s.faults = &s.faults[0], s.faults[1:]
	}
	status, result := http.StatusOK, map[string]any{}
	if fault == nil || fault.Accept {
		status, result = s.doLocked(o)
	}
	if fault != nil {
		if fault.Status == 0 {
			panic(http.ErrAbortHandler)
		}
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		status = fault.Status
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result)
}

func (s *Server) refuseLocked(w http.ResponseWriter, status int, why string) {
	s.problems = append(s.problems, why)
	http.Error(w, why, status)
}

// doLocked executes an operation.
func (s *Server) doLocked(o operation) (int, map[string]any) {
	find := func(match func(*Message) bool) *Message {
		for _, m := range s.messages {
			if m.Chat == o.Chat.ID && match(m) {
				return m
			}
		}
		return nil
	}
	if o.Op == "typing" {
		return http.StatusNoContent, nil
	}
	if o.Op == "send" {
		m := find(func(m *Message) bool { return m.Key == o.Key })
		if m == nil {
			s.id++
			m = &Message{ID: fmt.Sprint("m", s.id), Key: o.Key, Chat: o.Chat.ID, Text: o.Text}
			if s.plain {
				m.ID = o.Key
			}
			s.messages = append(s.messages, m)
		}
		if s.plain {
			return http.StatusNoContent, nil
		}
		return http.StatusOK, map[string]any{"id": m.ID}
	}
	m := find(func(m *Message) bool { return m.ID == o.ID })
	switch {
	case m == nil:
		return http.StatusNotFound, map[string]any{"error": "no such message"}
	case o.Op == "edit":
		m.Text = o.Text
	case o.Op == "delete":
		for i := range s.messages {
			if s.messages[i] == m {
				s.messages = append(s.messages[:i], s.messages[i+1:]...)
				break
			}
		}
	case o.Op != "react":
		s.problems = append(s.problems, "unknown operation "+o.Op)
		return http.StatusBadRequest, nil
	}
	return http.StatusOK, map[string]any{}
}

// file answers requests for attachments.
func (*Server) file(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/missing"):
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/moved"):
		http.Redirect(w, r, "/file", http.StatusFound)
	default:
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "content")
	}
}

// Request returns a signed post of a message to a path.
func Request(key, path string, at time.Time, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gateway.test"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	signature.Set(r.Header, secret.New(key), at, []byte(body))
	return r
}

// Post posts a message to a handler until it is accepted, as a program does.
func Post(ctx context.Context, h http.Handler, key, path, body string) error {
	for ctx.Err() == nil {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, Request(key, path, time.Now(), body).WithContext(ctx))
		switch w.Code {
		case http.StatusOK:
			return nil
		case http.StatusServiceUnavailable:
			t := time.NewTimer(20 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
		default:
			return errors.New(w.Body.String())
		}
	}
	return ctx.Err()
}
