package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

const (
	maxBody = 1 << 20 // bytes of a post
	maxAge  = 5 * time.Minute
)

// Path returns the path of the posts, or "" in Socket Mode.
func (b *bot) Path() string { return b.path }

// ServeHTTP receives an event, a pressed button or a slash command. A request is answered
// with status 200 only after the sink accepted its message; otherwise Slack repeats it.
func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.path == "" {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	at, signature, ok := signed(r.Header, time.Now())
	if !ok {
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusRequestEntityTooLarge)
		return
	}
	if !secret.New(sign(b.signing, at, body)).Equal(secret.New(signature)) {
		http.Error(w, "wrong signature", http.StatusUnauthorized)
		return
	}
	kind, payload, ok := posted(r.Header.Get("Content-Type"), body)
	if !ok {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if kind == "url_verification" {
		var v struct {
			Challenge string `json:"challenge"`
		}
		_ = json.Unmarshal(payload, &v) // it is valid JSON: posted read it
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, v.Challenge)
		return
	}
	if kind == "" {
		return
	}
	done := make(chan struct{})
	if !b.running.Load() || !b.add(job{kind: kind, payload: payload, arrived: time.Now(), ack: func() { close(done) }}) {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	t := time.NewTimer(ackTime)
	defer t.Stop()
	select {
	case <-done:
		w.WriteHeader(http.StatusOK)
	case <-t.C:
		http.Error(w, "not accepted yet", http.StatusServiceUnavailable)
	case <-r.Context().Done():
	}
}

// signed returns the timestamp and the signature of a request, or false if one is missing
// or cannot be right.
func signed(h http.Header, now time.Time) (at, signature string, ok bool) {
	ats, signatures := h.Values("X-Slack-Request-Timestamp"), h.Values("X-Slack-Signature")
	if len(ats) != 1 || len(signatures) != 1 {
		return "", "", false
	}
	at, signature = ats[0], signatures[0]
	sec, err := strconv.ParseInt(at, 10, 64)
	if err != nil || strconv.FormatInt(sec, 10) != at || sec < 0 || sec > 1<<40 {
		return "", "", false
	}
	if age := now.Sub(time.Unix(sec, 0)); age > maxAge || age < -maxAge {
		return "", "", false
	}
	return at, signature, len(signature) == len("v0=")+2*sha256.Size
}

// sign returns the signature of a body.
func sign(key secret.Value, at string, body []byte) string {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	h.Write([]byte("v0:" + at + ":"))
	h.Write(body)
	return "v0=" + hex.EncodeToString(h.Sum(nil))
}

// posted returns the kind of a post, as in an envelope, and its payload. The kind is empty
// if there is nothing to do.
func posted(contentType string, body []byte) (kind string, payload json.RawMessage, ok bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, false
	}
	switch media {
	case "application/json":
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(body, &head) != nil {
			return "", nil, false
		}
		switch head.Type {
		case "event_callback":
			return "events_api", body, true
		case "url_verification":
			return head.Type, body, true
		}
		return "", nil, true
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return "", nil, false
		}
		if p := form.Get("payload"); p != "" {
			return "interactive", json.RawMessage(p), json.Valid([]byte(p))
		}
		if form.Get("command") == "" { // a check of the certificate
			return "", nil, true
		}
		payload, err := json.Marshal(commandOf(form))
		return "slash_commands", payload, err == nil
	}
	return "", nil, false
}
