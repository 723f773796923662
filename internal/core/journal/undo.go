package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Step takes back the changes of one target.
type Step struct {
	Kind    Kind
	Target  string
	Changes []Change // newest first
	From    Version  // as the newest change left the target
	To      Version  // as it was before the oldest one
	Folder  string   // the topmost folder that was made for the file; empty: none
	Refused string   // why the step is not possible; empty: it is
}

// Steps returns the steps that take back changes, in their order. The changes are in
// force, newest first. Steps does not look at the targets: whether one is still as From
// says remains to be checked.
func Steps(changes []Change) []Step {
	type key struct {
		kind   Kind
		target string
	}
	at := map[key]int{}
	var steps []Step
	for _, c := range changes {
		k := key{c.Kind, c.Target}
		i, ok := at[k]
		if !ok {
			at[k] = len(steps)
			steps = append(steps, Step{
				Kind:    c.Kind,
				Target:  c.Target,
				Changes: []Change{c},
				From:    c.After,
				To:      c.Before,
				Folder:  c.Folder,
			})
			continue
		}
		s := &steps[i]
		if !c.After.Same(s.To) && s.Refused == "" {
			s.Refused = "it was also changed in between"
		}
		s.Changes, s.To = append(s.Changes, c), c.Before
		if c.Folder != "" {
			s.Folder = c.Folder
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.Refused == "" && !s.To.Kept() {
			s.Refused = fmt.Sprintf("its earlier content (%s) was not kept", humanize.Bytes(s.To.Size))
			if s.To.Mode == fs.ModeIrregular {
				s.Refused = "it was a hard link, a pipe or a device before, which is not kept"
			}
		}
	}
	return steps
}

// IDs returns the ids of the changes that the step takes back, newest first.
func (s Step) IDs() []string {
	var ids []string
	for _, c := range s.Changes {
		ids = append(ids, c.ID)
	}
	return ids
}

// Hash identifies steps: what they take back, and from which versions to which.
func Hash(steps []Step) string {
	h := sha256.New()
	for _, s := range steps {
		fmt.Fprintf(h, "%q %q %q %q %v %q %v %q\n", s.Kind, s.Target, s.IDs(), s.From.Hash, s.From.Exists, s.To.Hash,
			s.To.Exists, s.Refused)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Units returns the changes of the newest n units among changes, which are sorted newest
// first. A unit without a change that selects reports is skipped.
func Units(changes []Change, n int, selects func(Change) bool) []Change {
	var units []string
	var out []Change
	for _, c := range changes {
		if !selects(c) {
			continue
		}
		if !slices.Contains(units, c.Unit) {
			if len(units) == n {
				continue
			}
			units = append(units, c.Unit)
		}
		out = append(out, c)
	}
	return out
}
