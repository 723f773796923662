package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool/exec"
)

// background keeps the commands that go on in the background, of all sessions.
func background(o *settings.Settings, st store.Store, a Options) *exec.Commands {
	e := o.Tools.Exec
	c := exec.CommandOptions{
		Log: a.Log, Dir: filepath.Join(a.State, "cache", "output"),
		TTL: time.Duration(e.CleanupMS) * time.Millisecond, TellQuiet: e.NotifyQuiet,
	}
	if e.Notify == nil || *e.Notify {
		c.Owe = dispatch.Owe(st)
	}
	return exec.NewCommands(c)
}

// serveCommands ends commands with the engine, and with their session.
func (p *profiles) serveCommands(ctx context.Context, b *bus.Bus) error {
	cancel := b.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamSession && e.Phase == "deleted" {
			p.commands.Forget(e.Session)
		}
	})
	defer cancel()
	return p.commands.Run(ctx)
}
