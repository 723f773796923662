package external_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/external"
	"github.com/chela-ai/chela/internal/plugin/channel/external/externaltest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// line is what a scripted program reads.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// quit ends a scripted program with an exit code.
type quit int

// script returns a program that answers initialize, and passes what else it reads to f,
// which writes lines with say.
func script(f func(m line, say func(string))) externaltest.Program {
	return scriptFrom(`{"protocolVersion": 1, "name": "test", "abilities": []}`, f)
}

func scriptFrom(initialize string, f func(m line, say func(string))) externaltest.Program {
	return func(ctx context.Context, in io.Reader, out, _ io.Writer) (code int) {
		defer func() {
			if q, ok := recover().(quit); ok {
				code = int(q)
			}
		}()
		say := func(s string) { _, _ = io.WriteString(out, s+"\n") }
		lines := bufio.NewReader(in)
		for {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				return 0
			}
			var m line
			if err := json.Unmarshal(text, &m); err != nil {
				panic(err)
			}
			if m.Method == "initialize" {
				say(`{"jsonrpc": "2.0", "id": ` + string(m.ID) + `, "result": ` + initialize + `}`)
			}
			if f != nil {
				f(m, say)
			}
		}
	}
}

func answer(m line, result string) string {
	return `{"jsonrpc": "2.0", "id": ` + string(m.ID) + `, "result": ` + result + `}`
}

func refuse(m line, fault string) string {
	return `{"jsonrpc": "2.0", "id": ` + string(m.ID) + `, "error": ` + fault + `}`
}

// rig is an account whose programs are scripts.
type rig struct {
	channel.Channel
	broker  *externaltest.Broker
	mu      sync.Mutex
	log     strings.Builder
	reports []error
	got     []chela.Inbound
	fail    []error
	ended   error // of Run
	over    bool
}

func (r *rig) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// state returns the last report.
func (r *rig) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) == 0 {
		return "no report"
	}
	return fmt.Sprint(r.reports[len(r.reports)-1])
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

func (r *rig) ids() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.got {
		out = append(out, in.ID)
	}
	return out
}

// run runs an account in a bubble while f runs. Each start of the program is the next one.
func run(t *testing.T, o external.Options, f func(t *testing.T, r *rig), programs ...externaltest.Program) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{broker: &externaltest.Broker{Programs: programs}}
		o.Name, o.Command, o.Broker = "box", "/program", r.broker
		r.Channel = open(t, o, channel.Env{
			Log: slog.New(slog.NewTextHandler(r, nil)),
			Report: func(err error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.reports = append(r.reports, err)
			},
		}, `{}`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := r.Run(ctx, r.sink)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended, r.over = err, true
		}()
		synctest.Wait()
		f(t, r)
		cancel()
		<-done
		if n := r.broker.Running(); n != 0 {
			t.Errorf("%d programs run after Run has returned", n)
		}
	})
}

var ann = chela.Address{Channel: "box", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}

func (r *rig) send(ctx context.Context, text string) (channel.Receipt, error) {
	return r.Send(ctx, channel.Part{Key: "k", Address: ann, Text: text})
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
		return "other: " + err.Error()
	case refused.Permanent:
		return "permanent"
	case refused.RetryAfter > 0:
		return "after " + refused.RetryAfter.String()
	}
	return "temporary"
}

func TestErrors(t *testing.T) {
	for fault, want := range map[string]string{
		`{"code": -32000, "message": "x"}`:                                          "temporary",
		`{"code": -32000, "message": "x", "data": {"permanent": true}}`:             "permanent",
		`{"code": -32000, "message": "x", "data": {"retryAfterMs": 1500}}`:          "after 1.5s",
		`{"code": -32000, "message": "x", "data": {"retryAfterMs": 1e300}}`:         "after 24h0m0s",
		`{"code": -32000, "message": "x", "data": {"retryAfterMs": -5}}`:            "temporary",
		`{"code": -32000, "message": "x", "data": {"ambiguous": true}}`:             "ambiguous",
		`{"code": -32000, "message": "x", "data": {"gone": true}}`:                  "gone",
		`{"code": -32000, "message": "x", "data": ["other"]}`:                       "temporary",
		`{"code": -32601, "message": "x"}`:                                          "permanent",
		`{"code": -32602, "message": ""}`:                                           "permanent",
		`{"code": -32000, "message": "a\u0007b\nc", "data": {"permanent": "text"}}`: "temporary",
	} {
		t.Run(fault, func(t *testing.T) {
			run(t, external.Options{}, func(t *testing.T, r *rig) {
				_, err := r.send(t.Context(), "hello")
				if got := kind(err); got != want || strings.ContainsAny(err.Error(), "\n\a") {
					t.Errorf("%s (%v), want %s", got, err, want)
				}
			}, script(func(m line, say func(string)) {
				if m.Method == "send" {
					say(refuse(m, fault))
				}
			}))
		})
	}
}

