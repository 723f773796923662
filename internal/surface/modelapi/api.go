package modelapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/access"
)

// Limits of requests.
const (
	maxRequests = 64 // at the same time
	maxLarge    = 4  // of them, whose body is read and has more than small bytes
	small       = 1 << 20
	maxBody     = 28 << 20 // bytes: the attachments that a message may have, in base64, and text
	bodyTime    = time.Minute
	maxKey      = 256 // bytes of an idempotency key
	pingTime    = 15 * time.Second
	closeTime   = time.Second
	lastEntries = 20 // of a session, among which its last answer is
)

// Options configures an API. All fields are required.
type Options struct {
	Log     *slog.Logger
	Store   store.Store
	Bus     *bus.Bus
	Gate    *inbound.Gate
	Runs    Runs
	Agents  func() []chela.Agent
	Default func() chela.AgentID // agent of requests that name none
	Started time.Time
	// Enabled reports whether an endpoint of gateway.http.endpoints is switched on.
	Enabled func(key string) bool
}

// Runs finds the runs of messages.
type Runs interface {
	// Find returns the run with the id, or the run that took the message with the id.
	Find(context.Context, chela.RunID) (run.Run, error)
	// Wait is like Find, but returns the run when it is final.
	Wait(context.Context, chela.RunID) (run.Run, error)
}

// API handles the requests below /v1/.
type API struct {
	o       Options
	slots   chan struct{}
	large   chan struct{}
	closing chan struct{}
	once    sync.Once
}

// New returns an API.
func New(o Options) *API {
	return &API{o: o, slots: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge), closing: make(chan struct{})}
}

// Close ends the requests in progress: those whose run has ended get its answer. It waits
// for them until ctx ends, and no longer than closeTime, since others are still being read.
func (a *API) Close(ctx context.Context) {
	a.once.Do(func() { close(a.closing) })
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for range maxRequests {
		select {
		case a.slots <- struct{}{}: // nobody leaves it again
		case <-ctx.Done():
			return
		}
	}
}

// names are the names of a form.
type names struct {
	path    string
	key     string // of gateway.http.endpoints
	id      string // beginning of the ids of answers
	session string // in the keys of sessions
}

// form is a way to write requests and answers.
type form interface {
	names() names
	parse(body []byte) (*request, error)
	answer(*exchange, answer) any // a complete answer
	stream(*exchange, *events) stream
	fault(*fault) any
}

// stream writes an answer in pieces: start, deltas, then end or fail.
type stream interface {
	start()
	delta(text string)
	end(answer)
	fail(*fault)
}

var forms = [...]form{chat{}, responses{}, messages{}}

// formOf returns the form of a request, by its path or, for the paths that forms share, by
// the headers of its client.
func formOf(r *http.Request) form {
	for _, f := range forms {
		if f.names().path == r.URL.Path {
			return f
		}
	}
	if strings.HasPrefix(r.URL.Path, messages{}.names().path+"/") || r.Header.Get("Anthropic-Version") != "" {
		return messages{}
	}
	return chat{}
}

// Patterns returns the routes that are switched on, as patterns of http.ServeMux.
func (a *API) Patterns() []string {
	var out []string
	for _, f := range forms {
		if n := f.names(); a.o.Enabled(n.key) {
			out = append(out, "POST "+n.path)
		}
	}
	if out != nil {
		out = append(out, "GET /v1/models", "GET /v1/models/{id...}")
	}
	return out
}

// Refuse answers a request without a credential.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request) {
	write(w, formOf(r), &fault{
		status: http.StatusUnauthorized, code: "invalid_api_key",
		text: "Unauthorized: send the token of the gateway as the API key (Authorization: Bearer TOKEN, or x-api-key)",
	})
}

// NotFound answers a request for what is not switched on, or does not exist.
func (a *API) NotFound(w http.ResponseWriter, r *http.Request) {
	f := &fault{status: http.StatusNotFound, code: "not_found", text: "there is nothing at " + clip(r.URL.Path)}
	on := "this endpoint is switched off: chela config set gateway.http.endpoints.%s.enabled true"
	for _, of := range forms {
		switch n := of.names(); {
		case n.path != r.URL.Path:
		case a.o.Enabled(n.key):
			w.Header().Set("Allow", http.MethodPost)
			f.status, f.code, f.text = http.StatusMethodNotAllowed, "method_not_allowed", "send a POST request"
		default:
			f.text = fmt.Sprintf(on, n.key)
		}
	}
	if (r.URL.Path == "/v1/models" || strings.HasPrefix(r.URL.Path, "/v1/models/")) && a.Patterns() == nil {
		f.text = fmt.Sprintf(on, chat{}.names().key)
	}
	write(w, formOf(r), f)
}

// ServeHTTP handles a request with a credential to one of the routes.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := formOf(r)
	if who := chela.PrincipalFrom(r.Context()); !who.May(chela.ScopeWrite) {
		write(w, of, &fault{status: http.StatusForbidden, text: "missing scope: " + string(chela.ScopeWrite)})
		return
	}
	if r.Method == http.MethodGet {
		a.models(w, r)
		return
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		write(w, of, &fault{status: http.StatusTooManyRequests, code: "rate_limit_exceeded", text: "too many requests at once; try again later", after: 1})
		return
	}
	x, err := a.accept(w, r, of)
	if err != nil {
		write(w, of, faultOf(a.o.Log, err))
		return
	}
	defer x.cancel()
	a.reply(w, r, x)
}

