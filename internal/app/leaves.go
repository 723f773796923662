package app

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/deliver"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/standard"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/media"
	"github.com/chela-ai/chela/internal/tool/message"
	"github.com/chela-ai/chela/internal/usage"
)

// delivery makes what carries answers to channels.
func (e *Engine) delivery(st store.Store) *deliver.Worker {
	return deliver.New(deliver.Options{
		Log: e.o.Log, Store: st, Bus: e.bus, Channels: e.channel, Load: e.files.Load, Typing: true,
		Preview: func(a chela.Address) bool { return a.Peer.Kind == chela.Direct },
	})
}

// leaves is the tools that work with parts of the engine.
func (e *Engine) leaves(o *settings.Settings, st store.Store) standard.ToolConfig {
	return standard.ToolConfig{
		Image: &media.Options{
			Files: e.files, Side: o.Agent.ImageSide,
			Model: func(ctx context.Context, key chela.SessionKey) (llm.Model, llm.Provider, error) {
				m, err := metaOf(ctx, st, key)
				if err != nil {
					return llm.Model{}, nil, err
				}
				return e.now().models.Looker(m.Model)
			},
			Spent: func(ctx context.Context, c tool.Call, m llm.Model, u llm.Usage) error { return spent(ctx, st, c, m, u) },
		},
		Send: &message.Options{
			Store: st, Files: e.files, Publish: e.bus.Publish, Channels: e.states, Chunks: e.post.Chunks, Await: e.post.Await,
			Cross: o.Tools.Send.Cross,
		},
	}
}

// metaOf returns a session, also one that is not stored yet.
func metaOf(ctx context.Context, st store.Store, key chela.SessionKey) (m session.Meta, err error) {
	err = st.View(ctx, func(r store.Reader) error {
		m, err = session.Lookup(r.Sessions(), key)
		return err
	})
	return m, err
}

// spent records the model call that a tool made.
func spent(ctx context.Context, st store.Store, c tool.Call, m llm.Model, u llm.Usage) error {
	row := usage.Row{
		Run: c.Run, Session: c.Session, Agent: c.Agent, Provider: m.Provider, Model: m.ID, Time: time.Now(), Tokens: u, Priced: m.Price != nil,
	}
	if row.Priced {
		row.NanoUSD = m.Price.Cost(u)
	}
	return st.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error { return tx.Usage().Add(row) })
}

// states is the channels, with why one is not running.
func (e *Engine) states() map[string]string {
	out := map[string]string{}
	for name, s := range e.accounts() {
		out[name] = ""
		if s.Error != nil {
			out[name] = *s.Error
		}
	}
	return out
}