func TestSend(t *testing.T) {
	t.Run("a receipt without an id is ambiguous", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			if _, err := r.send(t.Context(), "hello"); kind(err) != "ambiguous" {
				t.Errorf("%v", err)
			}
		}, script(func(m line, say func(string)) {
			if m.Method == "send" {
				say(answer(m, `{}`))
			}
		}))
	})
	t.Run("an empty message and too large attachments are refused without a request", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			if _, err := r.send(t.Context(), ""); kind(err) != "permanent" {
				t.Errorf("empty: %v", err)
			}
			_, err := r.Send(t.Context(),
				channel.Part{Key: "k", Address: ann, Media: []chela.Media{{Data: make([]byte, 20<<20+1)}}})
			if kind(err) != "permanent" {
				t.Errorf("large: %v", err)
			}
		}, script(func(m line, _ func(string)) {
			if m.Method == "send" {
				panic("a request was sent")
			}
		}))
	})
	t.Run("attachments and buttons", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			got, err := r.Send(t.Context(), channel.Part{
				Key:     "k",
				Address: ann,
				Text:    "x",
				Media:   []chela.Media{{Name: "a", Type: "text/plain", Data: []byte("hi")}},
				Buttons: [][]channel.Button{{{Label: "Yes", Data: "/yes"}}},
			})
			if err != nil || got.ID != "5" || !got.Time.Equal(time.Unix(0, 0)) {
				t.Errorf("%+v, %v", got, err)
			}
		}, script(func(m line, say func(string)) {
			const want = `{"key":"k","chat":{"id":"ann","kind":"direct"},"text":"x","media":[{"name":"a","type":"text/plain","data":"aGk="}],"buttons":[[{"label":"Yes","data":"/yes"}]]}`
			if m.Method == "send" && string(m.Params) == want {
				say(answer(m, `{"id": "5", "time": "1970-01-01T00:00:00Z"}`))
			} else if m.Method == "send" {
				say(refuse(m, `{"code": 1, "message": "wrong params"}`))
			}
		}))
	})
	t.Run("the program dies in the middle: ambiguous, and it is started again", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			if _, err := r.send(t.Context(), "hello"); kind(err) != "ambiguous" ||
				!strings.Contains(err.Error(), "exit status 3") {
				t.Errorf("%v", err)
			}
			if _, err := r.send(t.Context(), "hello"); kind(err) != "after 2s" {
				t.Errorf("while it does not run: %v", err)
			}
			synctest.Wait()
			if s := r.state(); !strings.Contains(s, "exit status 3") {
				t.Errorf("reported %q", s)
			}
			time.Sleep(5 * time.Second)
			if got, err := r.send(t.Context(), "hello"); err != nil || got.ID != "1" {
				t.Errorf("%+v, %v", got, err)
			}
			if s := r.state(); s != "<nil>" {
				t.Errorf("reported %q", s)
			}
		}, script(func(m line, _ func(string)) {
			if m.Method == "send" {
				panic(quit(3))
			}
		}), script(func(m line, say func(string)) {
			if m.Method == "send" {
				say(answer(m, `{"id": "1"}`))
			}
		}))
	})
	t.Run("the program dies before it reads: not sent", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			long := strings.Repeat("x", 1<<20)
			errs := make(chan error, 2)
			go func() { _, err := r.send(t.Context(), long); errs <- err }()
			synctest.Wait() // it is being read
			go func() { _, err := r.send(t.Context(), "second"); errs <- err }()
			time.Sleep(15 * time.Second)
			got := []string{kind(<-errs), kind(<-errs)}
			slices.Sort(got)
			if want := []string{"after 2s", "ambiguous"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}, func(ctx context.Context, in io.Reader, out, _ io.Writer) int {
			_, _ = bufio.NewReader(in).ReadBytes('\n')
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"abilities":[]}}`+"\n")
			time.Sleep(10 * time.Second)
			return 0
		})
	})
	t.Run("no answer: ambiguous after a minute, and the program is started again", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			began := time.Now()
			_, err := r.send(t.Context(), "hello")
			if kind(err) != "ambiguous" || time.Since(began) != time.Minute {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			time.Sleep(10 * time.Second)
			if n := len(r.broker.Plans()); n != 2 {
				t.Errorf("%d starts, want 2", n)
			}
		}, script(nil))
	})
	t.Run("no answer to one of several requests: the program goes on", func(t *testing.T) {
		run(t, external.Options{Abilities: []string{"typing"}}, func(t *testing.T, r *rig) {
			errs := make(chan error)
			go func() { _, err := r.send(t.Context(), "hello"); errs <- err }()
			time.Sleep(30 * time.Second)
			ty, ok := channel.As[channel.Typer](r.Channel)
			if !ok {
				t.Fatal("no Typer")
			}
			if err := ty.Typing(t.Context(), ann); err != nil {
				t.Error(err)
			}
			if err := <-errs; kind(err) != "ambiguous" {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			if n := len(r.broker.Plans()); n != 1 {
				t.Errorf("%d starts, want 1", n)
			}
		}, scriptFrom(`{"protocolVersion": 1, "abilities": ["typing"]}`, func(m line, say func(string)) {
			if m.Method == "typing" {
				say(answer(m, `{}`))
			}
		}))
	})
	t.Run("the caller's context ends: ambiguous, because the program has read it", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := r.send(ctx, "hello"); kind(err) != "ambiguous" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}, script(nil))
	})
}

// request returns a message of the program with an id.
func message(id string) string {
	return `{"jsonrpc": "2.0", "id": "r` + id + `", "method": "message", "params": {"id": "` + id +
		`", "chat": {"id": "ann"}, "text": "hello"}}`
}

func TestMessages(t *testing.T) {
	t.Run("they are answered in order, after they were accepted", func(t *testing.T) {
		var answers []string
		var at []time.Time
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			r.mu.Lock()
			r.fail = []error{nil, chela.ErrFull, chela.Errorf(chela.CodeForbidden, "no"), nil}
			r.mu.Unlock()
			_, _ = r.send(t.Context(), "go")
			began := time.Now()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got, want := answers,
				[]string{`"r1" {}`, `"r2" {"code":-32001,"message":"the message is not accepted","data":{"permanent":true}}`,
					`"r3" {}`}; !slices.Equal(got, want) {
				t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
			}
			if got := r.ids(); !slices.Equal(got, []string{"1", "3"}) {
				t.Errorf("accepted %q", got)
			}
			if d := at[1].Sub(began); d < 500*time.Millisecond {
				t.Errorf("the second answer after %v", d)
			}
		}, script(func(m line, say func(string)) {
			switch m.Method {
			case "send":
				say(answer(m, `{"id": "1"}`))
				say(message("1") + "\n" + message("2") + "\n" + message("3"))
			case "":
				answers, at = append(answers, string(m.ID)+" "+string(m.Result)+string(m.Error)), append(at, time.Now())
			}
		}))
	})
	t.Run("a flood is told to wait", func(t *testing.T) {
		var accepted, busy int
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			r.mu.Lock()
			for range 100 {
				r.fail = append(r.fail, chela.ErrFull)
			}
			r.mu.Unlock()
			_, _ = r.send(t.Context(), "go")
			synctest.Wait()
			if busy < 2000-34 || busy > 2000-32 {
				t.Errorf("%d of 2000 were told to wait", busy)
			}
			r.mu.Lock()
			r.fail = nil
			r.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			if accepted+busy != 2000 {
				t.Errorf("%d accepted, %d busy", accepted, busy)
			}
		}, script(func(m line, say func(string)) {
			switch {
			case m.Method == "send":
				say(answer(m, `{"id": "1"}`))
				for i := range 2000 {
					say(message(fmt.Sprint(i)))
				}
			case m.Method == "" && strings.Contains(string(m.Error), `"retryAfterMs":1000`):
				busy++
			case m.Method == "":
				accepted++
			}
		}))
	})
	t.Run("wrong messages are refused for good", func(t *testing.T) {
		var answers []string
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			_, _ = r.send(t.Context(), "go")
			synctest.Wait()
			for i, want := range []string{"id is missing", "cannot unmarshal", "source without the ability fetch",
				"neither data nor source", "no such method"} {
				if i >= len(answers) || !strings.Contains(answers[i], want) {
					t.Errorf("answers %q, want %q", answers, want)
				}
			}
			if got := r.ids(); len(got) > 0 {
				t.Errorf("accepted %q", got)
			}
		}, script(func(m line, say func(string)) {
			switch m.Method {
			case "send":
				say(answer(m, `{"id": "1"}`))
				for _, params := range []string{
					`{"chat": {"id": "ann"}, "text": "x"}`, `{"id": 5}`,
					`{"id": "1", "chat": {"id": "ann"}, "media": [{"source": "x"}]}`,
					`{"id": "1", "chat": {"id": "ann"}, "media": [{"name": "x"}]}`,
				} {
					say(`{"jsonrpc": "2.0", "id": 7, "method": "message", "params": ` + params + `}`)
				}
				say(`{"jsonrpc": "2.0", "id": 7, "method": "other", "params": {}}`)
				say(`{"jsonrpc": "2.0", "method": "other", "params": {}}`)
			case "":
				answers = append(answers, string(m.Error))
			}
		}))
	})
	t.Run("a message that comes with the answer to initialize", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			if got := r.ids(); !slices.Equal(got, []string{"1"}) {
				t.Errorf("accepted %q", got)
			}
		}, script(func(m line, say func(string)) {
			if m.Method == "initialize" {
				say(message("1"))
			}
		}))
	})
}

