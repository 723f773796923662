// Package telegramtest is the Bot API of Telegram in memory, for tests. It refuses what
// Telegram refuses, shows what people see in a chat, and fails on demand. A [Server] works
// in a bubble of testing/synctest.
package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// Token is the token of the bot.
const Token = "424242:AAtestTokenOfTheBot_0123456789-abcdefg"

// The bot.
const (
	BotID   = 424242
	BotName = "chela_bot"
)

// Object is a JSON object.
type Object = map[string]any

// Fault is how a call fails. The zero Fault is no failure.
type Fault struct {
	Status      int    // of the answer, with Description
	Description string // "": a usual one
	RetryAfter  int    // seconds, with Status 429
	NewChat     int64  // migrate_to_chat_id
	Accept      bool   // the call has its effect before it fails
	Cut         bool   // the connection is closed instead of an answer
	Body        string // this is the answer, with Status; "": JSON of the other fields
	Hang        bool   // no answer until the client gives up
	Location    string // of a redirect
}

// Call is a call that the server received.
type Call struct {
	Method string
	Params Object
	Files  map[string][]byte // uploaded, by parameter
	Time   time.Time
	Code   int // of the answer; 0: none was sent
}

// Server is the Bot API. Its chats are created by [Server.Chat].
type Server struct {
	mu       sync.Mutex
	updates  []queued
	nextID   int64
	lastID   int64 // of a message
	chats    map[int64]*chatState
	files    map[string]stored
	faults   map[string][]Fault
	calls    []Call
	hook     hook
	menu     []Object
	answered []string
	poll     chan struct{} // closed to end the current getUpdates
	changed  chan struct{} // closed and replaced when something changes
	closers  []func()
	closed   chan struct{}
	revoked  bool
}

type queued struct {
	id    int64
	raw   json.RawMessage
	fresh bool // with a lower id than one before it; not forgotten before it was delivered
	given bool // in an answer
}

type hook struct{ url, secret string }

type stored struct {
	path string
	data []byte
}

// New returns a server. Close ends it.
func New() *Server {
	return &Server{
		nextID: 1000, lastID: 100, chats: map[int64]*chatState{}, files: map[string]stored{}, faults: map[string][]Fault{},
		changed: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Pipe serves over memory, and returns the root of the API and a client.
func (s *Server) Pipe() (string, *http.Client) {
	url, hc, stop := llmtest.ServePipe(&http.Server{Handler: s})
	s.onClose(stop)
	return url, hc
}

// Listen serves on a loopback socket, and returns the root of the API and a client.
func (s *Server) Listen() (string, *http.Client) {
	hs := httptest.NewServer(s)
	s.onClose(hs.Close)
	return hs.URL, hs.Client()
}

func (s *Server) onClose(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Close ends the server.
func (s *Server) Close() {
	s.mu.Lock()
	closers := s.closers
	s.closers = nil
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	for _, f := range closers {
		f()
	}
}

// Fail makes the next calls of a method fail, one fault each.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Revoke makes the token invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
	s.signalLocked()
}

// Calls returns the calls of a method; of all for "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// Answered returns the ids of the callback queries that were answered.
func (s *Server) Answered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.answered...)
}

// Menu returns the commands of the bot.
func (s *Server) Menu() []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.menu
}

// Webhook returns the URL and the secret of the webhook.
func (s *Server) Webhook() (url, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hook.url, s.hook.secret
}

// SetWebhook sets the webhook as another program would.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook{url: url}
}

// AddFile stores a file, and returns its id.
func (s *Server) AddFile(path string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("file-%d", len(s.files)+1)
	s.files[id] = stored{path, data}
	return id
}

// Push adds an update and returns its id. The member update_id is added.
func (s *Server) Push(update Object) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	return s.pushLocked(s.nextID, update)
}

// PushID adds an update with an id, which may be one that was there before.
func (s *Server) PushID(id int64, update Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := id <= s.nextID
	s.nextID = max(s.nextID, id)
	s.pushLocked(id, update)
	s.updates[len(s.updates)-1].fresh = fresh
}

func (s *Server) pushLocked(id int64, update Object) int64 {
	own := Object{"update_id": id}
	for k, v := range update {
		own[k] = v
	}
	raw, err := json.Marshal(own)
	if err != nil {
		panic(err)
	}
	s.updates = append(s.updates, queued{id: id, raw: raw})
	s.signalLocked()
	return id
}

// Waiting returns the number of updates that are not confirmed.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

