// Package webhook serves the webhooks of the gateway's port: POST /hooks/wake,
// /hooks/agent, and /hooks/NAME by the mappings of the configuration.
//
// A request is authenticated by a header, before its body is read, or by the signature of
// its body. Everything about it is bounded: its size, the time to send it, the number of
// requests at once, and the number of wrong tokens of an address. What a request contains
// is never logged, and an error does not repeat the configuration to strangers.
package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/surface/access"
)

// Limits of requests.
const (
	maxRequests = 256 // at the same time
	maxStrange  = 64  // of them, whose sender is only known after their body was read
	bodyTime    = 10 * time.Second
	acceptTime  = 15 * time.Second

	maxFailures = 20 // wrong tokens of an address in a window
	window      = time.Minute
	lockout     = time.Minute
)

// Options are the dependencies of a Handler. All are required.
type Options struct {
	Log *slog.Logger
	// Hooks returns the webhooks in force.
	Hooks func() *webhook.Hooks
	// Accept is [webhook.Acceptor.Accept].
	Accept func(context.Context, *webhook.Hooks, webhook.Request) (webhook.Receipt, error)
}

// Handler handles the requests below the path of the webhooks.
type Handler struct {
	o       Options
	limit   *access.Limiter
	slots   chan struct{}
	strange chan struct{}
}

// New returns a Handler.
func New(o Options) *Handler {
	return &Handler{
		o: o, limit: access.NewLimiter(maxFailures, window, lockout), slots: make(chan struct{}, maxRequests),
		strange: make(chan struct{}, maxStrange),
	}
}

