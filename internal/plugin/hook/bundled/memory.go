package bundled

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	savedMessages = 15       // messages that are saved, unless configured
	maxMessages   = 500      // that can be configured
	maxMessage    = 16 << 10 // bytes of one
	memoryFolder  = "memory"
	groupFolder   = memory.Imports + "groups"
)

// addSessionMemory adds the hook session-memory, which saves the last messages of the
// conversation that /new and /reset end. messages of its entry is their number.
func addSessionMemory(env Env, entry json.RawMessage, to *hook.Points) error {
	var o struct {
		Messages int `json:"messages"`
	}
	if err := decode(entry, &o); err != nil {
		return err
	}
	n := min(cmp.Or(max(0, o.Messages), savedMessages), maxMessages)
	to.Command.Add(hook.Hook[hook.Command, hook.Reply]{Name: "session-memory",
		Func: func(ctx context.Context, c hook.Command) (hook.Reply, error) {
			if c.Name != "new" && c.Name != "reset" || c.Previous == "" || c.Workspace == "" {
				return hook.Reply{}, nil
			}
			return hook.Reply{}, saveMemory(ctx, env, c, n)
		}})
	return nil
}

// saveMemory writes the last n messages of the transcript that a command ended. Those of
// a group, where strangers write, are marked as untrusted by their folder.
func saveMemory(ctx context.Context, env Env, c hook.Command, n int) error {
	folder := memoryFolder
	entries, err := store.Get(ctx, env.Store, func(r store.Reader) ([]session.Entry, error) {
		m, err := session.Lookup(r.Sessions(), c.Session)
		if err != nil {
			return nil, err
		}
		if m.Shared(run.Run{Address: c.Address}) {
			folder = groupFolder
		}
		return r.Sessions().Last(c.Previous, n*10) // results of tools and notices are among them
	})
	if err != nil {
		return err
	}
	lines := conversation(entries)
	if lines = lines[max(0, len(lines)-n):]; len(lines) == 0 {
		return nil
	}
	at := c.Time
	var b strings.Builder
	fmt.Fprintf(&b, "# Session: %s\n\n- Session key: %s\n- Session ID: %s\n- Source: %s\n\n## Conversation\n\n",
		at.Format("2006-01-02 15:04:05 MST"), c.Session, c.Previous, c.Source)
	b.WriteString(strings.Join(lines, "\n\n"))
	b.WriteString("\n")
	text := b.String()
	if env.Redact != nil {
		text = env.Redact(text)
	}
	return writeMemory(c.Workspace, folder, at, text)
}

// conversation returns the messages of persons and of the assistant.
func conversation(entries []session.Entry) []string {
	var lines []string
	for _, e := range entries {
		if e.Kind != session.KindMessage || e.Message == nil {
			continue
		}
		text := strings.TrimSpace(e.Message.PlainText())
		if text == "" || e.Message.Role != llm.RoleUser && e.Message.Role != llm.RoleAssistant ||
			strings.HasPrefix(text, llm.EventPrefix) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s", e.Message.Role, humanize.TruncateBytes(text, maxMessage)))
	}
	return lines
}

// writeMemory writes a new file for a time in a folder of a workspace. A link in its place
// is not followed.
func writeMemory(workspace, folder string, at time.Time, text string) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	base := folder + "/" + at.Format("2006-01-02-1504")
	for i := range 100 {
		name := base + ".md"
		if i > 0 {
			name = fmt.Sprintf("%s-%d.md", base, i+1)
		}
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return atomicfile.WriteIn(root, name, []byte(text), 0o600)
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s.md and 99 further files exist", base)
}