// Await waits until f, which is called when something changes, returns true.
func (s *Server) Await(ctx context.Context, f func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if f() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Confirmed waits until the updates that were pushed are confirmed.
func (s *Server) Confirmed(ctx context.Context) error {
	return s.Await(ctx, func() bool { return s.Waiting() == 0 })
}

func (s *Server) signalLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// refused is an answer that says why a call failed.
type refused struct {
	code       int
	text       string
	retryAfter int
	newChat    int64
}

func (r *refused) Error() string { return r.text }

func badRequest(format string, a ...any) *refused {
	return &refused{code: http.StatusBadRequest, text: "Bad Request: " + fmt.Sprintf(format, a...)}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isFile := strings.CutPrefix(r.URL.Path, "/file")
	rest, ok := strings.CutPrefix(path, "/bot")
	token, method, found := strings.Cut(rest, "/")
	switch {
	case !ok || !found || !strings.Contains(token, ":"):
		answer(w, nil, &refused{code: http.StatusNotFound, text: "Not Found"})
	case token != Token || s.isRevoked():
		answer(w, nil, &refused{code: http.StatusUnauthorized, text: "Unauthorized"})
	case isFile:
		s.serveFile(w, method)
	default:
		s.serveMethod(w, r, method)
	}
}

func (s *Server) isRevoked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

func (s *Server) serveFile(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.path == path {
			_, _ = w.Write(f.data)
			return
		}
	}
	answer(w, nil, &refused{code: http.StatusNotFound, text: "Not Found"})
}

// answer writes the answer to a call.
func answer(w http.ResponseWriter, result any, r *refused) {
	w.Header().Set("Content-Type", "application/json")
	out := Object{"ok": true, "result": result}
	if r != nil {
		out = Object{"ok": false, "error_code": r.code, "description": r.text}
		parameters := Object{}
		if r.retryAfter > 0 {
			parameters["retry_after"] = r.retryAfter
		}
		if r.newChat != 0 {
			parameters["migrate_to_chat_id"] = r.newChat
		}
		if len(parameters) > 0 {
			out["parameters"] = parameters
		}
		w.WriteHeader(r.code)
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, method string) {
	c, err := read(r, method)
	if err != nil {
		answer(w, nil, err)
		return
	}
	s.mu.Lock()
	var f Fault
	if list := s.faults[method]; len(list) > 0 {
		f, s.faults[method] = list[0], list[1:]
	}
	s.mu.Unlock()
	fails := f != Fault{}
	var result any
	if !fails || f.Accept {
		result, err = s.do(r.Context(), c)
	}
	if fails && err == nil {
		s.fail(w, r, c, f)
		return
	}
	if err != nil {
		c.Code = err.code
	} else {
		c.Code = http.StatusOK
	}
	s.note(c)
	answer(w, result, err)
}

// note records a call.
func (s *Server) note(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	s.signalLocked()
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, c Call, f Fault) {
	c.Code = f.Status
	s.note(c)
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		panic(http.ErrAbortHandler)
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Location != "":
		w.Header().Set("Location", f.Location)
		w.WriteHeader(f.Status)
	case f.Body != "":
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	default:
		text := f.Description
		if text == "" {
			text = http.StatusText(f.Status)
		}
		answer(w, nil, &refused{f.Status, text, f.RetryAfter, f.NewChat})
	}
}

// read reads the parameters of a call.
func read(r *http.Request, method string) (Call, *refused) {
	c := Call{Method: method, Params: Object{}, Files: map[string][]byte{}, Time: time.Now()}
	if r.Method != http.MethodPost {
		return c, badRequest("the tests use POST only")
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch kind {
	case "application/json":
		d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
		d.UseNumber()
		if err := d.Decode(&c.Params); err != nil {
			return c, badRequest("can't parse JSON object")
		}
	case "multipart/form-data":
		if err := r.ParseMultipartForm(64 << 20); err != nil {
			return c, badRequest("can't parse the form")
		}
		for name, values := range r.MultipartForm.Value {
			c.Params[name] = values[0]
			var v any
			d := json.NewDecoder(strings.NewReader(values[0]))
			d.UseNumber()
			if name != "caption" && name != "parse_mode" && d.Decode(&v) == nil {
				c.Params[name] = v
			}
		}
		for name, list := range r.MultipartForm.File {
			f, err := list[0].Open()
			if err != nil {
				return c, badRequest("can't read the file")
			}
			c.Files[name], _ = io.ReadAll(f)
			_ = f.Close()
		}
	default:
		return c, badRequest("unsupported content type %q", kind)
	}
	return c, nil
}

// number returns a parameter that is an integer.
func (c Call) number(name string) (int64, bool) {
	n, ok := c.Params[name].(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return i, err == nil
}

func (c Call) text(name string) string {
	s, _ := c.Params[name].(string)
	return s
}

// Post posts an update to a webhook, with the secret that was set.
func (s *Server) Post(h http.Handler, path string, update Object) *httptest.ResponseRecorder {
	_, secret := s.Webhook()
	s.mu.Lock()
	s.nextID++
	id := s.nextID
	s.mu.Unlock()
	own := Object{"update_id": id}
	for k, v := range update {
		own[k] = v
	}
	body, err := json.Marshal(own)
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
