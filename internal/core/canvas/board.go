package canvas

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of what a canvas keeps of the messages pushed to it.
const (
	maxKept      = 400
	maxKeptBytes = 1 << 20
	maxSurfaces  = 20
)

// Board is the messages pushed to a canvas that still matter: together they give the surfaces
// that a screen shows. The zero Board is empty. A Board is not changed, but replaced.
type Board struct{ messages []Message }

// surface is what the messages of one surface give.
type surface struct {
	older      bool
	begun      bool // begin or create was there
	root       string
	components map[string]component
}

// Messages returns the messages.
func (b Board) Messages() []Message { return b.messages }

// Empty reports whether there is no message.
func (b Board) Empty() bool { return len(b.messages) == 0 }

// With returns the board after further messages. Those of the older ones that no longer matter
// are left out.
func (b Board) With(more []Message) (Board, error) {
	all := b.surfaces()
	for i, m := range more {
		if err := apply(all, m); err != nil {
			return b, fmt.Errorf("A2UI: nothing was shown: message %d: %w", i+1, err)
		}
	}
	if len(all) > maxSurfaces {
		return b, fmt.Errorf("A2UI: %d surfaces, at most %d are possible; delete some", len(all), maxSurfaces)
	}
	next := slices.Clone(b.messages)
	for _, m := range more {
		next = slices.DeleteFunc(next, func(old Message) bool { return m.replaces(old) })
		if m.Op != DeleteSurface {
			next = append(next, m)
		}
	}
	size := 0
	for _, m := range next {
		size += len(m.Raw)
	}
	if len(next) > maxKept || size > maxKeptBytes {
		return b, fmt.Errorf(
			"A2UI: the canvas would have %d messages of %d bytes, at most %d and %d are kept; delete surfaces, or reset it",
			len(next), size, maxKept, maxKeptBytes)
	}
	return Board{next}, nil
}

// apply carries out a message.
func apply(all map[string]*surface, m Message) error {
	s := all[m.Surface]
	switch {
	case m.Op == DeleteSurface:
		if s == nil {
			return fmt.Errorf("deleteSurface: there is no surface %q", clip(m.Surface))
		}
		delete(all, m.Surface)
		return nil
	case s != nil && s.older != m.Older:
		return fmt.Errorf("%s: the surface %q was made with another version of A2UI; delete it first", m.Op, clip(m.Surface))
	case m.Op == CreateSurface && s != nil:
		return fmt.Errorf("createSurface: there is a surface %q already; delete it first, or update it", clip(m.Surface))
	case s == nil && !m.Older && m.Op != CreateSurface:
		return fmt.Errorf("%s: there is no surface %q; createSurface comes first", m.Op, clip(m.Surface))
	case s == nil:
		s = &surface{older: m.Older, components: map[string]component{}}
		all[m.Surface] = s
	}
	switch m.Op {
	case BeginRendering:
		s.begun, s.root = true, m.root
	case CreateSurface:
		s.begun, s.root = true, "root"
	}
	for _, c := range m.components {
		s.components[c.id] = c
	}
	if len(s.components) > maxComponents {
		return fmt.Errorf("%s: the surface %q would have %d components, at most %d are possible", m.Op, clip(m.Surface),
			len(s.components), maxComponents)
	}
	return nil
}

// replaces reports whether a message makes an older one of the same surface superfluous.
func (m Message) replaces(old Message) bool {
	if m.Surface != old.Surface {
		return false
	}
	switch m.Op {
	case DeleteSurface:
		return true
	case BeginRendering:
		return old.Op == BeginRendering
	case DataModelUpdate, UpdateDataModel:
		// What was below the path is gone, and a change of the path's own value, too.
		return old.Op == m.Op && (m.path == "" || old.path == m.path || strings.HasPrefix(old.path, m.path+"/"))
	case SurfaceUpdate, UpdateComponents:
		return old.Op == m.Op && !slices.ContainsFunc(old.components, func(c component) bool {
			return !slices.ContainsFunc(m.components, func(n component) bool { return n.id == c.id })
		})
	}
	return false
}

// surfaces returns the surfaces.
func (b Board) surfaces() map[string]*surface {
	all := map[string]*surface{}
	for _, m := range b.messages {
		_ = apply(all, m) // it was applied before
	}
	return all
}

// Surfaces returns the ids of the surfaces that are shown.
func (b Board) Surfaces() []string {
	var out []string
	for id, s := range b.surfaces() {
		if s.begun {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Missing returns the components that others name, and that there are not, as
// "component (surface)".
func (b Board) Missing() []string {
	out := map[string]bool{}
	for id, s := range b.surfaces() {
		need := []string{}
		if s.begun {
			need = append(need, s.root)
		}
		for _, c := range s.components {
			need = append(need, c.refs...)
		}
		for _, name := range need {
			if _, ok := s.components[name]; !ok {
				out[name+" ("+id+")"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// Offers reports whether a component of a surface sends an action with a name.
func (b Board) Offers(id, part, action string) bool {
	s := b.surfaces()[id]
	if s == nil || !s.begun || action == "" {
		return false
	}
	c, ok := s.components[part]
	return ok && c.action == action
}
