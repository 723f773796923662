package sessions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 3)
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	said := func(id string, role llm.Role, text string) *session.Entry {
		begin = begin.Add(time.Minute)
		return &session.Entry{ID: id, Kind: session.KindMessage, Time: begin,
			Message: &llm.Message{Role: role, Parts: []llm.Part{llm.Text(text)}}}
	}
	many := make([]*session.Entry, 2100)
	for i := range many {
		many[i] = said(fmt.Sprint("n", i), llm.RoleUser, "noise")
	}
	h.Put(func(tx store.Tx) error {
		err := tx.Sessions().Append("t0",
			said("e1", llm.RoleUser, "Where is the İstanbul  ticket?"),
			said("e2", llm.RoleAssistant, strings.Repeat("é", 100)+" the TICKET is in Istanbul "+strings.Repeat("ö", 200)),
			said("e3", llm.RoleTool, "ticket istanbul"),
			&session.Entry{ID: "e4", Kind: session.KindNotice, Time: begin, Text: "ticket"})
		if err != nil {
			return err
		}
		if err := tx.Sessions().Append("t1", said("e5", llm.RoleUser, "ticket office"),
			said("e6", llm.RoleAssistant, "NO_REPLY")); err != nil {
			return err
		}
		return tx.Sessions().Append("t2", many...)
	})
	for _, tt := range []struct {
		in   wire.SessionsSearch
		want string // messages, best match first
		more bool
	}{
		{wire.SessionsSearch{Query: "ticket", Keys: []string{"s0", "s1", "nobody"}}, "e5 e2 e1", false},
		{wire.SessionsSearch{Query: " Ticket  IS "}, "e2 e1", true}, // the phrase before both words
		{wire.SessionsSearch{Query: "the i̇stanbul", Keys: []string{"s0"}}, "", false},
		{wire.SessionsSearch{Query: "ticket", Limit: 1, Keys: []string{"s0", "s1"}}, "e5", true},
		{wire.SessionsSearch{Query: "ticket", Scope: &wire.SessionsList{Search: "talk 1"}}, "e5", false},
		{wire.SessionsSearch{Query: "office", AgentID: "other"}, "", false},
		{wire.SessionsSearch{Query: "nothing of the kind", Keys: []string{"s1"}}, "", false},
		{wire.SessionsSearch{Query: "x", Keys: slices.Repeat([]string{"none"}, 200)}, "", false},
	} {
		got := methodtest.Do[wire.SessionHits](t, h, wire.MethodSessionsSearch, tt.in)
		var ids []string
		for _, r := range got.Results {
			ids = append(ids, r.MessageID)
		}
		if strings.Join(ids, " ") != tt.want || got.Truncated != tt.more {
			t.Errorf("%+v: %v, more: %v; want %s, %v", tt.in, ids, got.Truncated, tt.want, tt.more)
		}
		if want := len(ids); tt.in.Scope != nil && len(got.Sessions) != want || tt.in.Scope == nil && got.Sessions != nil {
			t.Errorf("%+v: sessions %v", tt.in, keys(got.Sessions))
		}
	}
	hit := methodtest.Do[wire.SessionHits](t, h, wire.MethodSessionsSearch,
		wire.SessionsSearch{Query: "ticket is"}).Results[0]
	want := "…" + strings.Repeat("é", 55) + " the TICKET is in Istanbul " + strings.Repeat("ö", 118) + "…"
	if hit.Snippet != want || hit.Key != "agent:main:s0" || hit.SessionID != "t0" ||
		hit.Role != "assistant" || hit.Score != 2 {
		t.Errorf("%+v, want the snippet %s", hit, want)
	}
	for _, tt := range []struct {
		in   wire.SessionsSearch
		want string
	}{
		{wire.SessionsSearch{Query: " "}, "at /query"},
		{wire.SessionsSearch{Query: strings.Repeat("x", 5000)}, "at /query"},
		{wire.SessionsSearch{Query: "x", Limit: 26}, "at /limit"},
		{wire.SessionsSearch{Query: "x", Keys: make([]string, 201)}, "at /sessionKeys"},
		{wire.SessionsSearch{Query: "x", Scope: &wire.SessionsList{SortBy: "luck"}}, "at /sortBy"},
	} {
		if err := h.Call(t.Context(), wire.MethodSessionsSearch, tt.in, nil); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d, %v: %v, want %s", len(tt.in.Query), tt.in.Limit, err, tt.want)
		}
	}
}
