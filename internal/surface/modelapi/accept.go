package modelapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/access"
)

// exchange is a request whose message was accepted.
type exchange struct {
	*request
	form     form
	id       chela.RunID
	session  chela.SessionKey
	created  time.Time
	keyed    bool // it has an idempotency key
	follower *follower
	cancel   func()
	receipt  inbound.Receipt
}

// accept reads a request and puts its message into the queue. Bodies that may be large are read a
// few at a time, whatever the number of requests: each is in memory until its message is stored.
func (a *API) accept(w http.ResponseWriter, r *http.Request, of form) (*exchange, error) {
	if r.ContentLength < 0 || r.ContentLength > small {
		select {
		case a.large <- struct{}{}:
			defer func() { <-a.large }()
		case <-a.closing:
			return nil, chela.ErrClosed
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, status, why := access.Body(w, r, maxBody, bodyTime)
	if status != 0 {
		return nil, &fault{status: status, text: why}
	}
	in, err := of.parse(body)
	if err != nil {
		return nil, err
	}
	x := &exchange{request: in, form: of, created: time.Now()}
	if err := a.address(r, x); err != nil {
		return nil, err
	}
	if in.earlier, err = a.unseen(r.Context(), x.session, in.earlier); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:16])
	x.follower = newFollower(x.id)
	x.cancel = a.o.Bus.Subscribe(x.follower.observe) // before the run can start: its first text would be missed
	x.receipt, err = a.o.Gate.Admit(r.Context(), chela.Inbound{
		ID:      string(x.id),
		Address: chela.Address{Channel: chela.LocalChannel},
		Session: x.session,
		Sender:  chela.Sender{ID: chela.PrincipalFrom(r.Context()).ID},
		Text:    in.text,
		Media:   in.media,
		Earlier: in.history(),
		Prompt:  strings.TrimSpace(strings.Join(in.system, gap)),

		Digest: digest,
		Mode:   string(queue.Followup),
		Model:  header(r, "Model"),
	})
	in.system, in.earlier, in.text, in.media = nil, nil, "", nil // a run may take long
	if err == nil && !x.receipt.New {
		err = a.same(r.Context(), x, digest)
	}
	if err != nil {
		x.cancel()
		return nil, err
	}
	return x, nil
}

// unseen returns the earlier messages that are not in the session, as far as can be told: if
// the client repeats the last answer of the session, those after it.
func (a *API) unseen(ctx context.Context, key chela.SessionKey, earlier []turn) ([]turn, error) {
	if len(earlier) == 0 {
		return nil, nil
	}
	last, err := store.Get(ctx, a.o.Store, func(r store.Reader) (string, error) {
		m, err := r.Sessions().Get(key)
		if err != nil {
			return "", err
		}
		list, err := r.Sessions().Last(m.ID, lastEntries)
		for _, e := range slices.Backward(list) {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleAssistant {
				continue
			}
			if text := strings.TrimSpace(e.Message.PlainText()); text != "" {
				return text, nil
			}
		}
		return "", err
	})
	if errors.Is(err, chela.ErrNotFound) {
		return earlier, nil
	}
	for i, t := range slices.Backward(earlier) {
		if last != "" && t.own && strings.HasSuffix(t.text, last) { // streams have more than the last message of a run
			return earlier[i+1:], err
		}
	}
	return earlier, err
}

// same returns an error if the message that was accepted before is another one.
func (a *API) same(ctx context.Context, x *exchange, digest string) error {
	it, err := store.Get(ctx, a.o.Store, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(string(x.id)) })
	if err == nil && it.Inbound.Digest != digest {
		err = &fault{status: http.StatusConflict, code: "idempotency_key_reused",
			text: "the Idempotency-Key was used for another request", final: true}
	}
	return err
}

// header returns a header of ours, or OpenClaw's.
func header(r *http.Request, name string) string {
	if v := r.Header.Get("X-Chela-" + name); v != "" {
		return strings.TrimSpace(v)
	}
	return strings.TrimSpace(r.Header.Get("X-Openclaw-" + name))
}

// address chooses the session of a request and the id of its run.
func (a *API) address(r *http.Request, x *exchange) error {
	agent, ok := a.target(x.model)
	if !ok {
		return a.unknownModel(x.model, http.StatusBadRequest)
	}
	if x.model == "" {
		x.model = families[0]
	}
	if named := header(r, "Agent-Id"); named != "" {
		if agent = chela.AgentID(named); !a.has(agent) {
			return a.unknownModel("agent:"+named, http.StatusBadRequest)
		}
	}
	n, id := x.form.names(), uuid.New()
	switch key := r.Header.Get("Idempotency-Key"); {
	case len(key) > maxKey:
		return invalid("", "the Idempotency-Key has %d bytes, at most %d", len(key), maxKey)
	case key != "": // the same for each attempt
		x.keyed = true
		id = uuid.NewSHA1(uuid.NameSpaceOID,
			[]byte(strings.Join([]string{n.key, chela.PrincipalFrom(r.Context()).ID, key}, "\x1f")))
	}
	x.id = chela.RunID(n.id + id.String())
	name := n.session + ":" + id.String()
	switch key := header(r, "Session-Key"); {
	case key != "":
		name = key
	case x.previous != "":
		return a.continued(r.Context(), x, agent)
	case x.user != "":
		name = n.session + "-user:" + escape(x.user)
	}
	var err error
	if x.session, err = chela.ParseSessionKey(name, agent); err != nil {
		return invalid("", "%v", err)
	}
	if to := x.session.Agent(); to != agent && (x.model != families[0] && x.model != families[1] || !a.has(to)) {
		return invalid("", "the session %s belongs to the agent %s, and not to %s", x.session, to, agent)
	}
	return nil
}

// escape returns a name that may be a part of the key of a session.
func escape(user string) string {
	if strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return url.PathEscape(user)
	}
	return user
}

// continued sets the session to that of the response that the request continues.
func (a *API) continued(ctx context.Context, x *exchange, agent chela.AgentID) error {
	it, err := store.Get(ctx, a.o.Store, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(x.previous) })
	known := err == nil && it.Principal.ID == chela.PrincipalFrom(ctx).ID && strings.HasPrefix(it.ID, x.form.names().id)
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return err
	}
	if !known || it.Session.Agent() != agent {
		return &fault{
			status: http.StatusBadRequest, param: "previous_response_id", code: "previous_response_not_found",
			text: "there is no response " + clip(x.previous) + " of this agent",
		}
	}
	x.session = it.Session
	return nil
}
