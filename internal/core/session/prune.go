package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
)

// Prune is the decision to send old parts of a transcript in a shorter form. It names
// the entries explicitly, so that what is sent does not depend on the settings at a later
// time. Each list is sorted. An entry of KindPrune adds to those before it.
type Prune struct {
	Cause  PruneCause `json:"cause"`
	Trim   []int64    `json:"trim,omitempty"`   // Seq of results of which Head and Tail characters are sent
	Clear  []int64    `json:"clear,omitempty"`  // Seq of results that Placeholder replaces
	Images []int64    `json:"images,omitempty"` // Seq of messages and results whose images ImageMarker replaces

	Head        int    `json:"head,omitempty"`
	Tail        int    `json:"tail,omitempty"`
	Placeholder string `json:"placeholder,omitempty"`
}

// PruneCause is why a part of a transcript is sent in a shorter form.
type PruneCause string

// The causes.
const (
	PruneTTL    PruneCause = "cache-ttl" // the provider's cache has expired
	PruneSize   PruneCause = "size"      // old results are at least half of the request
	PruneGuard  PruneCause = "guard"     // the window is nearly full
	PruneImages PruneCause = "images"    // there are too many images
)

// IsZero reports whether nothing is changed.
func (p Prune) IsZero() bool { return len(p.Trim)+len(p.Clear)+len(p.Images) == 0 }

// ImageMarker replaces an image that is no longer sent.
const ImageMarker = "[image data removed - already processed by model]"

// maxFirstLine is the maximum length, in characters, of the first line of an error that
// is cleared.
const maxFirstLine = 200

// Sent is a message of the list that is sent to a model.
type Sent struct {
	Seq     int64       // of its entry; 0: it replaces a missing one
	Run     chela.RunID // that wrote the entry; empty: none
	Message *llm.Message
}

// pruneLocked applies an entry of KindPrune to what was appended before it.
func (t *Transcript) pruneLocked(p *Prune) {
	has := func(list []int64, seq int64) bool {
		_, ok := slices.BinarySearch(list, seq)
		return ok
	}
	shorten := func(seq int64, m *llm.Message) *llm.Message {
		n := m
		if has(p.Images, seq) {
			n = withoutImages(n)
		}
		switch {
		case n.Role != llm.RoleTool:
		case has(p.Clear, seq):
			n = cleared(n, p.Placeholder)
		case has(p.Trim, seq):
			n = trimmed(n, p.Head, p.Tail)
		}
		if n != m {
			t.size += 2 * (n.Size() - m.Size())
		}
		return n
	}
	for _, b := range t.blocks {
		b.msg = shorten(b.seq, b.msg)
		for i, r := range b.results {
			if r != nil {
				b.results[i] = shorten(b.sources[i].seq, r)
			}
		}
	}
}

// withoutImages returns m with ImageMarker instead of its images.
func withoutImages(m *llm.Message) *llm.Message {
	if !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.Kind == llm.PartImage }) {
		return m
	}
	parts := slices.Clone(m.Parts)
	for i := range parts {
		if parts[i].Kind == llm.PartImage {
			parts[i] = llm.Text(ImageMarker)
		}
	}
	return withParts(m, parts)
}

// cleared returns a result with the placeholder instead of its text. The first line of
// an error stays, and so does where the complete text is stored.
func cleared(m *llm.Message, placeholder string) *llm.Message {
	if placeholder == "" {
		placeholder = noOutputText
	}
	text, ref := textAndRef(m)
	out := placeholder
	if first, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); m.IsError && first != "" {
		out = firstRunes(first, maxFirstLine) + "\n" + placeholder
	}
	if ref != "" {
		out += " The complete output is " + media.Scheme + ref + "."
	}
	return withText(m, out, ref)
}

// trimmed returns a result with the first and the last characters of its text.
func trimmed(m *llm.Message, head, tail int) *llm.Message {
	text, ref := textAndRef(m)
	n := utf8.RuneCountInString(text)
	if head < 0 || tail < 0 || n <= head+tail {
		return m
	}
	out := firstRunes(text, head) + "\n...\n" + lastRunes(text, tail) +
		fmt.Sprintf("\n\n[Tool result trimmed: kept first %d chars and last %d chars of %d chars.", head, tail, n)
	if ref != "" {
		out += " The complete output is " + media.Scheme + ref + "."
	}
	return withText(m, out+"]", ref)
}

// textAndRef returns the text of a result, and the reference to the complete text if it
// is stored elsewhere.
func textAndRef(m *llm.Message) (text, ref string) {
	if len(m.Parts) == 1 && m.Parts[0].Kind == llm.PartText {
		return m.Parts[0].Text, m.Parts[0].Ref
	}
	var b strings.Builder
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != llm.PartText {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
		if p.Ref != "" {
			ref = p.Ref
		}
	}
	return b.String(), ref
}

// withText returns a result with one text instead of its texts, before its images.
func withText(m *llm.Message, text, ref string) *llm.Message {
	part := llm.Text(text)
	part.Ref = ref
	parts := []llm.Part{part}
	for _, p := range m.Parts {
		if p.Kind == llm.PartImage {
			parts = append(parts, p)
		}
	}
	return withParts(m, parts)
}

// firstRunes returns the first n characters of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lastRunes returns the last n characters of s.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
