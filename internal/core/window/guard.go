package window

import (
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// Limits of the guards.
const (
	resultShare = 0.5  // of the window that one result may have
	fullRatio   = 0.75 // fill above which the oldest results are cleared
	urgentRatio = 0.9  // fill above which little is cleared, too
	fullTarget  = 0.6  // fill that is left then, so that the next requests do not change again

	maxImages  = 20 // above which the oldest images are removed
	leftImages = 10 // that are left then
	keptTurns  = 3  // completed turns whose images are not old

	// guardPlaceholder replaces a result that a guard cleared.
	guardPlaceholder = "[compacted: tool output removed to free context]"
)

// ResultShare returns the maximum number of characters of one result in a window, at two
// characters per token.
func (w Size) ResultShare() int {
	return int(float64(w.Tokens*estimate.ResultBytesPerToken) * resultShare)
}

// MaxResult returns the maximum number of characters of a new result: its share of the
// window, but at most limit; 0: 16,000, 32,000 in windows from 100,000 tokens, and 64,000
// in windows from 200,000.
func (w Size) MaxResult(limit int) int {
	if limit <= 0 {
		switch {
		case w.Tokens >= 200_000:
			limit = 64_000
		case w.Tokens >= 100_000:
			limit = 32_000
		default:
			limit = 16_000
		}
	}
	return min(limit, w.ResultShare())
}

// shares trims the results that are larger than their share, for example after a switch
// to a model with a smaller window.
func (s *state) shares() session.Prune {
	room := max(s.r.Window.ResultShare()-2*trimNote, 2)
	p := session.Prune{Cause: session.PruneGuard, Head: room * 3 / 4, Tail: room / 4}
	for i := range s.items {
		it := &s.items[i]
		if it.result && it.seq > 0 && longer(it.msg, it.size, s.r.Window.ResultShare()) && s.shrink(it, room+trimNote) {
			p.Trim = append(p.Trim, it.seq)
		}
	}
	return p
}

// overfull clears the oldest results, except the newest ones, when the window is nearly
// full.
func (s *state) overfull() session.Prune {
	p := session.Prune{Cause: session.PruneGuard, Placeholder: guardPlaceholder}
	switch fill := s.fill(); {
	case fill <= fullRatio:
		return p
	case fill <= urgentRatio && s.clearable() < s.r.Window.Tokens/8:
		return p // it would be the same again with the next request
	}
	p.Images = s.removeImages(s.old, 0)
	for i := range s.items[:max(s.newest, 0)] {
		if s.fill() <= fullTarget {
			break
		}
		if it := &s.items[i]; it.result && !it.fixed && it.images == 0 && s.shrink(it, len(guardPlaceholder)) {
			p.Clear = append(p.Clear, it.seq)
		}
	}
	return p
}

// clearable estimates the tokens that overfull can save.
func (s *state) clearable() int {
	n := 0
	for i := range s.items[:max(s.newest, 0)] {
		if it := &s.items[i]; it.result && !it.fixed && it.images == 0 {
			n += max(it.size-len(guardPlaceholder), 0)
		}
	}
	for i := range s.items[:s.old] {
		n += s.items[i].images * estimate.ImageTokens * estimate.ResultBytesPerToken
	}
	return n / estimate.ResultBytesPerToken
}

// crowded removes old images when there are too many, and then the oldest of the others.
// Images of the last message of a person and the newest results stay.
func (s *state) crowded() session.Prune {
	p := session.Prune{Cause: session.PruneImages}
	n := 0
	for i := range s.items {
		n += s.items[i].images
	}
	if n <= maxImages {
		return p
	}
	p.Images = s.removeImages(s.old, 0)
	newest := len(s.items)
	if s.newest > s.last {
		newest = s.newest
	}
	if s.last >= 0 { // those of the last message stay
		kept := s.items[s.last].images
		s.items[s.last].images = 0
		p.Images = append(p.Images, s.removeImages(newest, max(leftImages-kept, 0))...)
		s.items[s.last].images = kept
	}
	return p
}

// MayPrune reports whether [Prune] may change something in a request of about so many
// tokens, while the provider's cache is warm.
func MayPrune(w Size, p Pruning, tokens int, messages []*llm.Message) bool {
	fill := w.Fill(tokens)
	if fill > fullRatio {
		return true
	}
	images, results := 0, 0
	for _, m := range messages {
		for i := range m.Parts {
			p := &m.Parts[i]
			switch {
			case p.Kind == llm.PartImage:
				images++
			case m.Role != llm.RoleTool:
			case len(p.Text) > w.ResultShare():
				return true
			default:
				results += len(p.Text)
			}
		}
	}
	heavy := p.Mode != PruningOff && fill > or(p.Soft, defaultSoft) && results >= or(p.MinChars, defaultMinChars)
	return heavy || images > maxImages
}