// TestBreaches checks that a program that breaks the protocol is started again.
func TestBreaches(t *testing.T) {
	for name, tt := range map[string]struct{ says, want string }{
		"an object that is no frame": {`{"hello": 1}`, `jsonrpc is not "2.0"`},
		"broken JSON":                {`{"jsonrpc": "2.0", `, "want an object of JSON-RPC"},
		"a line that is too long":    {`{"x": "` + strings.Repeat("x", 32<<20), "a line of more than"},
		"an id that is an object":    {`{"jsonrpc": "2.0", "id": {}, "method": "message"}`, "neither a number nor a text"},
		"a result without an id":     {`{"jsonrpc": "2.0", "id": null, "result": {}}`, "a result without an id"},
		"it did not understand": {
			`{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse error"}}`,
			"did not understand a request: parse error"},
		"a state that is none": {`{"jsonrpc": "2.0", "method": "state", "params": []}`, "state: "},
		"both a method and a result": {`{"jsonrpc": "2.0", "id": 1, "method": "x", "result": {}}`,
			"both a method and a result"},
		"neither method nor result": {`{"jsonrpc": "2.0", "id": 1}`, "neither method, result nor error"},
		"a list of frames":          {`{"jsonrpc": ["2.0"]}`, "want an object of JSON-RPC"},
		"an id that is too long": {`{"jsonrpc": "2.0", "id": "` + strings.Repeat("x", 200) + `", "method": "message"}`,
			"the id has more than"},
		"both a result and an error": {`{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1}}`,
			"both a result and an error"},
		"another version of JSON-RPC 1": {`{"id": 1, "result": {}}`, `jsonrpc is not "2.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, external.Options{}, func(t *testing.T, r *rig) {
				if s := r.state(); !strings.Contains(s, tt.want) {
					t.Errorf("reported %q, want %q", s, tt.want)
				}
				time.Sleep(10 * time.Second)
				if s := r.state(); s != "<nil>" || len(r.broker.Plans()) != 2 {
					t.Errorf("reported %q, %d starts", s, len(r.broker.Plans()))
				}
			}, script(func(m line, say func(string)) {
				if m.Method == "initialize" {
					say(tt.says)
				}
			}), script(nil))
		})
	}
	t.Run("a program that reads nothing", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			time.Sleep(32 * time.Second)
			if s := r.state(); !strings.Contains(s, "does not answer") && !strings.Contains(s, "no answer") {
				t.Errorf("reported %q", s)
			}
			time.Sleep(10 * time.Second)
			if n := len(r.broker.Plans()); n != 2 {
				t.Errorf("%d starts, want 2", n)
			}
		}, externaltest.Hang)
	})
	t.Run("a program that does not read its answers", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			waittest.Until(t, "the report", func() bool { return strings.Contains(r.state(), "does not read its input") })
		}, func(ctx context.Context, in io.Reader, out, _ io.Writer) int {
			_, _ = bufio.NewReader(in).ReadBytes('\n')
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"abilities":[]}}`+"\n")
			bad := `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 90) + `","method":"nothing"}` + "\n"
			for range 400_000 {
				if _, err := io.WriteString(out, bad); err != nil {
					break
				}
			}
			<-ctx.Done()
			return 1
		})
	})
	t.Run("pauses grow", func(t *testing.T) {
		run(t, external.Options{}, func(t *testing.T, r *rig) {
			time.Sleep(time.Hour)
			if n := len(r.broker.Plans()); n < 90 || n > 170 {
				t.Errorf("%d starts in an hour", n)
			}
		}, func(context.Context, io.Reader, io.Writer, io.Writer) int { return 1 })
	})
}

