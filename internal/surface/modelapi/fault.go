package modelapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
)

// object is a value to be encoded as JSON.
type object = map[string]any

// orNull returns s, or null if it is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// fault is why a request gets no answer.
type fault struct {
	status int
	text   string // for people
	code   string // for programs; "": none
	param  string // the member of the request; "": none
	after  int    // seconds after which the request may be repeated; 0: unknown
	final  bool   // the same request would not be answered either
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// write answers a request with a fault.
func write(w http.ResponseWriter, of form, f *fault) {
	h := w.Header()
	if f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(f.after))
	}
	if f.final { // the clients of OpenAI and Anthropic repeat others
		h.Set("X-Should-Retry", "false")
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	access.WriteJSON(w, f.status, of.fault(f))
}

// faultOf returns the fault for an error that kept a message from being accepted.
func faultOf(log *slog.Logger, err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	text := chela.PeopleText(err)
	if hint := chela.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	switch code := chela.CodeOf(err); {
	case errors.Is(err, chela.ErrFull), code == chela.CodeFull:
		return &fault{status: http.StatusServiceUnavailable, text: text, after: 60}
	case errors.Is(err, chela.ErrClosed), errors.Is(err, context.Canceled), code == chela.CodeUnavailable:
		return &fault{status: http.StatusServiceUnavailable, text: "the gateway cannot accept messages now; try again later",
			after: 1}
	case code == chela.CodeInvalid:
		return &fault{status: http.StatusBadRequest, text: text}
	case code == chela.CodeForbidden:
		return &fault{status: http.StatusForbidden, text: text}
	case code == chela.CodeNotFound:
		return &fault{status: http.StatusNotFound, text: text}
	case code == chela.CodeConflict:
		return &fault{status: http.StatusConflict, text: text, final: true}
	}
	log.Error("a message over HTTP was not accepted", "err", err)
	return &fault{status: http.StatusInternalServerError, text: text}
}
