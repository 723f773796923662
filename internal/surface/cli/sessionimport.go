package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// sessionIndex is the name of the file that gives transcripts their keys.
const sessionIndex = "sessions.json"

// importFolder imports the transcripts in a folder under the keys that its
// sessions.json gives them. A transcript that it does not name, or all of them if it is
// damaged, get keys made of the names of their files. Sessions that exist are left
// alone.
func (c *commands) importFolder(ctx context.Context, dir, agent string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("import: there are no transcripts (*.jsonl) in %s", dir)
	}
	slices.Sort(files)
	index, err := readIndex(filepath.Join(dir, sessionIndex))
	if err != nil {
		fmt.Fprintf(c.stderr, "warning: %s: %v; the sessions get keys made of the names of their files\n", sessionIndex, err)
	}
	return c.withLink(ctx, func(l *link) error {
		var all []wire.SessionImported
		failed := 0
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			in := wire.SessionsImport{Key: index[name].key, Label: index[name].label, AgentID: agent}
			if in.Key == "" {
				in.Key = "recovered-" + strings.ToLower(name)
			} else if strings.HasPrefix(in.Key, "agent:") {
				in.AgentID = ""
			}
			text, err := c.readFile(file, maxImport)
			if err == nil {
				in.JSONL = string(text)
				err = callOn(ctx, l, wire.MethodSessionsImport, in, func(out wire.SessionImported) error {
					all = append(all, out)
					return nil
				})
			}
			if err != nil {
				failed++
				fmt.Fprintf(c.stderr, "%s: %s\n", filepath.Base(file), ansi.Line(err.Error()))
			}
		}
		err := c.print(all, func() {
			for _, out := range all {
				fmt.Fprintf(c.stdout, "%s: imported %s\n", ansi.Line(out.Key), humanize.Many(out.Entries, "entry"))
				c.printSkipped(out)
			}
		})
		if err == nil && failed > 0 {
			err = fmt.Errorf("import: %d of %s could not be imported", failed, humanize.Many(len(files), "transcript"))
		}
		return err
	})
}

// indexed is what the index of a folder says about a transcript.
type indexed struct{ key, label string }

// readIndex returns what an index says, by the name of the transcripts. A missing index is
// an empty one.
func readIndex(file string) (map[string]indexed, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list map[string]struct {
		ID    string `json:"sessionId"`
		File  string `json:"sessionFile"`
		Label string `json:"label"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	all := map[string]indexed{}
	for key, s := range list {
		all[s.ID] = indexed{key, s.Label}
		if s.File != "" {
			all[strings.TrimSuffix(filepath.Base(s.File), ".jsonl")] = indexed{key, s.Label}
		}
	}
	return all, nil
}

// printSkipped says what was left out of an imported transcript.
func (c *commands) printSkipped(out wire.SessionImported) {
	for _, skipped := range []struct {
		n            int
		noun, reason string
	}{{out.Skipped, "line", "damaged or of an unknown kind"},
		{out.Branched, "entry", "not on the branch that ends the conversation"},
		{out.Doubled, "entry", "with a duplicate id"}} {
		if skipped.n > 0 {
			fmt.Fprintf(c.stderr, "skipped %s: %s\n", humanize.Many(skipped.n, skipped.noun), skipped.reason)
		}
	}
}
