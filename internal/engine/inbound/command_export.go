package inbound

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/export"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

func exportCommands() []Command {
	const group = "session"
	return []Command{
		{
			Name: "export-session", Aliases: []string{"export"}, Group: group, Args: "[path]", Scope: chela.ScopeAdmin,
			Help:   "write this conversation, with the system prompt, to an HTML file in the workspace",
			before: saveAs(export.HTML),
		},
		{
			Name: "export-trajectory", Group: group, Args: "[path]", Scope: chela.ScopeAdmin,
			Help:   "write this conversation, with its model requests and tool calls, to a JSONL file in the workspace",
			before: saveAs(export.Trajectory),
		},
	}
}

// saveAs returns what exports the session to a file in the workspace.
func saveAs(f export.Format) func(context.Context, *call) (string, error) {
	return func(ctx context.Context, k *call) (string, error) {
		file, err := k.g.o.Export(ctx, f, export.Target{Key: k.key, Who: k.who, At: k.in.Address}, k.args)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Exported to %s in the workspace (%s).", file.Name, humanize.Bytes(file.Size)), nil
	}
}
