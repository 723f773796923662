package httpchat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/channel/httpchat"
	"github.com/chela-ai/chela/internal/plugin/channel/httpchat/httpchattest"
)

const key = "0123456789abcdef-secret"

const everything = `, "abilities": ["edit", "delete", "react", "typing"]`

// rig is an account with a program that it chats with.
type rig struct {
	channel.Channel
	server *httpchattest.Server
	log    *strings.Builder
	mu     sync.Mutex
	got    []chela.Inbound
	fail   []error
}

func (r *rig) sink(_ context.Context, in chela.Inbound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fail) > 0 {
		err := r.fail[0]
		r.fail = r.fail[1:]
		if err != nil {
			return err
		}
	}
	r.got = append(r.got, in)
	return nil
}

func (r *rig) take() []chela.Inbound {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

func env(s *httpchattest.Server, w io.Writer) channel.Env {
	return channel.Env{
		Log: slog.New(slog.NewTextHandler(w, nil)), Getenv: func(string) string { return "" }, Report: func(error) {},
		Trusted: func(...string) *http.Client { return s.Client() },
	}
}

func open(t *testing.T, s *httpchattest.Server, account, more string) *rig {
	t.Helper()
	r := &rig{server: s, log: new(strings.Builder)}
	c, err := httpchat.Factory().New(env(s, r.log), account,
		json.RawMessage(`{"secret": "`+key+`", "url": "`+s.URL+`"`+more+`}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Channel = c
	return r
}

// run runs an account in a bubble while f runs.
func run(t *testing.T, more string, f func(t *testing.T, r *rig)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := httpchattest.New(key)
		defer s.Close()
		r := open(t, s, "default", more)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx, r.sink) }()
		synctest.Wait()
		f(t, r)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if p := s.Problems(); len(p) > 0 {
			t.Errorf("the program refused %q", p)
		}
	})
}

// post posts a request and returns the status and the body of the answer.
func (r *rig) post(q *http.Request) (int, string) {
	w := httptest.NewRecorder()
	r.Channel.(http.Handler).ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

func at(id string) chela.Address {
	return chela.Address{Channel: "httpchat", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

func body(in chela.Inbound) string {
	b, _ := json.Marshal(map[string]any{
		"id": in.ID, "chat": map[string]any{"id": in.Address.Peer.ID, "kind": in.Address.Peer.Kind},
		"sender": map[string]any{"id": in.Sender.ID, "name": in.Sender.Name}, "text": in.Text,
	})
	return string(b)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		s := httpchattest.New(key)
		t.Cleanup(s.Close)
		r := open(t, s, "default", everything)
		return channeltest.Harness{
			Channel: plain{r.Channel}, Address: at("7"), Other: at("8"), Once: true,
			Shown: func(a chela.Address) []string { return s.Shown(a.Peer.ID) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				return httpchattest.Post(ctx, r.Channel.(http.Handler), key, "/httpchat", body(in))
			},
		}
	})
}

// plain is the channel without Find, which has no answer but no, so that the suite cannot
// ask it.
type plain struct{ channel.Channel }

func (p plain) As(target any) bool {
	if _, ok := target.(*channel.Finder); ok {
		return false
	}
	return p.Channel.(channel.Varied).As(target)
}

const hello = `{"id": "1", "chat": {"id": "7", "kind": "direct"}, "sender": {"id": "7", "name": "Ann"}, "text": "hello"}`

// TestForged checks that no request is accepted that the program did not sign for the
// account and the time.
func TestForged(t *testing.T) {
	var forged []func() *http.Request
	add := func(f func() *http.Request) { forged = append(forged, f) }
	good := func() *http.Request { return httpchattest.Request(key, "/httpchat", time.Now(), hello) }
	with := func(change func(*http.Request)) {
		add(func() *http.Request { r := good(); change(r); return r })
	}
	signed := func(k, text string) {
		add(func() *http.Request { return httpchattest.Request(k, "/httpchat", time.Now(), text) })
	}
	// Wrong secrets.
	for _, k := range []string{"another secret of 24 bytes", "", key + " ", key[1:],
		strings.ToUpper(key), key + "x", "0"} {
		signed(k, hello)
	}
	// Wrong times.
	for _, d := range []time.Duration{-301 * time.Second, 302 * time.Second, -time.Hour, time.Hour, -24 * time.Hour,
		24 * time.Hour, -50 * 365 * 24 * time.Hour} {
		add(func() *http.Request { return httpchattest.Request(key, "/httpchat", time.Now().Add(d), hello) })
	}
	for _, stamp := range []string{"", "0", "-1", "now", "1e9", "0x6553f100", " 1760000000", "+1760000000",
		"99999999999999999999", "1760000000.0"} {
		with(func(r *http.Request) { r.Header.Set(signature.TimestampHeader, stamp) })
	}
	with(func(r *http.Request) { r.Header.Del(signature.TimestampHeader) })
	with(func(r *http.Request) {
		r.Header.Add(signature.TimestampHeader, r.Header.Get(signature.TimestampHeader))
	})
	// Wrong signatures.
	for _, change := range []func(string) string{
		func(string) string { return "" }, func(s string) string { return s[:len(s)-1] },
		func(s string) string { return s + "0" },
		func(s string) string { return strings.TrimPrefix(s, "v1=") }, func(s string) string { return "v0=" + s[3:] },
		func(s string) string { return "V1=" + s[3:] },
		func(string) string { return "v1=" + strings.Repeat("0", 64) }, func(string) string { return "v1=" },
		func(s string) string { return s + "," + s },
		func(s string) string { return " " + s }, func(s string) string { return "sha256=" + s[3:] },
		func(s string) string { return s[:3] + s[4:] + s[3:4] },
	} {
		with(func(r *http.Request) {
			r.Header.Set(signature.SignatureHeader, change(r.Header.Get(signature.SignatureHeader)))
		})
	}
	with(func(r *http.Request) { r.Header.Del(signature.SignatureHeader) })
	with(func(r *http.Request) {
		r.Header[signature.SignatureHeader] = []string{r.Header.Get(signature.SignatureHeader),
			"v1=" + strings.Repeat("0", 64)}
	})
	with(func(r *http.Request) {
		r.Header[signature.SignatureHeader] = []string{"v1=" + strings.Repeat("0", 64),
			r.Header.Get(signature.SignatureHeader)}
	})
	with(func(r *http.Request) { // in other headers
		s := r.Header.Get(signature.SignatureHeader)
		r.Header.Del(signature.SignatureHeader)
		r.Header.Set("X-Signature", s)
		r.Header.Set("Authorization", "Bearer "+key)
	})
	with(func(r *http.Request) { // in the address
		r.URL.RawQuery = signature.SignatureHeader + "=" + r.Header.Get(signature.SignatureHeader)
		r.Header.Del(signature.SignatureHeader)
	})
	// Other bodies.
	for _, text := range []string{"", hello[:len(hello)-1], hello + " ", strings.Replace(hello, "hello", "Hello", 1),
		strings.Replace(hello, `"7"`, `"8"`, 1), "{}", "null"} {
		with(func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		})
	}
	with(func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader(hello), broken{})) })
	with(func(r *http.Request) { // the time belongs to another request
		other := httpchattest.Request(key, "/httpchat", time.Now().Add(time.Second), "{}")
		r.Header.Set(signature.TimestampHeader, other.Header.Get(signature.TimestampHeader))
	})
	// Signed, but no messages for this account.
	for _, text := range []string{
		`[` + hello + `]`, hello + hello, `null`, `5`, `"x"`, `{}`, `{"id": "1"}`,
		`{"op": "send", "key": "k", "chat": {"id": "7", "kind": "direct"}, "text": "x"}`,
		`{"op": "edit", "account": "default", "chat": {"id": "7", "kind": "direct"}, "id": "1", "text": "sent back"}`,
		strings.Replace(hello, `{`, `{"account": "work", `, 1), strings.Replace(hello, `"id": "1"`, `"id": 1`, 1),
		strings.Replace(hello, `"text": "hello"`, `"media": [{"url": "file:///etc/passwd"}]`, 1),
		strings.Replace(hello, `"direct"`, `"admin"`, 1),
		strings.Replace(hello, `"text": "hello"`, `"media": [{"source": "x"}]`, 1),
	} {
		signed(key, text)
	}
	if len(forged) < 60 {
		t.Fatalf("only %d requests", len(forged))
	}
	run(t, "", func(t *testing.T, r *rig) {
		for i, f := range forged {
			q := f()
			if code, text := r.post(q); code != 400 && code != 401 {
				t.Errorf("request %d: %d %s (%v)", i, code, text, q.Header)
			} else if strings.Contains(text, key) {
				t.Errorf("request %d: the answer has the secret", i)
			}
		}
		if got := r.take(); len(got) > 0 {
			t.Errorf("accepted %+v", got)
		}
		// One that is accepted, and its repetition.
		q := good()
		again := q.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(hello))
		if code, text := r.post(q); code != 200 || text != "{\"accepted\":true}\n" {
			t.Errorf("%d %s", code, text)
		}
		for range 3 {
			if code, text := r.post(again.Clone(t.Context())); code != 400 && code != 401 {
				t.Errorf("repeated: %d %s", code, text)
			}
			again.Body = io.NopCloser(strings.NewReader(hello))
		}
		if got := r.take(); len(got) != 1 {
			t.Errorf("accepted %+v", got)
		}
		time.Sleep(time.Second)
		if code, text := r.post(good()); code != 200 {
			t.Errorf("signed again: %d %s", code, text)
		}
		// The same for another account with the same secret.
		work := open(t, r.server, "work", "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = work.Run(ctx, work.sink) }()
		synctest.Wait()
		if code, text := work.post(httpchattest.Request(key, "/httpchat/work", time.Now(), hello)); code != 400 {
			t.Errorf("of another account: %d %s", code, text)
		}
		if code, _ := work.post(httpchattest.Request(key, "/httpchat/work", time.Now(),
			strings.Replace(hello, `{`, `{"account": "work", `, 1))); code != 200 || len(work.take()) != 1 {
			t.Errorf("of the account: %d", code)
		}
		cancel()
		<-done
	})
}

// broken is a body that is cut.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReceive(t *testing.T) {
	t.Run("a whole message", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			const text = `{"op": "message", "account": "default", "id": "17", "chat": {"id": "42", "kind": "group", "name": "Friends"}, "thread": "t", "sender": {"id": "7", "bot": true},
				"text": "x", "media": [{"name": "a", "type": "text/plain", "data": "aGk="}, {"url": "https://example.org/a.png", "bytes": 5}], "replyTo": "16", "mentioned": true, "time": "1970-01-01T00:00:05Z"}`
			if code, answer := r.post(httpchattest.Request(key, "/httpchat", time.Now(), text)); code != 200 {
				t.Fatalf("%d %s", code, answer)
			}
			in := r.take()[0]
			if in.Address != (chela.Address{Channel: "httpchat", Account: "default", Peer: chela.Peer{Kind: chela.Group,
				ID: "42"}, Thread: "t"}) || in.Group != "Friends" ||
				!in.Mentioned || in.ReplyTo != "16" || !in.Sender.Bot || in.Time.Unix() != 5 || string(in.Media[0].Data) != "hi" ||
				in.Media[1].Source != "https://example.org/a.png" || in.Media[1].Bytes != 5 {
				t.Errorf("%+v", in)
			}
		})
	})
	t.Run("not before it was accepted", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			r.fail = []error{chela.ErrFull, errors.New("disk"), nil, chela.Errorf(chela.CodeForbidden, "a stranger")}
			for _, want := range []int{503, 503, 200} {
				if code, text := r.post(httpchattest.Request(key, "/httpchat", time.Now(), hello)); code != want {
					t.Errorf("%d %s, want %d", code, text, want)
				}
			}
			time.Sleep(time.Second)
			if code, text := r.post(httpchattest.Request(key, "/httpchat", time.Now(), hello)); code != 200 ||
				text != "{\"accepted\":false}\n" {
				t.Errorf("refused: %d %s", code, text)
			}
		})
	})
	t.Run("only while Run runs", func(t *testing.T) {
		s := httpchattest.New(key)
		defer s.Close()
		r := open(t, s, "default", "")
		if code, text := r.post(httpchattest.Request(key, "/httpchat", time.Now(), hello)); code != 503 {
			t.Errorf("%d %s", code, text)
		}
	})
	t.Run("other methods and large bodies", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			q := httpchattest.Request(key, "/httpchat", time.Now(), hello)
			q.Method = http.MethodPut
			if code, _ := r.post(q); code != 405 {
				t.Errorf("PUT: %d", code)
			}
			large := string(bytes.Repeat([]byte("x"), 8<<20+1))
			if code, _ := r.post(httpchattest.Request(key, "/httpchat", time.Now(), large)); code != 413 {
				t.Errorf("large: %d", code)
			}
			q = httpchattest.Request(key, "/httpchat", time.Now(), large)
			q.ContentLength = -1
			if code, _ := r.post(q); code != 413 {
				t.Errorf("large, without its length: %d", code)
			}
		})
	})
	t.Run("many at once", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			pr, pw := io.Pipe() // a body that does not end
			defer pw.Close()
			for range 8 {
				go func() {
					q := httpchattest.Request(key, "/httpchat", time.Now(), hello)
					q.Body, q.ContentLength = pr, -1
					r.post(q)
				}()
			}
			synctest.Wait()
			if code, text := r.post(httpchattest.Request(key, "/httpchat", time.Now(), hello)); code != 503 {
				t.Errorf("%d %s", code, text)
			}
			_ = pw.Close()
			synctest.Wait()
			if code, text := r.post(httpchattest.Request(key, "/httpchat", time.Now(), hello)); code != 200 {
				t.Errorf("%d %s", code, text)
			}
		})
	})
	t.Run("signatures are forgotten when they are not valid any more", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			q := httpchattest.Request(key, "/httpchat", time.Now().Add(5*time.Minute), hello)
			for _, pause := range []time.Duration{0, 5 * time.Minute, 5 * time.Minute, time.Second} {
				time.Sleep(pause)
				again := q.Clone(t.Context())
				again.Body = io.NopCloser(strings.NewReader(hello))
				r.post(again)
			}
			if n := len(r.take()); n != 1 {
				t.Errorf("accepted %d times", n)
			}
		})
	})
}

func TestSend(t *testing.T) {
	part := channel.Part{Key: "k", Address: at("7"), Text: "hello"}
	for name, tt := range map[string]struct {
		fault httpchattest.Fault
		want  string
		shown int
	}{
		"429":                    {httpchattest.Fault{Status: 429, RetryAfter: "7"}, "after 7s", 0},
		"500":                    {httpchattest.Fault{Status: 500}, "temporary", 0},
		"500 after it was shown": {httpchattest.Fault{Status: 500, Accept: true}, "temporary", 1},
		"503":                    {httpchattest.Fault{Status: 503, RetryAfter: "2"}, "after 2s", 0},
		"400":                    {httpchattest.Fault{Status: 400}, "permanent", 0},
		"401":                    {httpchattest.Fault{Status: 401}, "permanent", 0},
		"404":                    {httpchattest.Fault{Status: 404}, "permanent", 0},
		"410":                    {httpchattest.Fault{Status: 410}, "gone", 0},
		"302":                    {httpchattest.Fault{Status: 302}, "permanent", 0},
		"cut":                    {httpchattest.Fault{}, "ambiguous", 0},
		"cut after it was shown": {httpchattest.Fault{Accept: true}, "ambiguous", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, "", func(t *testing.T, r *rig) {
				r.server.Fail(tt.fault)
				_, err := r.Send(t.Context(), part)
				if got := kind(err); got != tt.want || strings.Contains(fmt.Sprint(err), "in-the-url") {
					t.Errorf("%s (%v), want %s", got, err, tt.want)
				}
				if n := len(r.server.Shown("7")); n != tt.shown {
					t.Errorf("%d messages, want %d", n, tt.shown)
				}
				if got, err := r.Send(t.Context(), part); err != nil || got.ID != "m1" || len(r.server.Shown("7")) != 1 {
					t.Errorf("repeated: %+v, %v, %q", got, err, r.server.Shown("7"))
				}
			})
		})
	}
	t.Run("an answer without an id", func(t *testing.T) {
		run(t, everything, func(t *testing.T, r *rig) {
			r.server.Plain()
			got, err := r.Send(t.Context(), part)
			if err != nil || got.ID != "k" {
				t.Fatalf("%+v, %v", got, err)
			}
			e, _ := channel.As[channel.Editor](r.Channel)
			if err := e.Edit(t.Context(), at("7"), got.ID, "changed"); err != nil ||
				!slices.Equal(r.server.Shown("7"), []string{"changed"}) {
				t.Errorf("%v, %q", err, r.server.Shown("7"))
			}
		})
	})
	t.Run("what is sent", func(t *testing.T) {
		run(t, everything, func(t *testing.T, r *rig) {
			if _, err := r.Send(t.Context(), part); err != nil {
				t.Fatal(err)
			}
			if want := `{"op":"send","account":"default","key":"k","chat":{"id":"7","kind":"direct"},"text":"hello"}`; r.server.Last() != want {
				t.Errorf("%s", r.server.Last())
			}
			re, _ := channel.As[channel.Reactor](r.Channel)
			ty, _ := channel.As[channel.Typer](r.Channel)
			de, _ := channel.As[channel.Deleter](r.Channel)
			if err := errors.Join(re.React(t.Context(), at("7"), "m1", "👍"), ty.Typing(t.Context(), at("7")),
				de.Delete(t.Context(), at("7"), "m1")); err != nil {
				t.Error(err)
			}
			if err := re.React(t.Context(), at("7"), "m9", "👍"); kind(err) != "gone" {
				t.Error(err)
			}
			if got := r.server.Calls(); !slices.Equal(got, []string{"send", "react", "typing", "delete", "react"}) {
				t.Errorf("%q", got)
			}
		})
	})
	t.Run("nothing and too much", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			for _, p := range []channel.Part{{Key: "k", Address: at("7")},
				{Key: "k", Address: at("7"), Media: []chela.Media{{Data: make([]byte, 20<<20+1)}}}} {
				if _, err := r.Send(t.Context(), p); kind(err) != "permanent" {
					t.Error(err)
				}
			}
			if n := len(r.server.Calls()); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	})
	t.Run("an unknown outcome is repeated", func(t *testing.T) {
		run(t, "", func(t *testing.T, r *rig) {
			f, ok := channel.As[channel.Finder](r.Channel)
			if !ok {
				t.Fatal("no Finder")
			}
			if _, ok, err := f.Find(t.Context(), at("7"), "k"); ok || err != nil {
				t.Error(ok, err)
			}
		})
	})
}

// kind says what an error means.
func kind(err error) string {
	refused, ok := errors.AsType[*channel.Error](err)
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, channel.ErrAmbiguous):
		return "ambiguous"
	case errors.Is(err, channel.ErrGone):
		return "gone"
	case !ok:
		return "other"
	case refused.Permanent:
		return "permanent"
	case refused.RetryAfter > 0:
		return "after " + refused.RetryAfter.String()
	}
	return "temporary"
}

func TestFetch(t *testing.T) {
	run(t, "", func(t *testing.T, r *rig) {
		f, ok := channel.As[channel.Fetcher](r.Channel)
		if !ok {
			t.Fatal("no Fetcher")
		}
		m, err := f.Fetch(t.Context(), chela.Media{Name: "a", Source: "http://chat.test/file"}, 7)
		if err != nil || string(m.Data) != "content" || m.Type != "image/png" || m.Source != "" {
			t.Errorf("%+v, %v", m, err)
		}
		for _, source := range []string{"http://chat.test/missing", "http://chat.test/moved", "http://chat.test/\n"} {
			if _, err := f.Fetch(t.Context(), chela.Media{Source: source}, 7); kind(err) != "permanent" {
				t.Errorf("%s: %v", source, err)
			}
		}
		if _, err := f.Fetch(t.Context(), chela.Media{Source: "http://chat.test/file"}, 6); err == nil {
			t.Error("more bytes than permitted were accepted")
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := httpchattest.New(key)
	defer s.Close()
	e := env(s, io.Discard)
	e.Getenv = func(name string) string { return map[string]string{"HTTPCHAT_SECRET": key}[name] }
	const url = `"url": "https://example.org/x"`
	for section, want := range map[string]string{
		`{` + url + `}`:                        "", // the variable
		`{` + url + `, "secret": "short"}`:     "at least 16 bytes",
		`{` + url + `, "secret": "env:NONE"}`:  "secret: secret env:NONE",
		`{"secret": "` + key + `"}`:            "no url for the answers (type: chela config set channels.httpchat",
		`{"url": "ftp://x/token"}`:             "url: want a URL",
		`{"url": "https://a:b@x/token"}`:       "url: want a URL",
		`{"url": "token"}`:                     "url: want a URL",
		`{` + url + `, "path": "x"}`:           `path is "x"`,
		`{` + url + `, "path": "/"}`:           `path is "/"`,
		`{` + url + `, "path": "/a/../b"}`:     `path is "/a/../b"`,
		`{` + url + `, "path": "/a?b"}`:        "path is",
		`{` + url + `, "path": "/own/path"}`:   "",
		`{` + url + `, "abilities": ["fly"]}`:  `"fly" is not one of edit, delete, react, typing`,
		`{` + url + `, "abilities": ["edit"]}`: "",
		`{` + url + `, "secret": 5}`:           "secret",
	} {
		_, err := httpchat.Factory().New(e, "default", json.RawMessage(section))
		if (err == nil) != (want == "") ||
			err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "token")) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
	if _, err := httpchat.Factory().New(e, "work", json.RawMessage(`{`+url+`}`)); err == nil ||
		!strings.Contains(err.Error(), "chela config set channels.httpchat.accounts.work '{") {
		t.Errorf("the variable of another account: %v", err)
	}
	for account, want := range map[string]string{"default": "/httpchat", "work": "/httpchat/work"} {
		if got := open(t, s, account, "").Channel.(channel.Poster).Path(); got != want {
			t.Errorf("%s: %s", account, got)
		}
	}
	has := func(c channel.Channel) (out []bool) {
		_, edit := channel.As[channel.Editor](c)
		_, remove := channel.As[channel.Deleter](c)
		_, react := channel.As[channel.Reactor](c)
		_, typing := channel.As[channel.Typer](c)
		_, poll := channel.As[channel.Poller](c)
		return []bool{edit, remove, react, typing, poll}
	}
	for _, tt := range []struct {
		c    channel.Channel
		want []bool
	}{
		{open(t, s, "default", "").Channel, []bool{false, false, false, false, false}},
		{open(t, s, "default", `, "abilities": ["edit", "typing"]`).Channel, []bool{true, false, false, true, false}},
		{httpchat.Factory().Can, []bool{true, true, true, true, false}},
	} {
		if got := has(tt.c); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
	f := httpchat.Factory()
	if f.Identity(json.RawMessage(`{"path": "/a"}`)) != "/a" || f.Identity(json.RawMessage(`{}`)) != "" {
		t.Error("the identity is not the path")
	}
}

// TestSocket runs both directions over sockets.
func TestSocket(t *testing.T) {
	t.Parallel()
	s, err := httpchattest.Listen(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := open(t, s, "default", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx, r.sink) }()
	defer func() { cancel(); <-done }()
	gateway := httptest.NewServer(r.Channel.(http.Handler))
	defer gateway.Close()
	for code := 503; code == 503; { // until Run runs
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway.URL+"/httpchat", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		signature.Set(q.Header, secret.New(key), time.Now(), []byte(hello))
		res, err := gateway.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if code = res.StatusCode; code != 200 && code != 503 {
			t.Fatalf("status %d", code)
		}
	}
	if in := r.take(); len(in) != 1 || in[0].Text != "hello" {
		t.Fatalf("%+v", in)
	}
	if _, err := r.Send(ctx, channel.Part{Key: "k", Address: at("7"), Text: "answer"}); err != nil ||
		!slices.Equal(s.Shown("7"), []string{"answer"}) {
		t.Errorf("%v, %q", err, s.Shown("7"))
	}
}

func FuzzPost(f *testing.F) {
	for _, s := range []string{hello, `{}`, `null`, `{"op": "edit"}`,
		`{"id": "1", "chat": {"id": "7"}, "media": [{"url": "http://x/"}], "edited": true, "time": "2026-01-01T00:00:00Z"}`} {
		f.Add(s)
	}
	s := httpchattest.New(key)
	f.Cleanup(s.Close)
	c, err := httpchat.Factory().New(env(s, io.Discard), "default",
		json.RawMessage(`{"secret": "`+key+`", "url": "`+s.URL+`"}`))
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan chela.Inbound, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx, func(_ context.Context, in chela.Inbound) error {
			if in.ID == "" || in.Address.Peer.ID == "" || in.Sender.ID == "" || in.Address.Account != "default" {
				panic(fmt.Sprintf("accepted %+v", in))
			}
			select {
			case got <- in:
			default:
			}
			return nil
		})
	}()
	f.Cleanup(func() { cancel(); <-done })
	f.Fuzz(func(t *testing.T, text string) {
		w := httptest.NewRecorder()
		c.(http.Handler).ServeHTTP(w, httpchattest.Request(key, "/httpchat", time.Now(), text))
		if w.Code == 200 {
			select {
			case <-got:
			default:
				t.Errorf("%q: 200 without a message", text)
			}
		}
	})
}
