package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

func testTexts(t *testing.T, s store.Store) {
	texts, ok := s.(store.Texts)
	if !ok {
		t.Skip("the store does not replace texts")
	}
	const key = chela.SessionKey("agent:main:main")
	update(t, s, func(tx store.Tx) error {
		m := meta(key, 1)
		m.Title = "a title with quartz"
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		if err := tx.Sessions().Append(m.ID, &session.Entry{ID: "e1", Kind: session.KindMessage, Time: at(1),
			Message: &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("quartz in a message")}}}); err != nil {
			return err
		}
		it := item(key, 7)
		it.Inbound.Text = "quartz in a queue"
		if _, err := tx.Queue().Put(it); err != nil {
			return err
		}
		return tx.SetSetting("x", "quartz in a setting")
	})
	read := func() (list []store.Text) {
		t.Helper()
		if err := texts.Texts(t.Context(), func(x store.Text) error {
			if x.Value == "" {
				return fmt.Errorf("empty text in %s.%s", x.Table, x.Column)
			}
			list = append(list, x)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	var found []store.Replacement
	for _, x := range read() {
		if x.Column == "key" && !x.Fixed {
			t.Errorf("%s.key is not fixed", x.Table)
		}
		if x.Value == "quartz in a message" || x.Value == "quartz in a setting" {
			if want := map[bool]chela.SessionKey{true: key}[x.Table == "entry"]; x.Session != want || x.Fixed {
				t.Errorf("%+v belongs to the session %q, want %q", x, x.Session, want)
			}
			found = append(found, store.Replacement{Text: x, New: "basalt"})
		}
	}
	if len(found) != 2 {
		t.Fatalf("found %v, want 2 texts", found)
	}
	if n, err := texts.Replace(t.Context(), found); n != 2 || err != nil {
		t.Errorf("replaced %d, %v; want 2", n, err)
	}
	if n, err := texts.Replace(t.Context(), found); n != 0 || err != nil {
		t.Errorf("replaced %d texts that have changed, %v; want 0", n, err)
	}
	if !slices.ContainsFunc(read(), func(x store.Text) bool { return x.Table == "entry" && x.Value == "basalt" }) {
		t.Error("the entry is not changed")
	}
	if got := setting(t, s, "x"); got != "basalt" {
		t.Errorf("setting %q, want basalt", got)
	}
	fixed := found[0]
	fixed.Column, fixed.Value = "id", "e1"
	if _, err := texts.Replace(t.Context(), []store.Replacement{fixed}); err == nil {
		t.Error("an id was replaced")
	}
	if err := texts.Scrub(t.Context()); err != nil {
		t.Error(err)
	}
}
