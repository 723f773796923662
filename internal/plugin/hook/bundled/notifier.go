package bundled

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// addCompactionNotifier adds the hook compaction-notifier.
func addCompactionNotifier(_ Env, _ json.RawMessage, to *hook.Points) error {
	const name = "compaction-notifier"
	to.BeforeCompaction.Add(hook.Hook[hook.Compaction, hook.Reply]{Name: name,
		Func: func(context.Context, hook.Compaction) (hook.Reply, error) {
			return hook.Reply{Messages: []string{"🧹 The history of this conversation is being shortened."}}, nil
		}})
	to.AfterCompaction.Add(hook.Hook[hook.Compaction, hook.Reply]{Name: name,
		Func: func(_ context.Context, c hook.Compaction) (hook.Reply, error) {
			return hook.Reply{
				Messages: []string{fmt.Sprintf("🧹 Done: %s are no longer sent to the model. They stay in the history.",
					humanize.Many(c.Compacted, "message"))}}, nil
		}})
	return nil
}