// exchange is a request whose message was accepted.
type exchange struct {
	*request
	form     form
	id       chela.RunID
	session  chela.SessionKey
	created  time.Time
	follower *follower
	cancel   func()
	receipt  inbound.Receipt
}

// answer is what a run answered.
type answer struct {
	text  string
	stop  llm.StopReason
	usage llm.Usage
}

// accept reads a request and puts its message into the queue.
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
	x.cancel = a.o.Bus.Subscribe(x.follower.observe) // before the run can start
	x.receipt, err = a.o.Gate.Admit(r.Context(), chela.Inbound{
		ID: string(x.id), Address: chela.Address{Channel: chela.LocalChannel}, Session: x.session, Sender: chela.Sender{ID: chela.PrincipalFrom(r.Context()).ID},
		Text: in.text, Media: in.media, Earlier: in.history(), Prompt: strings.TrimSpace(strings.Join(in.system, gap)), Digest: digest,
		Mode: string(queue.Followup), Model: header(r, "Model"),
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
		err = &fault{status: http.StatusConflict, code: "idempotency_key_reused", text: "the Idempotency-Key was used for another request", final: true}
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
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join([]string{n.key, chela.PrincipalFrom(r.Context()).ID, key}, "\x1f")))
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

// reply follows the run and answers the request.
func (a *API) reply(w http.ResponseWriter, r *http.Request, x *exchange) {
	w.Header().Set("X-Chela-Session-Key", string(x.session))
	ctx := r.Context()
	var out stream
	var sent *events
	if x.stream {
		sent = newEvents(w)
		defer sent.close()
		out = x.form.stream(x, sent)
		out.start()
	}
	ping := time.NewTicker(pingTime)
	defer ping.Stop()
	over := !x.receipt.New || x.receipt.Command || x.receipt.State == "" // perhaps
	for {
		if over {
			ans, f, ended := a.outcome(ctx, x)
			if ctx.Err() != nil {
				return
			}
			if ended {
				x.finish(w, out, ans, f)
				return
			}
		}
		select {
		case <-x.follower.ready:
			var text string
			if text, over = x.follower.take(); text != "" && out != nil {
				out.delta(text)
			}
		case <-ping.C:
			over = false
			if sent != nil {
				sent.ping()
			}
		case <-a.closing:
			ans, f, ended := a.outcome(ctx, x)
			if !ended {
				f = &fault{
					status: http.StatusServiceUnavailable, after: 2,
					text: "the gateway stops; the work goes on at its next start, and the answer will be in the session " + string(x.session),
				}
			}
			x.finish(w, out, ans, f)
			return
		case <-ctx.Done():
			return
		}
		if sent != nil && sent.err != nil {
			return
		}
	}
}

// finish answers the request with the answer, or with the fault if there is one.
func (x *exchange) finish(w http.ResponseWriter, out stream, ans answer, f *fault) {
	switch {
	case out != nil && f != nil:
		out.fail(f)
	case out != nil:
		if rest := x.follower.rest(ans.text); rest != "" {
			out.delta(rest)
		}
		out.end(ans)
	case f != nil:
		write(w, x.form, f)
	default:
		access.WriteJSON(w, http.StatusOK, x.form.answer(x, ans))
	}
	_ = http.NewResponseController(w).Flush() // before the gateway may close the connection
}

// outcome returns what a message led to. ended reports whether that is known.
func (a *API) outcome(ctx context.Context, x *exchange) (ans answer, f *fault, ended bool) {
	if x.receipt.Command && x.receipt.State != queue.Waiting {
		return answer{text: x.receipt.Reply}, nil, true
	}
	if x.receipt.State == "" {
		return answer{}, nil, true
	}
	r, err := a.o.Runs.Find(ctx, x.id)
	if err == nil && !r.State.Final() {
		if r.ID == x.id {
			return ans, nil, false
		}
		r, err = a.o.Runs.Wait(ctx, x.id) // another run took the message
	}
	if err == nil {
		ans, err = a.answer(ctx, r)
	}
	if err != nil {
		f = faultOf(a.o.Log, err)
		f.final = true
		return ans, f, true
	}
	return ans, failure(r), true
}

// answer reads the answer of a run.
func (a *API) answer(ctx context.Context, r run.Run) (ans answer, err error) {
	ans.text = r.Text
	if r.SessionID == "" { // it did not begin
		return ans, nil
	}
	err = a.o.Store.View(ctx, func(rd store.Reader) error {
		var sum usage.Sum
		var err error
		if sum, err = rd.Usage().OfRun(r.ID); err != nil {
			return err
		}
		ans.usage = sum.Tokens
		ans.stop, err = session.StopOf(rd.Sessions(), r.SessionID, r.ID, r.Started)
		return err
	})
	return ans, err
}

// failure returns why a run gave no answer; nil: it did.
func failure(r run.Run) *fault {
	f := &fault{status: http.StatusInternalServerError, code: "run_" + string(r.State), text: r.Error, final: true}
	switch {
	case r.State == run.OK:
		return nil
	case r.State == run.TimedOut:
		f.status = http.StatusGatewayTimeout
	}
	if f.text == "" {
		f.text = "the run was " + string(r.State)
	}
	return f
}
