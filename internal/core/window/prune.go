package window

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/session"
)

// Pruning is agents.defaults.contextPruning: when old results of tools are no longer
// sent in full. Nil fields and empty texts have the defaults.
type Pruning struct {
	Mode     string   `json:"mode"` // off, cache-ttl; "": cache-ttl for Anthropic's models
	TTL      int      `json:"ttl"`  // seconds after a model call until the provider's cache has expired; 0: 5 min, or 1 h
	Keep     *int     `json:"keepLastAssistants"`
	Soft     *float64 `json:"softTrimRatio"`
	Hard     *float64 `json:"hardClearRatio"`
	MinChars *int     `json:"minPrunableToolChars"`
	SoftTrim struct {
		Max  *int `json:"maxChars"`
		Head *int `json:"headChars"`
		Tail *int `json:"tailChars"`
	} `json:"softTrim"`
	HardClear struct {
		Enabled     *bool  `json:"enabled"`
		Placeholder string `json:"placeholder"`
	} `json:"hardClear"`
	Tools struct {
		Allow []string `json:"allow"` // none: all
		Deny  []string `json:"deny"`
	} `json:"tools"`
}

// Modes of pruning.
const (
	PruningOff = "off"
	PruningTTL = "cache-ttl"
)

// Defaults of [Pruning].
const (
	defaultTTL         = 5 * time.Minute
	defaultLongTTL     = time.Hour
	defaultKeep        = 3
	defaultSoft        = 0.3
	defaultHard        = 0.5
	defaultMinChars    = 50_000
	defaultTrimMax     = 4000
	defaultTrimEnd     = 1500
	defaultPlaceholder = "[Old tool result content cleared]"
)

// Check returns an error if a setting has no meaning.
func (p Pruning) Check() error {
	switch p.Mode {
	case "", PruningOff, PruningTTL:
	default:
		return fmt.Errorf("mode %q: want %s or %s", p.Mode, PruningOff, PruningTTL)
	}
	for _, r := range [...]struct {
		name  string
		value *float64
	}{{"softTrimRatio", p.Soft}, {"hardClearRatio", p.Hard}} {
		if r.value != nil && (*r.value < 0 || *r.value > 1) {
			return fmt.Errorf("%s %v: want a number from 0 to 1", r.name, *r.value)
		}
	}
	for _, r := range [...]struct {
		name  string
		value *int
	}{
		{"ttl", &p.TTL}, {"keepLastAssistants", p.Keep}, {"minPrunableToolChars", p.MinChars},
		{"softTrim.maxChars", p.SoftTrim.Max},
		{"softTrim.headChars", p.SoftTrim.Head}, {"softTrim.tailChars", p.SoftTrim.Tail},
	} {
		if r.value != nil && *r.value < 0 {
			return fmt.Errorf("%s %d: want a number from 0", r.name, *r.value)
		}
	}
	return nil
}

// Expiry returns how long after a model call the provider's cache has expired, or 0 if
// nothing is pruned then. long says that the cache is retained for long. caches says
// that the mode is cache-ttl unless it is set.
func (p Pruning) Expiry(caches, long bool) time.Duration {
	if p.Mode == PruningOff || p.Mode == "" && !caches {
		return 0
	}
	if p.TTL > 0 {
		return time.Duration(p.TTL) * time.Second
	}
	if long {
		return defaultLongTTL
	}
	return defaultTTL
}

