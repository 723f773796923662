package chelatest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/postgres"
	"github.com/chela-ai/chela/internal/plugin/store/postgres/postgrestest"
	"github.com/chela-ai/chela/internal/test/toy/postbox"
)

// member is one of several gateways on a database. Its model answers when it may.
type member struct {
	t      *testing.T
	dir    string
	model  *llmtest.Script
	asked  chan string   // the messages that its model got
	answer chan struct{} // closed: the model answers
	log    *memberLog
	chats  *postbox.Platform
	g      chan *Gateway // once it serves
}

// memberLog is a log that a test reads.
type memberLog struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (r *memberLog) Handle(ctx context.Context, rec slog.Record) error {
	line := rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	r.mu.Lock()
	r.lines = append(r.lines, line)
	r.mu.Unlock()
	return r.Handler.Handle(ctx, rec)
}

func (r *memberLog) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, func(line string) bool { return strings.Contains(line, text) })
}

// startMember starts a gateway with a port, in the background: it may have to wait.
func startMember(t *testing.T, name, url string, port int) *member {
	t.Helper()
	m := &member{
		t:      t,
		dir:    t.TempDir(),
		asked:  make(chan string, 100),
		answer: make(chan struct{}),
		g:      make(chan *Gateway, 1),
		chats:  new(postbox.Platform),
	}
	m.log = &memberLog{Handler: slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo})}
	m.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		text := r.Messages[len(r.Messages)-1].PlainText()
		m.asked <- text
		<-m.answer
		return llmtest.Say(name + " answers: " + text)
	})
	text := `{channels: {postbox: {allowFrom: ["p"], accounts: {home: {number: "1"}}}}}`
	if err := os.WriteFile(filepath.Join(m.dir, "chela.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Dir: m.dir, Model: m.model, Log: slog.New(m.log), Listen: &endpoint.Listen{Port: port},
		// The right to the database ends when the test says so, not by the clock.
		Store: &standard.Store{Open: func(ctx context.Context, _ string, o standard.StoreOptions) (standard.Database, error) {
			return postgres.Open(ctx, postgres.Options{URL: url, Log: o.Log, Name: name, TTL: time.Hour, Standby: o.Standby})
		}},
		Register: func(r *standard.Registry) { r.Channel(m.chats.Factory()) },
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		g, err := TryStart(t, o)
		if err != nil {
			if t.Context().Err() == nil {
				t.Errorf("start %s: %v", name, err)
			}
			return
		}
		m.g <- g
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, strings.Join(m.log.lines, "\n"))
		}
	})
	return m
}

// answerOf returns the answer of a path of a port.
func answerOf(t *testing.T, port int, path string) string {
	t.Helper()
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStandby cuts a gateway off from the database that it shares with another one, in the
// middle of a run.
func TestStandby(t *testing.T) {
	server := postgrestest.Start(t)
	url, link := server.URL(), server.Link(t)
	port := unusedPort(t)
	a := startMember(t, "a", link.Over(url), -1)
	first := waittest.For(t, "the first gateway", a.g)
	b := startMember(t, "b", url, port)
	waittest.Until(t, "the standby", func() bool { return b.log.has("standby: another gateway serves") })

	t.Run("LOOP-14 the second gateway waits, says so and starts nothing", func(t *testing.T) {
		if got := answerOf(t, port, "/startupz"); !strings.Contains(got, "standby") {
			t.Errorf("/startupz: %s", got)
		}
		if got := answerOf(t, port, "/"); !strings.Contains(got, "standby: another gateway serves") {
			t.Errorf("/: %s", got)
		}
		if !b.log.has("owner=a") {
			t.Errorf("the log does not say who serves: %q", b.log.lines)
		}
		if events := b.chats.Events(); len(events) > 0 {
			t.Errorf("it used a chat app: %q", events)
		}
	})
	address := chela.Address{Channel: "postbox", Account: "home", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
	in := chela.Inbound{ID: "1", Address: address, Sender: chela.Sender{ID: "p"}, Text: "hello"}
	if err := a.chats.Account("home").Say(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the model of the first gateway", a.asked)

	link.Cut()
	server.Exec(t, url, "UPDATE alive SET until = '-infinity' WHERE fence = 1")
	second := waittest.For(t, "the takeover", b.g)
	t.Run("the second gateway goes on, and the answer is sent once", func(t *testing.T) {
		if got := waittest.For(t, "the model of the second gateway", b.asked); !strings.Contains(got, "hello") {
			t.Errorf("it was asked %q", got)
		}
		link.Repair()
		close(a.answer) // the first one knows the answer first, and may neither store nor send it
		waittest.For(t, "the end of the first gateway", first.RestartRequested())
		first.Stop()
		close(b.answer)
		texts := func() []string { return b.chats.Account("home").Texts(address) }
		waittest.Until(t, "the answer", func() bool { return len(texts()) > 0 })
		second.Client().Ask("main", "something else") // the answer would have been sent twice by now
		if got := texts(); len(got) != 1 || !strings.HasPrefix(got[0], "b answers:") {
			t.Errorf("sent: %q", got)
		}
		if got := a.chats.Account("home").Texts(address); len(got) > 0 {
			t.Errorf("the first gateway sent %q", got)
		}
		if n := server.Exec(t, url, "SELECT count(*) FROM entry WHERE text LIKE 'a answers:%'"); n != "0" {
			t.Errorf("the first gateway stored %s answers", n)
		}
		if n := server.Exec(t, url, "SELECT count(*) FROM entry WHERE text LIKE '%hello%' AND role = 'user'"); n != "1" {
			t.Errorf("the message is stored %s times", n)
		}
	})
	t.Run("a gateway that was superseded is the standby of the other one", func(t *testing.T) {
		again := startMember(t, "again", link.Over(url), -1)
		waittest.Until(t, "the standby", func() bool { return again.log.has("standby: another gateway serves") })
		second.Stop()
		third := waittest.For(t, "the takeover", again.g)
		close(again.answer)
		if got := third.Client().Ask("main", "third"); !strings.Contains(got.Text, "again answers:") {
			t.Errorf("answer %+v", got)
		}
	})
}

// unusedPort returns a port that nobody listens on.
func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