func TestInitialize(t *testing.T) {
	for name, tt := range map[string]struct {
		result, want string
		abilities    []string
	}{
		"the program has less": {`{"protocolVersion": 1, "abilities": ["edit"]}`,
			"the program has the abilities [edit], but the manifest declares [delete edit]", []string{"edit", "delete"}},
		"the program has more": {`{"protocolVersion": 1, "abilities": ["edit", "fly"]}`,
			"the program has the abilities [edit fly], but the manifest declares [edit]", []string{"edit"}},
		"abilities are missing":   {`{"protocolVersion": 1}`, "the program has the abilities [], but", []string{"edit"}},
		"another version":         {`{"protocolVersion": 2, "abilities": []}`, "version 2 of the protocol, not 1", nil},
		"no version":              {`{}`, "version 0 of the protocol", nil},
		"it refuses the settings": {"", "initialize: wrong token", nil},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, external.Options{Abilities: tt.abilities}, func(t *testing.T, r *rig) {
				time.Sleep(5 * time.Second)
				r.mu.Lock()
				defer r.mu.Unlock()
				refused, _ := errors.AsType[*channel.Error](r.ended)
				if !r.over || refused == nil || !refused.Permanent || !strings.Contains(r.ended.Error(), tt.want) {
					t.Errorf("Run: %v, %v; want %q", r.over, r.ended, tt.want)
				}
			}, func(ctx context.Context, in io.Reader, out, log io.Writer) int {
				if tt.result != "" {
					return scriptFrom(tt.result, nil)(ctx, in, out, log)
				}
				_, _ = bufio.NewReader(in).ReadBytes('\n')
				_, _ = io.WriteString(out,
					`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"wrong token","data":{"permanent":true}}}`+"\n")
				<-ctx.Done()
				return 0
			})
		})
	}
	t.Run("its order of abilities does not matter", func(t *testing.T) {
		run(t, external.Options{Abilities: []string{"edit", "delete"}}, func(t *testing.T, r *rig) {
			if s := r.state(); s != "<nil>" {
				t.Errorf("reported %q", s)
			}
		}, scriptFrom(`{"protocolVersion": 1, "abilities": ["delete", "edit"]}`, nil))
	})
}

