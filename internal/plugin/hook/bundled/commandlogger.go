package bundled

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/kit/logfile"
)

// commandLine is a line of the log of commands.
type commandLine struct {
	Time    time.Time        `json:"timestamp"`
	Action  string           `json:"action"`
	Session chela.SessionKey `json:"sessionKey"`
	Sender  string           `json:"senderId"`
	Source  string           `json:"source"`
}

// addCommandLogger adds the hook command-logger: one JSON line for each command,
// without its arguments.
func addCommandLogger(env Env, _ json.RawMessage, to *hook.Points) error {
	file := logfile.New(filepath.Join(env.State, "logs", "commands.log"), 0)
	to.Command.Add(hook.Hook[hook.Command, hook.Reply]{Name: "command-logger",
		Func: func(_ context.Context, c hook.Command) (hook.Reply, error) {
			b, err := json.Marshal(commandLine{c.Time.UTC(), c.Name, c.Session, c.Sender, c.Source})
			if err != nil {
				return hook.Reply{}, err
			}
			_, err = file.Write(append(b, '\n'))
			return hook.Reply{}, err
		}})
	return nil
}
