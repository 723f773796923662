package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// testMedia checks that Media returns a file reference exactly as long as a row
// contains it.
func testMedia(t *testing.T, s store.Store) {
	ref := func(digit string) string { return strings.Repeat(digit, 32) }
	image := func(digit string) llm.Part {
		return llm.Part{Kind: llm.PartImage, MIME: "image/png", Ref: ref(digit), Bytes: 7}
	}
	has := func(want ...string) {
		t.Helper()
		got := get(t, s, store.Reader.Media)
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("references (-want +got):\n%s", diff)
		}
	}
	has()
	said := &session.Entry{ID: "e", Kind: session.KindMessage, Time: at(1), Message: &llm.Message{
		Role: llm.RoleUser, Parts: []llm.Part{image("a"), llm.Text(`look: "ref":"` + ref("0") + `"`)},
	}}
	given := &session.Entry{ID: "f", Kind: session.KindMessage, Time: at(2), Message: &llm.Message{
		Role: llm.RoleTool, CallID: "c", Parts: []llm.Part{image("b"), image("c")},
	}}
	item := queue.Item{ID: "i", Key: "i", Session: keyA, Kind: queue.Message, Created: at(3), Inbound: chela.Inbound{
		ID: "i", Media: []chela.Media{{Name: "a.png", Type: "image/png", Ref: ref("d"), Bytes: 7}},
	}}
	row := outbox.Row{
		Key:     "o",
		Session: keyA,
		State:   outbox.Pending,
		Created: at(4),
		Media:   []chela.Media{{Type: "image/png", Ref: ref("e"), Bytes: 7}},
	}
	update(t, s, func(tx store.Tx) error {
		if err := tx.Sessions().Put(session.Meta{Key: keyA, ID: "t1", Agent: "main"}); err != nil {
			return err
		}
		if err := tx.Sessions().Append("t1", said,
			&session.Entry{ID: "g", Kind: session.KindMessage, Time: at(2), Message: llm.User("plain")}, given); err != nil {
			return err
		}
		if _, err := tx.Queue().Put(item); err != nil {
			return err
		}
		return tx.Outbox().Put(row)
	})
	has(ref("a"), ref("b"), ref("c"), ref("d"), ref("e"))
	back := get(t, s, func(r store.Reader) ([]session.Entry, error) { return r.Sessions().Entries("t1", 0, 0) })
	if diff := cmp.Diff(said.Message.Parts, back[0].Message.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	update(t, s, func(tx store.Tx) error {
		_, err := session.Reset(tx.Sessions(), keyA, "new", at(5)) // an archived transcript stays readable
		return err
	})
	has(ref("a"), ref("b"), ref("c"), ref("d"), ref("e"))
	update(t, s, func(tx store.Tx) error { return tx.Sessions().Delete(keyA) })
	has()
}
