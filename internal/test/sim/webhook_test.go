package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// webhook is a request of another program. It is repeated until it is accepted, and often
// after that.
type webhook struct {
	tag      string
	wake     bool // an event of the main session
	to       chela.Address
	body     map[string]any
	sent     time.Time
	accepted time.Time
	runs     []string // in the answers
}

// webhookToken authenticates the requests.
const webhookToken = "the token of the webhooks"

// newWebhook makes a request.
func (w *world) newWebhook(r *rand.Rand, i int) *webhook {
	h := &webhook{tag: fmt.Sprint("w", i), wake: r.IntN(5) == 0}
	h.body = map[string]any{"idempotencyKey": h.tag, "message": "please do <<" + h.tag + ">>"}
	switch {
	case h.wake:
		h.body["text"] = h.body["message"]
		delete(h.body, "message")
	case r.IntN(2) == 0:
		c := w.chats[3+r.IntN(3)] // without a thread
		h.to = c.address
		h.body["channel"], h.body["to"] = c.address.Channel, string(c.address.Peer.Kind)+":"+c.address.Peer.ID
	}
	if w.planOf(h.tag).kind == "hang" {
		h.body["timeoutSeconds"] = 5 + r.IntN(100)
	}
	return h
}

// listen opens the port of a life, for webhooks.
func (l *life) listen() *endpoint.Listen {
	if len(l.w.webhooks) == 0 {
		return nil
	}
	l.web = llmtest.Pipe()
	return &endpoint.Listen{Listener: l.web}
}

// post makes requests until one is accepted.
func (w *world) post(h *webhook) {
	body, err := json.Marshal(h.body)
	if err != nil {
		panic(err)
	}
	for {
		l, changed := w.current()
		if l == nil {
			<-changed
			continue
		}
		id, again, err := l.post(h.wake, body)
		if err != nil {
			w.tell("webhook: %s is not accepted: %v", h.tag, err)
			time.Sleep(2 * time.Second)
			continue
		}
		w.mu.Lock()
		if h.accepted.IsZero() {
			h.accepted = time.Now()
		}
		h.runs = append(h.runs, id)
		w.tellLocked("webhook: %s is accepted, run %s, again %t", h.tag, id, again)
		w.mu.Unlock()
		l.step("webhook.acked")
		w.learned()
		return
	}
}

// post makes one request.
func (l *life) post(wake bool, body []byte) (run string, again bool, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := l.web.Dial(ctx)
		if err == nil {
			context.AfterFunc(l.ctx, func() { c.Close() })
		}
		return c, err
	}}
	url := "http://127.0.0.1/hooks/agent"
	if wake {
		url = "http://127.0.0.1/hooks/wake"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	req.Header.Set("Authorization", "Bearer "+webhookToken)
	res, err := t.RoundTrip(req)
	if err != nil {
		return "", false, err
	}
	defer res.Body.Close()
	var out struct {
		OK        bool
		RunID     string
		Duplicate bool
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return "", false, err
	}
	if l.dead() {
		return "", false, errDead
	}
	if res.StatusCode != http.StatusOK || !out.OK {
		if res.StatusCode < 500 {
			l.w.broken("WEBHOOK: a request was answered %d", res.StatusCode)
		}
		return "", false, fmt.Errorf("status %d", res.StatusCode)
	}
	return out.RunID, out.Duplicate, nil
}

// call makes the requests of a webhook.
func (w *world) callWebhook(h *webhook) {
	r := w.rnd("webhook", h.tag)
	h.sent = time.Now()
	w.tell("webhook: sends %s, %s, wake %t, to %s", h.tag, w.planOf(h.tag).kind, h.wake, chatName(h.to))
	if r.IntN(3) == 0 { // two at once
		w.do(func() { w.post(h) })
	}
	w.post(h)
	for range r.IntN(3) {
		time.Sleep(seconds(r, 0, 100))
		w.post(h)
	}
}

// webhookRow is what the store has of a webhook.
type webhookRow struct {
	item, told queue.Item
	turn       run.Run
}

