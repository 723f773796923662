package chelatest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/test/toy/postbox"
)

// TestAccounts changes the accounts of a channel while a run answers to one of
// them.
func TestAccounts(t *testing.T) {
	// with runs f while a message to the account home is answered. answer lets the
	// model answer, and returns when the answer was sent or waits to be sent.
	with := func(name string, f func(t *testing.T, b *accounts)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &accounts{t: t, p: new(postbox.Platform), proceed: make(chan struct{})}
				model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { <-b.proceed; return llmtest.Say("hello") })
				dir := t.TempDir()
				text := `{channels: {postbox: {allowFrom: ["p"], accounts: {home: {number: "1"}, work: {number: "2"}}}}}`
				if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				b.g = Start(t, Options{
					Dir: dir, Model: model, Wrap: func(s store.Store) store.Store { b.st = s; return s },
					Register: func(r *standard.Registry) { r.Channel(b.p.Factory()) },
				})
				in := chela.Inbound{ID: "1", Address: b.address("home"), Sender: chela.Sender{ID: "p"}, Text: "hi"}
				if err := b.p.Account("home").Say(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				f(t, b)
				b.g.Stop()
			})
		})
	}
	with("a changed account sends the answer with its new instance", func(t *testing.T, b *accounts) {
		b.configure(`{"home": {"number": "3"}}`)
		b.answer()
		b.sent("home", "hello")
		if diff := cmp.Diff([]string{"stop home 1", "start home 3"}, b.p.Events()[2:]); diff != "" {
			t.Error(diff)
		}
	})
	with("a removed account that is added again sends the answer", func(t *testing.T, b *accounts) {
		b.configure(`{"home": null}`)
		b.answer()
		time.Sleep(time.Hour)
		b.sent("home")
		b.configure(`{"home": {"number": "1"}}`)
		time.Sleep(time.Hour)
		b.sent("home", "hello")
	})
	with("the answer of a removed account waits until its age limit, then the owner is told",
		func(t *testing.T, b *accounts) {
			b.configure(`{"home": null}`)
			b.answer()
			time.Sleep(23 * time.Hour)
			const told = "the answer could not be delivered to postbox: channel postbox/home is not running"
			if row, lines := b.row(), b.lines(); row.State != outbox.Pending || slices.Contains(lines, told) {
				t.Errorf("the row is %s, transcript %q", row.State, lines)
			}
			time.Sleep(2 * time.Hour) // a row that waits is looked at every hour
			row, lines := b.row(), b.lines()
			if row.State != outbox.Failed ||
				len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l != told })) != 1 {
				t.Errorf("the row is %s: %s, transcript %q", row.State, row.Error, lines)
			}
			b.configure(`{"home": {"number": "1"}}`)
			time.Sleep(time.Hour)
			b.sent("home")
			b.sent("work")
		})
}

// accounts is a gateway with two accounts, one of which has a message.
type accounts struct {
	t       *testing.T
	g       *Gateway
	p       *postbox.Platform
	st      store.Store
	proceed chan struct{} // the model waits for it
}

func (b *accounts) address(account string) chela.Address {
	return chela.Address{Channel: "postbox", Account: chela.AccountID(account),
		Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
}

// configure changes the accounts.
func (b *accounts) configure(patch string) {
	b.t.Helper()
	c := b.g.Client()
	defer c.Close()
	c.patch(`{"channels": {"postbox": {"accounts": ` + patch + `}}}`)
	synctest.Wait()
}

// answer lets the model answer. It returns when the answer was sent or waits.
func (b *accounts) answer() {
	b.proceed <- struct{}{}
	synctest.Wait()
}

// sent compares what an account has sent.
func (b *accounts) sent(account string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.p.Account(account).Texts(b.address(account))); diff != "" {
		b.t.Errorf("sent by %s (-want +got):\n%s", account, diff)
	}
}

// row returns the row of the answer.
func (b *accounts) row() (row outbox.Row) {
	b.t.Helper()
	err := b.st.View(b.t.Context(), func(r store.Reader) error {
		list, _, err := r.Sessions().List(session.Query{})
		if err != nil {
			return err
		}
		entries, err := r.Sessions().Entries(list[0].ID, 0, 0)
		if err != nil {
			return err
		}
		rows, err := r.Outbox().OfRun(entries[0].Run)
		if err == nil && len(rows) != 1 {
			err = fmt.Errorf("%d rows", len(rows))
		}
		if err == nil {
			row = rows[0]
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return row
}

// lines returns the transcript as a client reads it.
func (b *accounts) lines() []string {
	b.t.Helper()
	c := b.g.Client()
	defer c.Close()
	var texts []string
	for _, m := range c.messages("main") {
		texts = append(texts, m.Text())
	}
	return texts
}
