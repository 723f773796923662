package chat_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/method/chat"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// BenchmarkHistory measures chat.history of 200 messages, of 2,000 and 5 MB,
// from the request to the frame with the answer.
func BenchmarkHistory(b *testing.B) {
	db, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	long(b, db)
	set := rpc.NewSet(chat.Methods(chat.Options{
		Store:   db,
		Bus:     bus.New(slog.New(slog.DiscardHandler)),
		Default: chela.DefaultAgent,
		Rows:    wireview.Rows{Model: func(session.Meta) wire.SessionModel { return wire.SessionModel{} }},
		Agent:   func(chela.AgentID) bool { return true },
	}))
	ctx := chela.WithPrincipal(b.Context(), chela.Principal{ID: "operator", Scopes: []chela.Scope{chela.ScopeRead}})
	params := json.RawMessage(`{"sessionKey": "main", "limit": 200}`)
	var frame []byte
	for b.Loop() {
		res, err := set.Call(ctx, wire.RoleOperator, nil, wire.MethodChatHistory, params)
		if err != nil {
			b.Fatal(err)
		}
		if frame, err = wire.EncodeResponse("1", res, nil); err != nil {
			b.Fatal(err)
		}
	}
	if n := strings.Count(string(frame), "quick brown"); n != 200*56 {
		b.Errorf("%d lines in the answer", n)
	}
}

// long stores a session of 2,000 messages and 5 MB.
func long(b *testing.B, db store.Store) {
	b.Helper()
	now := time.Now()
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 56)
	err := db.Update(b.Context(), store.Synced, func(tx store.Tx) error {
		for i := range 2000 {
			m := llm.User(text)
			if i%2 == 1 {
				m.Role, m.Provider, m.Model, m.Stop = llm.RoleAssistant, "mock", "m", llm.StopEnd
			}
			e := &session.Entry{ID: fmt.Sprint(i), Kind: session.KindMessage, Time: now, Message: m}
			if err := tx.Sessions().Append("long", e); err != nil {
				return err
			}
		}
		return tx.Sessions().Put(session.Meta{Key: chela.MainSession(chela.DefaultAgent), ID: "long",
			Agent: chela.DefaultAgent})
	})
	if err != nil {
		b.Fatal(err)
	}
}
