package discordtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"
)

// wantIntents are the intents without which the bot does not receive what it needs.
const wantIntents = 1<<0 | 1<<9 | 1<<10 | 1<<12 | 1<<13 | 1<<15

// gate is the state of the gateway; Server.mu guards it.
type gate struct {
	interval time.Duration
	session  string
	events   []frame // of the session
	reported int64   // number that the bot sent in a heartbeat or with resume
	live     *live   // the connection; nil: none
	changed  chan struct{}
	mute     bool
	refuse   int // close code of the next identify or resume; 0: none
	resumes  []Resume
	starts   int // sessions that were started
	limited  bool
}

// Resume is a request to resume a session.
type Resume struct {
	Session string
	Seq     int64
}

// live is a connection whose session is established.
type live struct {
	ws   *websocket.Conn
	send chan frame
}

// frame is a message of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type *string         `json:"t"`
}

// changedLocked wakes those who wait for a change of the gateway.
func (s *Server) changedLocked() {
	close(s.gate.changed)
	s.gate.changed = make(chan struct{})
}

// until waits until ok, which is called with the lock held, reports true.
func (s *Server) until(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, changed := ok(), s.gate.changed
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

// Await waits until the bot reports in a heartbeat that it processed an event.
func (s *Server) Await(ctx context.Context, seq int64) error {
	return s.until(ctx, func() bool { return s.gate.reported >= seq })
}

// Connected waits until a session is established.
func (s *Server) Connected(ctx context.Context) error {
	return s.until(ctx, func() bool { return s.gate.live != nil })
}

// Dispatch sends an event to the bot, at once or when it resumes. It returns its number.
// Before the first session it waits for one.
func (s *Server) Dispatch(kind string, data any) int64 {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	_ = s.until(context.Background(), func() bool { return s.gate.session != "" })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatchLocked(kind, b)
}

func (s *Server) dispatchLocked(kind string, data json.RawMessage) int64 {
	seq := int64(len(s.gate.events) + 1)
	f := frame{0, data, &seq, &kind}
	s.gate.events = append(s.gate.events, f)
	if s.gate.live != nil {
		s.gate.live.send <- f
	}
	return seq
}

// Skip leaves out a number of events, as if Discord had not sent them.
func (s *Server) Skip(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		seq, kind := int64(len(s.gate.events)+1), "PRESENCE_UPDATE"
		s.gate.events = append(s.gate.events, frame{0, json.RawMessage("{}"), &seq, &kind})
	}
}

// Mute makes the gateway acknowledge no heartbeats, or acknowledge them again.
func (s *Server) Mute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.mute = mute
}

// SetHeartbeat changes the interval of heartbeats.
func (s *Server) SetHeartbeat(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.interval = d
}

// Refuse closes the next connection with a code when it identifies.
func (s *Server) Refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.refuse = code
}

// Exhaust says that no session may be started any more for 5 minutes.
func (s *Server) Exhaust(limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.limited = limited
}

// Drop closes the connection with a code; 0: without one.
func (s *Server) Drop(code int) {
	s.mu.Lock()
	l := s.gate.live
	s.gate.live = nil
	s.mu.Unlock()
	switch {
	case l == nil:
	case code == 0:
		_ = l.ws.CloseNow()
	default:
		_ = l.ws.Close(websocket.StatusCode(code), "")
	}
}

// Ask sends an operation without a number, such as 7 (reconnect) or 9 (invalid session).
func (s *Server) Ask(op int, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate.live != nil {
		s.gate.live.send <- frame{Op: op, Data: json.RawMessage(data)}
	}
}

// Forget ends the session: it cannot be resumed.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.session, s.gate.events = "", nil
}

// Resumes returns the requests to resume, and how many sessions were started.
func (s *Server) Resumes() ([]Resume, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gate.resumes), s.gate.starts
}

// serveGate serves a connection to the gateway.
func (s *Server) serveGate(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Get("v") != "10" || q.Get("encoding") != "json" {
		http.Error(w, "want v=10 and encoding=json", http.StatusBadRequest)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &live{ws: ws, send: make(chan frame, 10000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case f := <-l.send:
				b, _ := json.Marshal(f)
				if ws.Write(ctx, websocket.MessageText, b) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	s.mu.Lock()
	interval := s.gate.interval
	s.mu.Unlock()
	hello, _ := json.Marshal(map[string]any{"heartbeat_interval": interval.Milliseconds()})
	l.send <- frame{Op: 10, Data: hello}
	err = s.readGate(ctx, l)
	s.mu.Lock()
	if s.gate.live == l {
		s.gate.live = nil
	}
	s.changedLocked()
	s.mu.Unlock()
	var refusal closeCode
	if errors.As(err, &refusal) {
		_ = ws.Close(websocket.StatusCode(refusal), "")
	}
	cancel()
	<-done
}

// closeCode is a code with which the gateway closes a connection.
type closeCode int

func (c closeCode) Error() string { return "closed" }

// readGate reads the frames of the bot.
func (s *Server) readGate(ctx context.Context, l *live) error {
	for {
		_, data, err := l.ws.Read(ctx)
		if err != nil {
			return err
		}
		if len(data) > 4096 {
			return closeCode(4002)
		}
		var f struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		if json.Unmarshal(data, &f) != nil {
			return closeCode(4002)
		}
		if err := s.gateFrame(l, f.Op, f.Data); err != nil {
			return err
		}
	}
}

func (s *Server) gateFrame(l *live, op int, data json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changedLocked()
	g := &s.gate
	switch op {
	case 1:
		var seq *int64
		if json.Unmarshal(data, &seq) != nil {
			return closeCode(4002)
		}
		if seq != nil {
			g.reported = max(g.reported, *seq)
		}
		if !g.mute {
			l.send <- frame{Op: 11}
		}
		return nil
	case 2, 6:
	default:
		return closeCode(4001)
	}
	if g.live == l {
		return closeCode(4005)
	}
	if g.refuse != 0 {
		code := g.refuse
		g.refuse = 0
		return closeCode(code)
	}
	var in struct {
		Token      string            `json:"token"`
		Intents    int               `json:"intents"`
		Properties map[string]string `json:"properties"`
		Session    string            `json:"session_id"`
		Seq        int64             `json:"seq"`
	}
	if json.Unmarshal(data, &in) != nil {
		return closeCode(4002)
	}
	if in.Token != Token {
		return closeCode(4004)
	}
	if op == 6 {
		g.resumes = append(g.resumes, Resume{in.Session, in.Seq})
		if g.session == "" || in.Session != g.session {
			l.send <- frame{Op: 9, Data: json.RawMessage("false")}
			return nil
		}
		if in.Seq < 0 || in.Seq > int64(len(g.events)) {
			return closeCode(4007)
		}
		for _, f := range g.events[in.Seq:] {
			l.send <- f
		}
		g.reported = max(g.reported, in.Seq)
		g.live = l
		s.dispatchLocked("RESUMED", json.RawMessage("{}"))
		return nil
	}
	if in.Intents != wantIntents || in.Properties["browser"] == "" {
		return closeCode(4013)
	}
	g.starts++
	g.session, g.events, g.live, g.reported = "session-"+s.idLocked(), nil, l, 0
	ready, _ := json.Marshal(map[string]any{
		"v": 10, "user": s.users[Self], "session_id": g.session, "resume_gateway_url": "ws" + s.base[len("http"):] + "/gate",
		"application": map[string]any{"id": App, "flags": 0}, "guilds": []any{},
	})
	s.dispatchLocked("READY", ready)
	return nil
}