func TestState(t *testing.T) {
	lost := `{"jsonrpc": "2.0", "method": "state", "params": {"connected": false, "error": "no network"}}`
	run(t, external.Options{}, func(t *testing.T, r *rig) {
		if s := r.state(); s != "no network" {
			t.Errorf("reported %q", s)
		}
		_, _ = r.send(t.Context(), "up")
		if s := r.state(); s != "<nil>" {
			t.Errorf("reported %q", s)
		}
		_, _ = r.send(t.Context(), "refused")
		time.Sleep(5 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if refused, _ := errors.AsType[*channel.Error](r.ended); refused == nil || !refused.Permanent ||
			!strings.Contains(refused.Error(), "banned") {
			t.Errorf("Run: %v", r.ended)
		}
	}, script(func(m line, say func(string)) {
		switch {
		case m.Method == "initialize":
			say(lost)
		case strings.Contains(string(m.Params), "up"):
			say(`{"jsonrpc": "2.0", "method": "state", "params": {"connected": true}}`)
			say(answer(m, `{"id": "1"}`))
		case m.Method == "send":
			say(`{"jsonrpc": "2.0", "method": "state", "params": {"connected": false, "error": "banned", "permanent": true}}`)
		}
	}))
}

func TestLog(t *testing.T) {
	run(t, external.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }},
		func(t *testing.T, r *rig) {
			log := r.logged()
			if strings.Contains(log, "s3cret") || !strings.Contains(log, "token ***") || !strings.Contains(log, "on stdout") {
				t.Errorf("%.2000s", log)
			}
			if n := strings.Count(log, "msg=program"); n > 60 {
				t.Errorf("%d lines", n)
			}
			if len(log) > 40_000 || strings.Contains(log, "\a") {
				t.Errorf("%d bytes in the log", len(log))
			}
			if s := r.state(); !strings.Contains(s, `it printed last: \"the last\"`) &&
				!strings.Contains(s, `it printed last: "the last"`) {
				t.Errorf("reported %q", s)
			}
		}, func(ctx context.Context, in io.Reader, out, log io.Writer) int {
			_, _ = io.WriteString(out, "a banner on stdout\n")
			_, _ = io.WriteString(log, "token s3cret\a\n"+strings.Repeat("y", 1<<20)+"\n")
			for range 10_000 {
				_, _ = io.WriteString(log, "flood\n")
			}
			_, _ = io.WriteString(log, "the last")
			return 1
		})
}

