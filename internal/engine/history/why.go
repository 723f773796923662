package history

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// Line is a line of a file, and where it comes from.
type Line struct {
	Path   string // for people
	Number int    // counted from 1
	Text   string
	Change journal.Change // that introduced it; without an id: it is older than the journal
}

// maxLines is the number of lines that words may find.
const maxLines = 8

// Why returns where a line of a file comes from. number is counted from 1; 0: where each of
// the last lines of the file comes from.
func (h *History) Why(ctx context.Context, agent chela.AgentID, path string, number int) ([]Line, error) {
	if err := h.Look(ctx, agent); err != nil {
		return nil, err
	}
	target, err := h.target(ctx, agent, path)
	if err != nil {
		return nil, err
	}
	now, err := h.present(target)
	switch {
	case err != nil:
		return nil, err
	case !now.Exists, !now.Mode.IsRegular():
		return nil, chela.Errorf(chela.CodeNotFound, "there is no file %s", pathpolicy.Show(path))
	case now.Large > 0:
		return nil, chela.Errorf(chela.CodeInvalid, "%s is too large", pathpolicy.Show(path))
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(now.Data), "\n"), "\n")
	if number > len(lines) {
		return nil, chela.Errorf(chela.CodeInvalid, "%s has %d lines", pathpolicy.Show(path), len(lines))
	}
	var numbers []int
	if number > 0 {
		numbers = []int{number}
	} else {
		for n := len(lines); n > 0 && len(numbers) < maxLines; n-- {
			if strings.TrimSpace(lines[n-1]) != "" {
				numbers = append(numbers, n)
			}
		}
		slices.Reverse(numbers)
	}
	return h.explain(ctx, agent, target, now.Data, lines, numbers)
}

// explain returns where lines of a file come from.
func (h *History) explain(ctx context.Context, agent chela.AgentID, target string, data []byte, lines []string,
	numbers []int) ([]Line, error) {
	changes, err := h.past(ctx, target)
	if err != nil {
		return nil, err
	}
	var out []Line
	for _, n := range numbers {
		l := Line{Path: h.Name(agent, target), Number: n, Text: strings.TrimRight(lines[n-1], "\r\n")}
		i, err := journal.Blame(data, n-1, changes, h.content)
		if err != nil { // a content is not kept: the line is at least as old as it
			i = -1
		}
		if i >= 0 {
			l.Change = changes[i]
		}
		out = append(out, l)
	}
	return out, nil
}

// past returns the changes that led to the present content of a file, newest first: without
// those that are undone, and with those that it had under other names.
func (h *History) past(ctx context.Context, target string) ([]journal.Change, error) {
	const maxMoves = 20
	var out []journal.Change
	before := int64(0)
	for range maxMoves {
		list, err := h.list(ctx, journal.Query{Target: target, Before: before, Limit: maxChanges})
		if err != nil {
			return nil, err
		}
		moved := false
		for _, c := range list {
			if !c.InForce() || len(c.Undoes) > 0 {
				continue // an undo in force leads back to what preceded the changes that it undid
			}
			if c.From != "" && !c.Before.Exists {
				left, err := h.list(ctx, journal.Query{Target: c.From, Unit: c.Unit})
				if err != nil {
					return nil, err
				}
				i := slices.IndexFunc(left,
					func(d journal.Change) bool { return d.Call == c.Call && d.State == journal.Done && !d.After.Exists })
				if i >= 0 {
					c.Before, target, before, moved = left[i].Before, c.From, min(c.Seq, left[i].Seq), true
				}
			}
			out = append(out, c)
			if moved {
				break
			}
		}
		if !moved {
			break
		}
	}
	return out, nil
}

// maxNotes is the number of bytes of notes that are searched.
const maxNotes = 64 << 20

// WhyWords returns where the lines come from that contain all of some words, in the notes of
// an agent.
func (h *History) WhyWords(ctx context.Context, agent chela.AgentID, words string) ([]Line, error) {
	if err := h.Look(ctx, agent); err != nil {
		return nil, err
	}
	dir := h.path(agent, "")
	want := strings.Fields(strings.ToLower(words))
	files := map[string]stamp{}
	(&tree{dir: dir}).assistant(files, maxNotes)
	maps.DeleteFunc(files, func(path string, _ stamp) bool {
		return filepath.Dir(path) != dir && !pathpolicy.Inside(path, filepath.Join(dir, "memory"))
	})
	paths := slices.Sorted(maps.Keys(files))
	var out []Line
	for _, path := range paths {
		now, err := h.present(path)
		if err != nil || !now.Exists || now.Large > 0 || !now.Mode.IsRegular() {
			continue
		}
		lines := strings.SplitAfter(strings.TrimSuffix(string(now.Data), "\n"), "\n")
		var numbers []int
		for i, l := range lines {
			l = strings.ToLower(l)
			if len(out)+len(numbers) < maxLines &&
				!slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(l, w) }) {
				numbers = append(numbers, i+1)
			}
		}
		if len(numbers) == 0 {
			continue
		}
		found, err := h.explain(ctx, agent, path, now.Data, lines, numbers)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) >= maxLines || ctx.Err() != nil {
			break
		}
	}
	return out, ctx.Err()
}