// readWebhooks reads the items of webhooks and their runs.
func (s *state) readWebhooks(r store.Reader, getRun func(chela.RunID) error) error {
	s.webhooks = map[string]webhookRow{}
	for _, h := range s.w.webhooks {
		source := "agent"
		if h.wake {
			source = "wake"
		}
		it, err := r.Queue().ByKey(strings.Join([]string{"webhook", source, h.tag}, "\x1f"))
		if errors.Is(err, chela.ErrNotFound) {
			continue
		}
		if err = errors.Join(err, getRun(it.Run)); err != nil {
			return err
		}
		row := webhookRow{item: it, turn: s.runs[it.Run]}
		if row.told, err = r.Queue().ByKey("webhook:" + string(it.Run)); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		s.webhooks[h.tag] = row
	}
	return nil
}

// checkWebhooks checks that each accepted request is in a transcript once, however often
// it was repeated, and that its answer reached its chat or the main session.
func (s *state) checkWebhooks() {
	const main = chela.SessionKey("agent:main:main")
	w := s.w
	for _, h := range w.webhooks {
		if h.sent.IsZero() {
			continue
		}
		broken := func(format string, args ...any) { w.broken("WEBHOOK: "+h.tag+": "+format, args...) }
		row, ok := s.webhooks[h.tag]
		if !ok {
			broken("it was accepted, and the queue does not have it")
			continue
		}
		for _, id := range h.runs {
			if id != row.item.ID && !h.wake || id != "" && h.wake {
				broken("the answers name the runs %q, and its item is %s", h.runs, row.item.ID)
			}
		}
		n := 0
		for id, list := range s.entries {
			for _, e := range list {
				if e.Kind == session.KindMessage && e.Message.Role == llm.RoleUser && s.home[id] == row.item.Session &&
					strings.Contains(e.Message.PlainText(), "<<"+h.tag+">>") {
					n++
				}
			}
		}
		left := h.wake && s.stopped(main, h.sent)
		switch {
		case n > 1, n == 0 && !left:
			broken("it is in the transcripts %d times, its item is %s", n, row.item.State)
		case h.wake || n == 0:
			continue
		case row.item.State != queue.Done || !row.turn.State.Final():
			broken("its item is %s, and its run %s", row.item.State, row.turn.State)
		case w.forbidden(h.tag) && !strings.Contains(row.turn.Error, "the guard forbids it"):
			broken("a hook forbids it, and its run is %s, %s", row.turn.State, row.turn.Error)
		}
		s.checkWebhookAnswer(h, row, broken)
	}
}

// checkWebhookAnswer checks where the answer to a webhook went.
func (s *state) checkWebhookAnswer(h *webhook, row webhookRow, broken func(string, ...any)) {
	const main = chela.SessionKey("agent:main:main")
	r := row.turn
	token := tokenIn(r.Text)
	if h.to.Channel != "" {
		for _, p := range s.w.platforms {
			for _, m := range p.sent {
				if token != "" && strings.Contains(m.text, token) && m.to != h.to {
					broken("its answer %s went to %s", token, chatName(m.to))
				}
			}
		}
		if r.State == run.OK && !r.Silent && len(s.rows[r.ID]) == 0 {
			broken("its answer %q was not delivered", r.Text)
		}
		return
	}
	told := 0
	for id, list := range s.entries {
		for _, e := range list {
			if e.Kind == session.KindMessage && e.Message.Role == llm.RoleUser && s.home[id] == main && token != "" &&
				strings.Contains(e.Message.PlainText(), token) {
				told++
			}
		}
	}
	owed := !r.Silent && slices.Contains([]run.State{run.OK, run.Failed, run.TimedOut}, r.State)
	switch {
	case owed && row.told.ID == "", !owed && told > 0:
		broken("its run is %s, silent %t, and the main session was told %d times", r.State, r.Silent, told)
	case told > 1, owed && told == 0 && (token != "" || row.told.State != queue.Done) && !s.stopped(main, r.Ended):
		broken("the main session was told %d times, its item is %s", told, row.told.State)
	}
}