func TestAbilities(t *testing.T) {
	types := map[string]func(channel.Channel) bool{}
	for name, has := range map[string]func(channel.Channel) bool{
		"edit":   has[channel.Editor],
		"delete": has[channel.Deleter],
		"react":  has[channel.Reactor],
		"typing": has[channel.Typer],
		"find":   has[channel.Finder],
		"fetch":  has[channel.Fetcher],
		"poll":   has[channel.Poller],
		"pin":    has[channel.Pinner],

		"thread": has[channel.Threader],
		"read":   has[channel.Reader],
		"search": has[channel.Directory],
		"probe":  has[channel.Prober],
		"menu":   has[channel.Menuer],
	} {
		types[name] = has
	}
	if len(types) != len(external.Abilities()) {
		t.Errorf("%d abilities, %q", len(types), external.Abilities())
	}
	for _, one := range external.Abilities() {
		f, err := external.Factory(external.Options{Name: "box", Command: "x", Abilities: []string{one}})
		if err != nil {
			t.Fatal(err)
		}
		for name, has := range types {
			if got := has(f.Can); got != (name == one) {
				t.Errorf("with %s: %s is %v", one, name, got)
			}
		}
		if has[channel.Poster](f.Can) {
			t.Errorf("with %s: it is a Poster", one)
		}
	}
	if _, err := external.Factory(external.Options{Name: "box", Command: "x", Abilities: []string{"fly"}}); err == nil ||
		!strings.Contains(err.Error(), `"fly": want some of edit`) {
		t.Error(err)
	}
}

func has[T any](c channel.Channel) bool {
	_, ok := channel.As[T](c)
	return ok
}