// allows reports whether results of a tool may be pruned.
func (p *Pruning) allows(tool string) bool {
	return !policy.Match(p.Tools.Deny, tool) && (len(p.Tools.Allow) == 0 || policy.Match(p.Tools.Allow, tool))
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// Request is what a decision about the history of a request depends on.
type Request struct {
	Sent    []session.Sent // the history as it is sent now
	Base    int            // estimated tokens of the system prompt and the tools
	Window  Size
	Ratio   float64 // see Calibrate
	Pruning Pruning
	Cold    bool // the provider's cache has expired: a change costs nothing
}

// Prune decides what is sent in a shorter form from now on, and returns entries for the
// transcript. It returns none if nothing changes.
//
// When the provider's cache has expired, old results are pruned according to the
// settings, and old images are removed. While the cache is warm, a change makes the
// provider read what remains again, so that old results are only cleared if that removes
// at least half of the request. The guards always apply: one against a window that is
// nearly full, and one against too many images.
// An image is old after three completed turns. Results with images, results before the
// first message of a person and those of tools that the settings exclude stay; so do
// the newest ones.
func Prune(r Request) []session.Prune {
	s := newState(&r)
	var out []session.Prune
	add := func(p session.Prune) {
		if !p.IsZero() {
			slices.Sort(p.Trim)
			slices.Sort(p.Clear)
			slices.Sort(p.Images)
			out = append(out, p)
		}
	}
	if r.Cold && !r.Window.Assumed() {
		add(s.expired())
	}
	if r.Pruning.Mode != PruningOff && !r.Window.Assumed() {
		add(s.heavy())
	}
	add(s.shares())
	add(s.overfull())
	add(s.crowded())
	return out
}

// item is a message in the state of a decision.
type item struct {
	seq    int64
	tokens int
	size   int // bytes of text
	images int
	result bool
	fixed  bool // never pruned
	msg    *llm.Message
}

// state is the state of a decision, which later steps build on.
type state struct {
	r     *Request
	items []item
	total int // estimated tokens of the request

	old        int // items before it belong to turns that ended more than three turns ago
	last       int // index of the last message of a person
	newest     int // index of the last assistant message
	assistants []int
}

func newState(r *Request) *state {
	allowed := map[string]bool{}
	allows := func(tool string) bool {
		ok, known := allowed[tool]
		if !known {
			ok = r.Pruning.allows(tool)
			allowed[tool] = ok
		}
		return ok
	}
	s := &state{r: r, items: make([]item, len(r.Sent)), total: r.Base, last: -1, newest: -1}
	begun := false
	var starts []int
	for i := range r.Sent {
		m := r.Sent[i].Message
		it := &s.items[i]
		*it = item{seq: r.Sent[i].Seq, tokens: estimate.Messages(m), result: m.Role == llm.RoleTool, msg: m}
		for j := range m.Parts {
			if p := &m.Parts[j]; p.Kind == llm.PartImage {
				it.images++
			} else {
				it.size += len(p.Text)
			}
		}
		s.total += it.tokens
		switch m.Role {
		case llm.RoleUser:
			if s.last, begun = i, begun || it.seq > 0; i == 0 || startsTurn(&r.Sent[i], &r.Sent[i-1]) {
				starts = append(starts, i)
			}
		case llm.RoleAssistant:
			s.newest = i
			s.assistants = append(s.assistants, i)
		case llm.RoleTool:
			it.fixed = !begun || it.seq == 0 || !allows(m.ToolName)
		}
	}
	if n := len(starts) - 1 - keptTurns; n > 0 {
		s.old = starts[n]
	}
	return s
}

// startsTurn reports whether a turn begins with a user message that follows prev. A
// message that steered a run does not begin one.
func startsTurn(s, prev *session.Sent) bool {
	if s.Run != "" {
		return s.Run != prev.Run
	}
	return prev.Message.Role != llm.RoleUser
}

// fill returns how full the window is.
func (s *state) fill() float64 { return s.r.Window.Fill(Calibrated(s.total, s.r.Ratio)) }

// shrink records that an item has n bytes of text left. It returns false if that saves
// too little to be worth a change.
func (s *state) shrink(it *item, n int) bool {
	if it.size-n < minSaving {
		return false
	}
	saved := (it.size - n) / estimate.ResultBytesPerToken
	it.tokens, it.size = it.tokens-saved, n
	s.total -= saved
	return true
}

// minSaving is the number of bytes below which a result is not shortened.
const minSaving = 64

// removeImages removes the images of items before index end, oldest first, until at most
// live are left. It returns the positions of their entries.
func (s *state) removeImages(end, live int) (seqs []int64) {
	left := 0
	for i := range s.items {
		left += s.items[i].images
	}
	for i := 0; i < end && left > live; i++ {
		it := &s.items[i]
		if it.images == 0 || it.seq == 0 {
			continue
		}
		left -= it.images
		s.total -= it.images * (estimate.ImageTokens - estimate.Text(session.ImageMarker))
		it.images = 0
		seqs = append(seqs, it.seq)
	}
	return seqs
}

// expired prunes when the provider's cache has expired.
func (s *state) expired() session.Prune {
	o := &s.r.Pruning
	p := session.Prune{
		Cause: session.PruneTTL, Head: or(o.SoftTrim.Head, defaultTrimEnd), Tail: or(o.SoftTrim.Tail, defaultTrimEnd),
		Placeholder: cmp.Or(o.HardClear.Placeholder, defaultPlaceholder),
		Images:      s.removeImages(s.old, 0),
	}
	end := 0
	if keep := or(o.Keep, defaultKeep); keep == 0 {
		end = len(s.items)
	} else if n := len(s.assistants) - keep; n >= 0 {
		end = s.assistants[n]
	}
	prunable := func(yield func(*item) bool) {
		for i := range s.items[:end] {
			if it := &s.items[i]; it.result && !it.fixed && it.images == 0 && !yield(it) {
				return
			}
		}
	}
	if s.fill() <= or(o.Soft, defaultSoft) {
		return p
	}
	chars := 0
	for it := range prunable {
		if longer(it.msg, it.size, or(o.SoftTrim.Max, defaultTrimMax)) && s.shrink(it, p.Head+p.Tail+trimNote) {
			p.Trim = append(p.Trim, it.seq)
		}
		chars += it.size
	}
	if !or(o.HardClear.Enabled, true) || chars < or(o.MinChars, defaultMinChars) {
		return p
	}
	for it := range prunable {
		if s.fill() <= or(o.Hard, defaultHard) {
			break
		}
		if s.shrink(it, len(p.Placeholder)) {
			p.Clear = append(p.Clear, it.seq)
		}
	}
	return p
}

// heavy clears the results of turns that ended more than three turns ago, all at once, if
// they are at least half of the request. A cached token costs about a tenth of one that is
// read again, so that this pays off after about ten requests.
func (s *state) heavy() session.Prune {
	o := &s.r.Pruning
	p := session.Prune{Cause: session.PruneSize, Placeholder: cmp.Or(o.HardClear.Placeholder, defaultPlaceholder)}
	if !or(o.HardClear.Enabled, true) || s.fill() <= or(o.Soft, defaultSoft) {
		return p
	}
	chars := 0
	for i := range s.items[:s.old] {
		if it := &s.items[i]; it.result && !it.fixed && it.images == 0 {
			chars += max(it.size-len(p.Placeholder), 0)
		}
	}
	if chars < or(o.MinChars, defaultMinChars) || 2*chars/estimate.ResultBytesPerToken < s.total {
		return p
	}
	for i := range s.items[:s.old] {
		if it := &s.items[i]; it.result && !it.fixed && it.images == 0 && s.shrink(it, len(p.Placeholder)) {
			p.Clear = append(p.Clear, it.seq)
		}
	}
	return p
}

// trimNote is about the size of the note in a trimmed result.
const trimNote = 80

// longer reports whether a message of size bytes has more than most characters of text.
func longer(m *llm.Message, size, most int) bool {
	switch {
	case size <= most:
		return false
	case size > utf8.UTFMax*most:
		return true
	}
	n := 0
	for i := range m.Parts {
		for text := m.Parts[i].Text; len(text) > 0; {
			piece := text[:min(len(text), 1<<10)]
			text = text[len(piece):]
			for i := range len(piece) { // faster than counting runes
				if utf8.RuneStart(piece[i]) {
					n++
				}
			}
			if n > most {
				return true
			}
		}
	}
	return false
}
