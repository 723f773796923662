package httpchat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/plugin/channel/chatjson"
)

// Limits of posts.
const (
	maxBody   = 8 << 20 // bytes
	maxBodies = 8       // that are read or handled at the same time
	bodyTime  = 30 * time.Second
	sinkTime  = 30 * time.Second
	fetchTime = time.Minute
	maxSeen   = 10_000 // signatures that are remembered
)

// Path implements channel.Poster.
func (a *account) Path() string { return a.path }

// ServeHTTP receives a message.
func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, "want POST")
		return
	}
	signed, err := signature.Parse(r.Header, time.Now()) // before anything of the body is read
	if err != nil {
		answer(w, http.StatusUnauthorized, err.Error())
		return
	}
	select {
	case a.bodies <- struct{}{}:
		defer func() { <-a.bodies }()
	default:
		unavailable(w, "too many requests at once")
		return
	}
	body, status := read(w, r)
	if status != 0 {
		answer(w, status, http.StatusText(status))
		return
	}
	if !signed.Valid(a.secret, body) {
		answer(w, http.StatusUnauthorized, "the signature is not valid for this body and secret")
		return
	}
	in, err := a.parse(body)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	a.offer(r.Context(), w, signed, in)
}

// read returns the body of a request, or the status that refuses it.
func read(w http.ResponseWriter, r *http.Request) ([]byte, int) {
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	// a server without deadlines has limits of its own
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return body, 0
}

// parse returns the message of a body.
func (a *account) parse(body []byte) (chela.Inbound, error) {
	var m *struct {
		Op      string          `json:"op"`
		Account chela.AccountID `json:"account"`
		chatjson.Message
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return chela.Inbound{}, fmt.Errorf("want a message in JSON: %w", err)
	}
	switch {
	case m == nil:
		return chela.Inbound{}, errors.New("want a message in JSON")
	case m.Op != "" && m.Op != "message": // such as a request of the gateway that was sent back to it
		return chela.Inbound{}, fmt.Errorf("op is %.20q: want message", m.Op)
	case cmp.Or(m.Account, "default") != a.id: // accounts may have the same secret
		return chela.Inbound{}, fmt.Errorf("account is %.50q: want %q", m.Account, a.id)
	}
	return m.Inbound(chela.Address{Channel: Name, Account: a.id}, source)
}

// source returns the URL of an attachment.
func source(m chatjson.Media) (string, error) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("neither data nor the URL of a web page")
	}
	return m.URL, nil
}

// offer passes a message to the sink and answers the post. Only one message is passed at a time.
func (a *account) offer(ctx context.Context, w http.ResponseWriter, signed signature.Signature, in chela.Inbound) {
	ctx, cancel := context.WithTimeout(ctx, sinkTime)
	defer cancel()
	select {
	case a.order <- struct{}{}:
		defer func() { <-a.order }()
	case <-ctx.Done():
		unavailable(w, "other messages wait")
		return
	}
	a.mu.Lock()
	sink, repeated := a.sink, a.seen.has(signed.String(), time.Now())
	a.mu.Unlock()
	switch {
	case sink == nil:
		unavailable(w, "the channel does not run")
		return
	case repeated:
		answer(w, http.StatusUnauthorized,
			"a request with this signature was accepted already; sign it again, with the time of now")
		return
	}
	err := sink(ctx, in)
	if err != nil && !channel.Refused(err) {
		a.env.Log.Warn("message not accepted; it has to be posted again", "chat", in.Address.Peer.ID,
			"message", in.ID, "err", err)
		unavailable(w, "it was not accepted")
		return
	}
	if err != nil {
		a.env.Log.Debug("message refused", "message", in.ID, "err", err)
	}
	a.mu.Lock()
	a.seen.add(signed.String(), time.Now())
	a.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{"accepted": err == nil})
}

// seen are the signatures of requests that were accepted.
type seen struct {
	at    map[string]time.Time
	order []string // oldest first
}

func (s *seen) has(id string, now time.Time) bool {
	s.forget(now)
	_, ok := s.at[id]
	return ok
}

func (s *seen) add(id string, now time.Time) {
	s.at[id] = now
	s.order = append(s.order, id)
	s.forget(now)
}

// forget forgets signatures that are not valid any more. One may be made for a time that
// is a window ahead.
func (s *seen) forget(now time.Time) {
	for len(s.order) > 0 && (len(s.order) > maxSeen || now.Sub(s.at[s.order[0]]) > 2*signature.Window+time.Minute) {
		delete(s.at, s.order[0])
		s.order[0] = ""
		s.order = s.order[1:]
	}
}

// unavailable asks for the same message again.
func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable, why+"; try again")
}

// answer answers a request that has no effect.
func answer(w http.ResponseWriter, status int, why string) {
	reply(w, status, map[string]any{"error": why})
}

func reply(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// Fetch implements channel.Fetcher.
func (a *account) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Source, http.NoBody)
	if err != nil {
		return m, &channel.Error{Permanent: true, Err: errors.New("httpchat: the URL of the attachment is not valid")}
	}
	r.Header.Set("User-Agent", "Chela")
	got, err := channel.Call(a.client, r, int64(max(most, maxAnswer)))
	if err != nil {
		return m, fmt.Errorf("httpchat: attachment: %w", withoutURL(err))
	}
	if got.Status != http.StatusOK {
		return m, status("attachment", got)
	}
	if len(got.Body) > most {
		return m, permanent(fmt.Errorf("the attachment has more than %d bytes", most))
	}
	m.Data, m.Source, m.Bytes = got.Body, "", 0
	if m.Type == "" {
		m.Type = got.Header.Get("Content-Type")
	}
	return m, nil
}