func TestCalls(t *testing.T) {
	all := external.Abilities()
	names, _ := json.Marshal(all)
	const place = `"chat":{"id":"ann","kind":"direct"}`
	wants := map[string][2]string{ // params and result
		"edit":   {`{` + place + `,"id":"1","text":"x"}`, `{}`},
		"delete": {`{` + place + `,"id":"1"}`, `{}`},
		"react":  {`{` + place + `,"id":"1","emoji":""}`, `{}`},
		"typing": {`{` + place + `}`, `null`},
		"find":   {`{` + place + `,"key":"k"}`, `{"found": true, "id": "9"}`},
		"fetch":  {`{"source":"s","name":"n","type":"t","maxBytes":3}`, `{"data": "aGk=", "type": "text/plain"}`},
		"poll": {`{"key":"k",` + place +
			`,"question":"q","options":["a","b"],"multiple":true,"public":false,"openMs":1000}`, `{"id": "9"}`},
		"pin":    {`{` + place + `,"id":"1","pinned":false}`, `{}`},
		"thread": {`{` + place + `,"name":"n"}`, `{"thread": "t"}`},
		"read":   {`{` + place + `,"limit":1}`, `{"messages": [{"id": "1"}, {"id": "2", "sender": {"id": "7", "name": "Ann"}, "own": true, "text": "x", "time": "1970-01-01T00:00:00Z"}]}`},
		"search": {`{"kind":"group","query":"q","limit":1}`,
			`{"entries": [{"id": "5", "name": "N", "handle": "h"}, {"id": "6"}]}`},
		"probe": {`{}`, `{}`},
		"menu":  {`{"commands":[{"name":"new","description":"d"}]}`, `{}`},
	}
	run(t, external.Options{Abilities: all}, func(t *testing.T, r *rig) {
		ctx := t.Context()
		check := func(name string, got any, err error, want any) {
			t.Helper()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
			}
		}
		check("edit", nil, as[channel.Editor](t, r).Edit(ctx, ann, "1", "x"), nil)
		check("delete", nil, as[channel.Deleter](t, r).Delete(ctx, ann, "1"), nil)
		check("react", nil, as[channel.Reactor](t, r).React(ctx, ann, "1", ""), nil)
		check("typing", nil, as[channel.Typer](t, r).Typing(ctx, ann), nil)
		found, ok, err := as[channel.Finder](t, r).Find(ctx, ann, "k")
		check("find", []any{found.ID, ok}, err, []any{"9", true})
		m, err := as[channel.Fetcher](t, r).Fetch(ctx, chela.Media{Source: "s", Name: "n", Type: "t"}, 3)
		check("fetch", m, err, chela.Media{Name: "n", Type: "text/plain", Data: []byte("hi")})
		sent, err := as[channel.Poller](t, r).Poll(ctx, channel.Poll{
			Key:      "k",
			Address:  ann,
			Question: "q",
			Options:  []string{"a", "b"},
			Multiple: true,
			Open:     time.Second,
		})
		check("poll", sent.ID, err, "9")
		check("pin", nil, as[channel.Pinner](t, r).Pin(ctx, ann, "1", false), nil)
		made, err := as[channel.Threader](t, r).Thread(ctx, ann, "n")
		check("thread", made, err, chela.Address{Channel: "box", Account: "default", Peer: ann.Peer, Thread: "t"})
		list, err := as[channel.Reader](t, r).Read(ctx, ann, 1)
		check("read", list, err, []channel.Message{{ID: "2", Sender: chela.Sender{ID: "7", Name: "Ann"}, Own: true, Text: "x",
			Time: time.Unix(0, 0).UTC()}})
		entries, err := as[channel.Directory](t, r).Search(ctx, chela.Group, "q", 1)
		check("search", entries, err, []channel.Entry{{Peer: chela.Peer{Kind: chela.Group, ID: "5"}, Name: "N", Handle: "h"}})
		check("probe", nil, as[channel.Prober](t, r).Probe(ctx), nil)
		check("menu", nil, as[channel.Menuer](t, r).Menu(ctx, []channel.Command{{Name: "new", Doc: "d"}}), nil)
		if _, err := as[channel.Fetcher](t, r).Fetch(ctx, chela.Media{Source: "s", Name: "n", Type: "t"}, 1); err == nil {
			t.Error("more bytes than permitted were accepted")
		}
	}, scriptFrom(`{"protocolVersion": 1, "abilities": `+string(names)+`}`, func(m line, say func(string)) {
		w, ok := wants[m.Method]
		if !ok {
			return
		}
		if got := string(m.Params); got != w[0] && m.Method != "fetch" {
			say(refuse(m, fmt.Sprintf(`{"code": 1, "message": %q}`, "params "+got)))
			return
		}
		say(answer(m, w[1]))
	}))
}

func as[T any](t *testing.T, r *rig) T {
	t.Helper()
	a, ok := channel.As[T](r.Channel)
	if !ok {
		t.Fatalf("no %T", (*T)(nil))
	}
	return a
}

