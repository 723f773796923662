package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/webhook"
)

func hooks(t *testing.T) *webhook.Hooks {
	t.Helper()
	h, err := webhook.Parse(json.RawMessage(`{"enabled": true, "token": "the-token", "mappings": [{"match": {"path": "signed"}, "secret": "s", "messageTemplate": "{{x}}"}]}`),
		func(string) string { return "" }, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestErrors checks the answers to requests that were not accepted.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		retry  bool
	}{
		{fmt.Errorf("x: %w", webhook.ErrBusy), http.StatusTooManyRequests, true},
		{fmt.Errorf("x: %w", webhook.ErrUnauthorized), http.StatusUnauthorized, false},
		{fmt.Errorf("x: %w", chela.ErrFull), http.StatusServiceUnavailable, true},
		{fmt.Errorf("x: %w", chela.ErrClosed), http.StatusServiceUnavailable, true},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), http.StatusServiceUnavailable, true},
		{chela.Errorf(chela.CodeUnavailable, "x"), http.StatusServiceUnavailable, true},
		{chela.Errorf(chela.CodeInvalid, "x"), http.StatusBadRequest, false},
		{chela.Errorf(chela.CodeForbidden, "x"), http.StatusForbidden, false},
		{chela.Errorf(chela.CodeNotFound, "x"), http.StatusNotFound, false},
		{chela.Errorf(chela.CodeConflict, "x"), http.StatusConflict, false},
		{errors.New("private detail"), http.StatusInternalServerError, false},
	} {
		h := New(Options{
			Log: slog.New(slog.DiscardHandler), Hooks: func() *webhook.Hooks { return hooks(t) },
			Accept: func(context.Context, *webhook.Hooks, webhook.Request) (webhook.Receipt, error) {
				return webhook.Receipt{}, tt.err
			},
		})
		r := httptest.NewRequest(http.MethodPost, "/hooks/agent", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer the-token")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || (w.Header().Get("Retry-After") != "") != tt.retry ||
			strings.Contains(w.Body.String(), "private") || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%v: %d %v %s", tt.err, w.Code, w.Header(), w.Body)
		}
	}
}

// TestSlots checks that strangers do not take the places of those who have the token.
func TestSlots(t *testing.T) {
	t.Parallel()
	proceed, arrived := make(chan struct{}), make(chan struct{}, maxRequests)
	all := hooks(t)
	h := New(Options{
		Log: slog.New(slog.DiscardHandler), Hooks: func() *webhook.Hooks { return all },
		Accept: func(context.Context, *webhook.Hooks, webhook.Request) (webhook.Receipt, error) {
			arrived <- struct{}{}
			<-proceed
			return webhook.Receipt{Action: webhook.Agent, New: true}, nil
		},
	})
	post := func(name, token string) int {
		r := httptest.NewRequest(http.MethodPost, "/hooks/"+name, strings.NewReader("{}"))
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var wg sync.WaitGroup
	for range maxStrange {
		wg.Go(func() { post("signed", "") })
	}
	for range maxStrange {
		<-arrived
	}
	if got := post("signed", ""); got != http.StatusServiceUnavailable {
		t.Errorf("a stranger too many: %d", got)
	}
	for range maxRequests - maxStrange {
		wg.Go(func() { post("agent", "the-token") })
	}
	for range maxRequests - maxStrange {
		<-arrived
	}
	for _, name := range []string{"agent", "signed"} {
		if got := post(name, "the-token"); got != http.StatusServiceUnavailable {
			t.Errorf("a request too many to %s: %d", name, got)
		}
	}
	close(proceed)
	wg.Wait()
	if a, s := len(h.slots), len(h.strange); a != 0 || s != 0 {
		t.Errorf("%d and %d places are still taken", a, s)
	}
}
