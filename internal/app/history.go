package app

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/history"
)

// newHistory makes the journal of changes.
func (e *Engine) newHistory() *history.History {
	return history.New(history.Options{
		Log:    e.o.Log,
		Store:  e.store,
		Files:  e.files,
		Step:   e.o.Step,
		Jobs:   e.cron,
		Redact: e.o.Secrets.Redact,
		Tools:  e.tools,
		Config: func() journal.Options { return e.now().Settings.Undo },
		Workspaces: func() map[chela.AgentID]string {
			g, out := e.now(), map[chela.AgentID]string{}
			for _, id := range g.Settings.Roster() {
				out[id] = g.Workspace(id)
			}
			return out
		},
		Configure: func(ctx context.Context, file string, text []byte) error {
			_, err := e.changeFiles(ctx, anyBase, func(now *config.Tree) (*config.Draft, error) {
				return now.Replaced(map[string][]byte{file: text})
			}, func(context.Context, *config.Draft) (func(int), error) { return func(int) {}, nil }, e.requestRestart)
			return err
		},
	})
}

// tools returns the tools of an agent.
func (e *Engine) tools(id chela.AgentID) tool.Set { return e.now().Tools(id) }

// watchRuns tells the journal of the ends of runs.
func (e *Engine) watchRuns() {
	e.bus.Subscribe(func(ev chela.Event) {
		if ev.Stream == chela.StreamLifecycle && ev.End != nil {
			e.history.Ended(ev.Run)
		}
	})
}

// recordConfig records the change of the files of the configuration that a draft is about
// to make.
func (e *Engine) recordConfig(ctx context.Context, d *config.Draft) (done func(made int), err error) {
	src := journal.SourceFrom(ctx)
	if src.Tool == "" {
		src.Tool = "config"
	}
	if src.Agent == "" {
		src.Agent = chela.DefaultAgent
	}
	var edits []journal.Edit
	texts := d.Texts()
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		before := journal.Content{}
		if data, err := os.ReadFile(file); err == nil {
			before = journal.Content{Exists: true, Data: data, Mode: 0o600}
		}
		edits = append(edits, journal.Edit{
			Kind: journal.Config, Target: pathpolicy.Real(file), Before: before,
			After: journal.Content{Exists: true, Data: texts[file], Mode: 0o600},
		})
	}
	return e.history.Plan(journal.WithSource(ctx, src), edits...)
}
