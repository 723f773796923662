package slacktest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// conn is a connection of Socket Mode.
type conn struct {
	ws      *websocket.Conn
	acks    map[string]chan struct{} // of the envelopes that are sent
	expires bool                     // its end was announced
}

// link serves a connection.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	s.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	good := s.tickets[ticket]
	s.tickets[ticket] = false
	mute := s.mute
	s.mu.Unlock()
	if !good {
		http.Error(w, "no such ticket", http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(w, r,
		&websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return !mute }})
	if err != nil {
		return
	}
	defer ws.CloseNow()
	c := &conn{ws: ws, acks: map[string]chan struct{}{}}
	if s.write(c, object{"type": "hello", "num_connections": 1}) != nil {
		return
	}
	s.mu.Lock()
	s.conns = append(s.conns, c)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	for {
		_, data, err := ws.Read(context.Background())
		if err != nil {
			break
		}
		var a struct {
			ID string `json:"envelope_id"`
		}
		if json.Unmarshal(data, &a) != nil || a.ID == "" {
			s.t.Errorf("frame %q is no acknowledgement", data)
		}
		s.mu.Lock()
		if done := c.acks[a.ID]; done != nil {
			close(done)
			delete(c.acks, a.ID)
		} else {
			s.late++
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.conns {
		if other == c {
			s.conns = append(s.conns[:i:i], s.conns[i+1:]...)
			break
		}
	}
}

func (s *Server) write(c *conn, v object) error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.ws.Write(ctx, websocket.MessageText, data)
}

// Connections returns the number of connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Drop breaks the connections.
func (s *Server) Drop() {
	s.mu.Lock()
	conns := append([]*conn(nil), s.conns...)
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.ws.CloseNow()
	}
}

// Mute makes the connections to come not answer pings.
func (s *Server) Mute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// Raw sends a frame on all connections.
func (s *Server) Raw(frame string) {
	s.mu.Lock()
	conns := append([]*conn(nil), s.conns...)
	s.mu.Unlock()
	for _, c := range conns {
		ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
		_ = c.ws.Write(ctx, websocket.MessageText, []byte(frame))
		cancel()
	}
}

// Expire announces the end of the connections, and closes them after d.
func (s *Server) Expire(reason string, d time.Duration) {
	s.mu.Lock()
	conns := append([]*conn(nil), s.conns...)
	for _, c := range conns {
		c.expires = true
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = s.write(c, object{"type": "disconnect", "reason": reason})
		s.wg.Go(func() {
			time.Sleep(d)
			_ = c.ws.CloseNow()
		})
	}
}

// ErrGivenUp says that an event was not acknowledged, although it was repeated.
var ErrGivenUp = errors.New("the event was not acknowledged")

// Push sends an envelope until it is acknowledged. kind is events_api, interactive,
// slash_commands or another type.
func (s *Server) Push(ctx context.Context, kind string, payload any) error {
	s.mu.Lock()
	s.last++
	id := fmt.Sprint("e", s.last)
	s.mu.Unlock()
	for try := 0; ; try++ {
		err := s.push(ctx, object{"type": kind, "envelope_id": id, "payload": payload, "retry_attempt": try})
		if err == nil || ctx.Err() != nil || try == len(s.Repeats) {
			return err
		}
		t := time.NewTimer(s.Repeats[try])
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// push sends an envelope once and waits for its acknowledgement. It waits for a connection.
func (s *Server) push(ctx context.Context, env object) error {
	var c *conn
	done := make(chan struct{})
	for c == nil {
		s.mu.Lock()
		changed := s.changed
		if n := len(s.conns); n > 0 {
			c = s.conns[n-1]
			c.acks[env["envelope_id"].(string)] = done
		}
		s.mu.Unlock()
		if c == nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	err := s.write(c, env)
	t := time.NewTimer(s.Patience)
	defer t.Stop()
	if err == nil {
		select {
		case <-done:
			return nil
		case <-t.C:
			err = ErrGivenUp
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.mu.Lock()
	delete(c.acks, env["envelope_id"].(string))
	s.mu.Unlock()
	return err
}

// Event returns the payload of a message event of a person. more are further members.
func (s *Server) Event(chat, who, text, ts string, more map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := object{"type": "message", "channel": chat, "user": who, "text": text, "ts": ts, "event_ts": ts}
	if c := s.chats[chat]; c != nil {
		e["channel_type"] = c.Kind
	}
	for k, v := range more {
		e[k] = v
	}
	return object{"type": "event_callback", "team_id": Team, "event_id": "Ev" + ts, "event": e}
}

// Say writes a message of a person and sends its event until it is acknowledged. It
// returns the timestamp.
func (s *Server) Say(ctx context.Context, chat, thread, who, text string) (string, error) {
	ts := s.Write(chat, thread, who, text)
	more := map[string]any{}
	if thread != "" {
		more["thread_ts"] = thread
	}
	return ts, s.Push(ctx, "events_api", s.Event(chat, who, text, ts, more))
}

// Sign returns the signature of a body.
func Sign(key, at, body string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte("v0:" + at + ":" + body))
	return "v0=" + hex.EncodeToString(h.Sum(nil))
}

// Post posts a signed body to a handler, and returns its answer. change changes the request
// before; nil: nothing.
func Post(h http.Handler, contentType, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/slack/events", strings.NewReader(body))
	at := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", Sign(Secret, at, body))
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
