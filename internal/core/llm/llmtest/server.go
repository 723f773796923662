package llmtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/wiretest"
)

// Wire is the wire format of a server.
type Wire string

// Wire formats.
const (
	Anthropic Wire = "anthropic-messages"
	OpenAI    Wire = "openai-completions"
	Responses Wire = "openai-responses"
	Gemini    Wire = "google-generative-ai"
	Ollama    Wire = "ollama" // lines of JSON instead of events
)

// contentType returns the type of the answers.
func (w Wire) contentType() string {
	if w == Ollama {
		return "application/x-ndjson"
	}
	return "text/event-stream; charset=utf-8"
}

// endsOnce reports whether only the last event of an answer says that it is complete.
func (w Wire) endsOnce() bool { return w == Responses || w == Gemini || w == Ollama }

// wholeCalls reports whether a call is one object, with its arguments.
func (w Wire) wholeCalls() bool { return w == Gemini || w == Ollama }

// ReceivedRequest is a request that a server received.
type ReceivedRequest struct {
	Path   string
	Header http.Header
	Body   []byte
	Err    error // why it was rejected
}

// Server is a scripted model service, as an http.Handler. Requests that the
// real service would reject, and requests after the last step, get status 400
// with a reason and fail the test. Server is safe for concurrent use.
type Server struct {
	// Key is the required API key; "" accepts any.
	Key string
	// Lenient: rejected requests do not fail the test.
	Lenient bool
	// Service determines the response format and rules; nil: the known service
	// at the requested host, if any.
	Service *wiretest.Service
	// Forget: Requests returns nothing. It saves memory in long tests.
	Forget bool
	// Cache computes the input tokens of steps without Usage, in the Anthropic format;
	// nil: nothing is cached.
	Cache *wiretest.PromptCache

	t      testing.TB // nil: outside of a test
	wire   Wire
	next   func(n int, r ReceivedRequest) (Step, bool)
	closed chan struct{} // closed by Close

	mu       sync.Mutex
	received []ReceivedRequest
	taken    int // consumed steps
	active   int
	opened   int
	closers  []func()
}

// NewServer returns a server that answers successive requests with the steps.
// It is closed at the end of the test; t may be nil.
func NewServer(t testing.TB, w Wire, steps ...Step) *Server {
	return newServer(t, w, func(n int, _ ReceivedRequest) (Step, bool) {
		if n >= len(steps) {
			return Step{}, false
		}
		return steps[n], true
	})
}

// ServerFunc returns a server that answers request n, from 0, with the step f
// returns.
func ServerFunc(t testing.TB, w Wire, f func(n int, r ReceivedRequest) Step) *Server {
	return newServer(t, w, func(n int, r ReceivedRequest) (Step, bool) { return f(n, r), true })
}

func newServer(t testing.TB, w Wire, next func(int, ReceivedRequest) (Step, bool)) *Server {
	s := &Server{t: t, wire: w, next: next, closed: make(chan struct{})}
	if t != nil {
		t.Cleanup(s.Close)
	}
	return s
}

// Listen serves on a loopback socket and returns its URL and a client.
func (s *Server) Listen() (url string, hc *http.Client) {
	hs := httptest.NewUnstartedServer(s)
	hs.Config.ConnState = s.count
	hs.Start()
	s.onClose(hs.Close)
	return hs.URL, hs.Client()
}

// Pipe serves over memory and returns its URL and a client. It works in a
// bubble of testing/synctest.
func (s *Server) Pipe() (url string, hc *http.Client) {
	url, hc, stop := ServePipe(&http.Server{Handler: s, ConnState: s.count})
	s.onClose(stop)
	return url, hc
}

func (s *Server) onClose(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Close ends hanging responses and stops the server.
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

// Requests returns the requests so far.
func (s *Server) Requests() []ReceivedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Connections returns the number of connections opened.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *Server) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opened++
	}
}