// answer is the answer to an accepted request.
type answer struct {
	OK        bool   `json:"ok"`
	Mode      string `json:"mode,omitempty"` // of wake
	Run       string `json:"runId,omitempty"`
	Session   string `json:"sessionKey,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Skipped   bool   `json:"skipped,omitempty"`
}

// Kinds of errors, for programs.
const (
	kindInvalid      = "invalid_request_error"
	kindUnauthorized = "unauthorized"
	kindLimited      = "rate_limited"
	kindUnavailable  = "unavailable"
)

// ServeHTTP handles a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hooks := h.o.Hooks()
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // not every connection supports deadlines
	name, ok := strings.CutPrefix(r.URL.Path, hooks.Path()+"/")
	if !ok || !hooks.Enabled() {
		access.Error(w, http.StatusNotFound, "not_found", "webhooks are not enabled here")
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		access.Error(w, http.StatusMethodNotAllowed, kindInvalid, "send a POST request")
		return
	}
	from := access.FromContext(r.Context())
	if left := h.limit.Locked(from.Addr); left > 0 {
		retry(w, http.StatusTooManyRequests, kindLimited, "too many requests with a wrong token; try again later", left)
		return
	}
	name = strings.Trim(name, "/")
	given, token := credential(r)
	authentic := hooks.Opens(token)
	if given && !authentic || !authentic && !hooks.Signed(name) {
		h.refuse(w, from, name)
		return
	}
	if authentic && !hooks.Known(name) {
		access.Error(w, http.StatusNotFound, "not_found", "there is no webhook "+strconv.Quote(clip(name)))
		return
	}
	if !h.enter(w, authentic) {
		return
	}
	defer h.leave(authentic)
	body, ok := readBody(w, r, hooks.MaxBody())
	if !ok {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), acceptTime)
	defer cancel()
	got, err := h.o.Accept(ctx, hooks, webhook.Request{
		Name:   name,
		Header: r.Header,
		Query:  r.URL.Query(),
		Body:   body,
		Token:  authentic,
	})
	switch {
	case errors.Is(err, webhook.ErrUnauthorized):
		h.refuse(w, from, name)
	case err != nil:
		h.fail(w, name, err)
	default:
		out := answer{OK: true, Run: string(got.Run), Duplicate: !got.New && !got.Skipped, Skipped: got.Skipped}
		switch {
		case got.Skipped:
		case got.Action == webhook.Agent:
			out.Session = string(got.Session)
		case got.Now:
			out.Mode = "now"
		default:
			out.Mode = "next-heartbeat"
		}
		access.WriteJSON(w, http.StatusOK, out)
	}
}

// credential returns the token in the headers of a request, and whether there is one.
func credential(r *http.Request) (given bool, token string) {
	if v := r.Header.Get("Authorization"); v != "" {
		word, token, _ := strings.Cut(v, " ")
		if !strings.EqualFold(word, "Bearer") {
			return true, ""
		}
		return true, strings.TrimSpace(token)
	}
	for _, name := range [...]string{"X-Openclaw-Token", "X-Chela-Token"} {
		if v := r.Header.Get(name); v != "" {
			return true, v
		}
	}
	return false, ""
}

// refuse answers a request without a good token or signature.
func (h *Handler) refuse(w http.ResponseWriter, from access.Source, name string) {
	if h.limit.Add(from.Addr) {
		h.o.Log.Warn("too many webhook requests with a wrong token", "from", from.String(),
			"locked out for", lockout.String())
	}
	h.o.Log.Debug("webhook refused", "from", from.String(), "name", clip(name))
	w.Header().Set("WWW-Authenticate", "Bearer")
	access.Error(w, http.StatusUnauthorized, kindUnauthorized,
		"Unauthorized: send the token in the header Authorization: Bearer TOKEN")
}

// enter takes a place for a request. If there is none, it answers the request.
func (h *Handler) enter(w http.ResponseWriter, authentic bool) bool {
	ok := authentic || take(h.strange)
	if ok && !take(h.slots) {
		if ok = false; !authentic {
			<-h.strange
		}
	}
	if !ok {
		retry(w, http.StatusServiceUnavailable, kindUnavailable, "too many requests at the same time", time.Second)
	}
	return ok
}

func (h *Handler) leave(authentic bool) {
	<-h.slots
	if !authentic {
		<-h.strange
	}
}

// take takes a place, and reports whether there was one.
func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// fail answers a request that could not be accepted.
func (h *Handler) fail(w http.ResponseWriter, name string, err error) {
	switch code := chela.CodeOf(err); {
	case errors.Is(err, webhook.ErrBusy):
		retry(w, http.StatusTooManyRequests, kindLimited, "too many requests are waiting; try again later", time.Second)
		return
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, chela.ErrClosed),
		code == chela.CodeUnavailable:
		retry(w, http.StatusServiceUnavailable, kindUnavailable, "the request was not accepted in time", time.Second)
	case errors.Is(err, chela.ErrFull), code == chela.CodeFull:
		retry(w, http.StatusServiceUnavailable, kindUnavailable, "the gateway cannot store the request", time.Minute)
	case code == chela.CodeInvalid:
		access.Error(w, http.StatusBadRequest, kindInvalid, err.Error())
	case code == chela.CodeForbidden:
		access.Error(w, http.StatusForbidden, "forbidden", err.Error())
	case code == chela.CodeNotFound:
		access.Error(w, http.StatusNotFound, "not_found", err.Error())
	case code == chela.CodeConflict:
		access.Error(w, http.StatusConflict, "conflict", err.Error())
	default:
		h.o.Log.Error("webhook failed", "name", clip(name), "err", err)
		access.Error(w, http.StatusInternalServerError, "internal",
			"the request could not be processed; the log of the gateway says why")
	}
}

// retry answers a request that may be repeated after a time.
func retry(w http.ResponseWriter, status int, kind, text string, after time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((after+time.Second-1)/time.Second))))
	access.Error(w, status, kind, text)
}

// readBody reads the body of a request. If it cannot, it answers the request.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	if v := r.Header.Get("Content-Type"); v != "" {
		kind, _, err := mime.ParseMediaType(v)
		if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
			access.Error(w, http.StatusUnsupportedMediaType, kindInvalid,
				"send the body as JSON, with Content-Type: application/json")
			return nil, false
		}
	}
	if r.ContentLength > most {
		tooLarge(w, most)
		return nil, false
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		tooLarge(w, most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		access.Error(w, http.StatusRequestTimeout, kindInvalid, "the body did not arrive in time")
	case err != nil:
		access.Error(w, http.StatusBadRequest, kindInvalid, "cannot read the body")
	default:
		return b, true
	}
	return nil, false
}

func tooLarge(w http.ResponseWriter, most int64) {
	w.Header().Set("Connection", "close")
	access.Error(w, http.StatusRequestEntityTooLarge, kindInvalid, "the body has more than "+strconv.FormatInt(most, 10)+
		" bytes (hooks.maxBodyBytes)")
}

// clip returns the beginning of a name, for a log.
func clip(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}