func TestStart(t *testing.T) {
	t.Parallel()
	t.Run("the program gets only what the configuration names", func(t *testing.T) {
		var initialize string
		run(t, external.Options{
			Env:     map[string]string{"PLUGIN_DATA": "/data"},
			Environ: []string{"PATH=/bin", "OPENAI_API_KEY=s3cret"},
			Args:    []string{"-v"},
			Version: "1.2",
			Rights:  &sandbox.Rights{Workspace: "/plugin"},
		}, func(t *testing.T, r *rig) {
			p := r.broker.Plans()[0]
			if want := []string{"PATH=/bin", "PLUGIN_DATA=/data"}; !slices.Equal(p.Env, want) || p.Path != "/program" ||
				!slices.Equal(p.Argv, []string{"/program", "-v"}) || p.Rights == nil {
				t.Errorf("%+v", p)
			}
			if want := `{"protocolVersion":1,"chelaVersion":"1.2","channel":"box","account":"default","settings":{}}`; initialize != want {
				t.Errorf("initialize %s", initialize)
			}
		}, script(func(m line, _ func(string)) {
			if m.Method == "initialize" {
				initialize = string(m.Params)
			}
		}))
	})
	t.Run("a token is resolved", func(t *testing.T) {
		f, err := external.Factory(external.Options{Name: "box", Command: "x"})
		if err != nil {
			t.Fatal(err)
		}
		env := channel.Env{Getenv: func(name string) string { return map[string]string{"BOX": "s3cret"}[name] }}
		for section, want := range map[string]string{
			`{"token": "env:BOX"}`: "", `{"token": "env:NONE"}`: "token: secret env:NONE", `{"token": 5}`: "token: ",
			`[]`: "want an object",
		} {
			if _, err := f.New(env, "default", json.RawMessage(section)); (err == nil) != (want == "") ||
				err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", section, err, want)
			}
		}
	})
	t.Run("what must not be started is not", func(t *testing.T) {
		checks := 0
		run(t, external.Options{Check: func() error { checks++; return errors.New("it was changed") }},
			func(t *testing.T, r *rig) {
				if s := r.state(); !strings.Contains(s, "it was changed") || len(r.broker.Plans()) != 0 || checks != 1 {
					t.Errorf("reported %q, %d starts", s, len(r.broker.Plans()))
				}
			}, script(nil))
	})
	t.Run("without a broker Run ends", func(t *testing.T) {
		c := open(t, external.Options{Name: "box", Command: "x"}, channel.Env{}, `{}`)
		refused, _ := errors.AsType[*channel.Error](c.Run(t.Context(), nil))
		if refused == nil || !refused.Permanent {
			t.Error(refused)
		}
	})
	t.Run("a program that is missing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := open(t, external.Options{Name: "box", Command: "no-such-program", Broker: host.Broker{}},
			channel.Env{Report: func(err error) {
				if !strings.Contains(err.Error(), "no-such-program is not in PATH") {
					t.Error(err)
				}
				cancel()
			}}, `{}`)
		if err := c.Run(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestStubborn checks that a process that ignores the end of its input, and TERM, is ended
// with what it started.
func TestStubborn(t *testing.T) {
	sh := sandbox.Look(os.Environ())("sh")
	if sh == "" {
		needtest.Missing(t, "a shell")
	}
	t.Parallel()
	dir := t.TempDir()
	const stubborn = `trap '' TERM
read line
(trap '' TERM; while :; do date +%N > beat; sleep 0.02; done) &
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"abilities":[]}}'
while :; do sleep 0.02; done`
	up := make(chan error, 1)
	c := open(t, external.Options{
		Name:    "box",
		Command: sh,
		Args:    []string{"-c", stubborn},
		Dir:     dir,
		Broker:  host.Broker{},
		Environ: os.Environ(),
	},
		channel.Env{Report: func(err error) { up <- err }}, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx, nil) }()
	if err := <-up; err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	beat := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "beat"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		return string(b)
	}
	before := beat()
	time.Sleep(150 * time.Millisecond) // several beats
	if after := beat(); after != before {
		t.Error("a descendant of the program still runs")
	}
}