// Active returns the number of requests in progress.
func (s *Server) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 256<<20))
	if err != nil {
		return // the client disconnected
	}
	got := ReceivedRequest{Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Err: s.check(r, body)}
	s.mu.Lock()
	if !s.Forget {
		s.received = append(s.received, got)
	}
	s.active++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.active--
		s.mu.Unlock()
	}()
	if got.Err != nil {
		s.refuse(w, r, got.Err.Error())
		return
	}
	if s.Key != "" && !s.authorised(r) {
		s.fault(w, r, &Fault{Status: http.StatusUnauthorized, Message: "invalid key"})
		return
	}
	s.mu.Lock()
	n := s.taken
	s.taken++
	s.mu.Unlock()
	step, ok := s.next(n, got)
	if !ok {
		s.refuse(w, r, fmt.Sprintf("the script has no step %d", n))
		return
	}
	s.answer(w, r, body, &step)
}

// check returns why a request is invalid.
func (s *Server) check(r *http.Request, body []byte) error {
	path := map[Wire]string{
		Anthropic: "/v1/messages",
		OpenAI:    "/chat/completions",
		Responses: "/responses",
		Gemini:    ":streamGenerateContent",
		Ollama:    "/api/chat",
	}[s.wire]
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path) {
		return fmt.Errorf("%s %s: want POST …%s", r.Method, r.URL.Path, path)
	}
	if t := r.Header.Get("Content-Type"); t != "application/json" {
		return fmt.Errorf("content type %q", t)
	}
	if s.wire == Anthropic && r.Header.Get("Anthropic-Version") == "" {
		return fmt.Errorf("no anthropic-version")
	}
	if s.wire == Gemini && r.URL.RawQuery != "alt=sse" {
		return fmt.Errorf("query %q: without alt=sse, it answers with a list", r.URL.RawQuery)
	}
	return s.valid(r, body)
}

// valid returns why the service would reject the body.
func (s *Server) valid(r *http.Request, body []byte) error {
	at := s.service(r)
	switch {
	case s.wire == Anthropic && r.Host == "api.anthropic.com":
		return wiretest.Anthropic(body)
	case s.wire == Anthropic:
		return wiretest.AnthropicCompatible(body)
	case s.wire == Ollama:
		return wiretest.Ollama(body)
	case s.wire == Gemini:
		_, model, _ := strings.Cut(r.URL.Path, "/models/")
		return wiretest.Gemini(model, body)
	case s.wire == Responses && r.Host == "api.openai.com":
		return wiretest.Responses(body)
	case s.wire == Responses:
		return wiretest.ResponsesCompatible(body)
	case at != nil:
		return at.Valid(r.Header, body)
	case r.Host == "api.openai.com":
		return wiretest.OpenAI(body)
	}
	return wiretest.Compatible(body)
}

// service returns the known service for a request, or nil.
func (s *Server) service(r *http.Request) *wiretest.Service {
	if s.Service != nil || s.wire != OpenAI {
		return s.Service
	}
	return wiretest.At(r.Host)
}

func (s *Server) authorised(r *http.Request) bool {
	switch s.wire {
	case Gemini:
		return r.Header.Get("X-Goog-Api-Key") == s.Key
	case Anthropic:
		return r.Header.Get("Authorization") == "Bearer "+s.Key || r.Header.Get("X-Api-Key") == s.Key
	}
	return r.Header.Get("Authorization") == "Bearer "+s.Key
}

// refuse rejects a request.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why string) {
	if s.t != nil && !s.Lenient {
		s.t.Errorf("invalid request to the %s server: %s", s.wire, why)
	}
	s.fault(w, r, &Fault{Status: http.StatusBadRequest, Message: why})
}

// fault responds with an HTTP error.
func (s *Server) fault(w http.ResponseWriter, r *http.Request, f *Fault) {
	status, data := f.Status, errorJSON(s.wire, f)
	if at := s.service(r); at != nil {
		status, data = at.Refusal(f.Status, f.kind(), f.message())
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if f.RetryAfter != "" {
		h.Set("Retry-After", f.RetryAfter)
	}
	if f.Header != nil {
		f.Header(h.Set)
	}
	w.WriteHeader(status)
	if f.Body != nil {
		data = f.Body(data)
	}
	_, _ = w.Write(data)
}

// answer responds with a step.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte, step *Step) {
	f := &step.Fault
	if f.Hang == HangHeaders {
		s.hang(w, r, 0)
		return
	}
	thinks := f.Ping > 0 && f.Hang == HangNever
	if !thinks && !s.sleep(r, step.Delay) {
		return
	}
	if f.Status != 0 {
		s.fault(w, r, f)
		return
	}
	h := w.Header()
	h.Set("Content-Type", s.wire.contentType())
	if f.Whole {
		h.Set("Content-Type", "application/json")
	}
	if f.Header != nil {
		f.Header(h.Set)
	}
	w.WriteHeader(http.StatusOK)
	flush(w)
	if f.Hang == HangBody {
		s.hang(w, r, f.Ping)
		return
	}
	for waited := time.Duration(0); thinks && waited < step.Delay; waited += f.Ping {
		if !s.ping(w, r, f.Ping) {
			return
		}
	}
	if s.Cache != nil && s.wire == Anthropic && step.Usage == nil {
		use := s.Cache.Use(body, time.Now())
		u := step.usage(len(body))
		u.Input, u.CacheRead, u.CacheWrite = use.Input, use.Read, use.Write
		step.Usage = &u
	}
	s.play(w, r, step, s.events(body, step, s.service(r)))
}

// events returns the response body in pieces.
func (s *Server) events(request []byte, step *Step, at *wiretest.Service) [][]byte {
	f := &step.Fault
	var all [][]byte
	switch s.wire {
	case OpenAI:
		all = openaiEvents(request, step, at)
	case Responses:
		all = responsesEvents(request, step)
	case Gemini:
		all = geminiEvents(request, step)
	case Ollama:
		all = ollamaLines(request, step)
	default:
		all = anthropicEvents(request, step)
	}
	if f.Body != nil {
		all = [][]byte{f.Body(bytes.Join(all, nil))}
	}
	if f.Cut {
		left := f.CutAt
		for i := range all {
			n := min(left, len(all[i]))
			all[i], left = all[i][:n], left-n
		}
	}
	return all
}

// play sends the pieces.
func (s *Server) play(w http.ResponseWriter, r *http.Request, step *Step, pieces [][]byte) {
	f := &step.Fault
	for i, piece := range pieces {
		if i > 0 && !s.sleep(r, step.Gap) {
			return
		}
		hang := f.Hang == HangMiddle && i == len(pieces)/2
		if hang {
			piece = piece[:len(piece)/2]
		}
		if !s.write(w, r, piece, f.Drip) {
			return
		}
		if hang {
			s.hang(w, r, 0)
			return
		}
	}
	if f.Hang == HangEnd {
		s.hang(w, r, f.Ping)
		return
	}
	if f.Abort {
		panic(http.ErrAbortHandler)
	}
}

// write sends a piece, byte by byte if drip is set. It reports whether the
// client is still connected.
func (s *Server) write(w http.ResponseWriter, r *http.Request, piece []byte, drip time.Duration) bool {
	if drip == 0 {
		_, err := w.Write(piece)
		flush(w)
		return err == nil
	}
	for i := range piece {
		if _, err := w.Write(piece[i : i+1]); err != nil || !s.sleep(r, drip) {
			return false
		}
		flush(w)
	}
	return true
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// hang sends nothing, or only keep-alives, until the client disconnects.
func (s *Server) hang(w http.ResponseWriter, r *http.Request, ping time.Duration) {
	for ping > 0 && s.ping(w, r, ping) {
	}
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

// ping sends a keep-alive after a time. It reports whether the client is still
// connected.
func (s *Server) ping(w http.ResponseWriter, r *http.Request, after time.Duration) bool {
	beat := ": keep-alive\n\n"
	switch s.wire {
	case Anthropic:
		beat = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	case Ollama:
		beat = "\n" // of a proxy; the server itself has none
	}
	if !s.sleep(r, after) {
		return false
	}
	_, err := io.WriteString(w, beat)
	flush(w)
	return err == nil
}

// sleep waits and reports whether the client is still connected.
func (s *Server) sleep(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.closed:
	case <-r.Context().Done():
	}
	return false
}
