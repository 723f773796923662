package llm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Model describes a model: its abilities and prices.
type Model struct {
	Provider  string  `json:"provider"`
	ID        string  `json:"id"`
	Name      string  `json:"name,omitempty"`
	Context   int     `json:"contextWindow,omitempty"` // tokens; 0: unknown
	MaxOutput int     `json:"maxTokens,omitempty"`     // tokens; 0: unknown
	Images    bool    `json:"images,omitempty"`
	Levels    []Level `json:"levels,omitempty"` // supported thinking levels; nil: none
	Price     *Price  `json:"cost,omitempty"`   // nil: unknown
	// Fast is the price of tokens in the faster tier of its service, as a multiple of Price;
	// 0: it has none, or none that is known.
	Fast   float64 `json:"fast,omitempty"`
	Compat Compat  `json:"-"` // deviations of its service
}

// Price is the price of a model in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
	// NoReads is set if the price of tokens read from the cache is not known.
	NoReads bool `json:"-"`
}

// UnmarshalJSON reads a price. Without cacheWrite, writing to the cache costs what input
// costs. Without cacheRead, NoReads is set.
func (p *Price) UnmarshalJSON(b []byte) error {
	var in struct {
		Input, Output         float64
		CacheRead, CacheWrite *float64
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*p = Price{Input: in.Input, Output: in.Output, CacheWrite: in.Input, NoReads: in.CacheRead == nil}
	if in.CacheRead != nil {
		p.CacheRead = *in.CacheRead
	}
	if in.CacheWrite != nil {
		p.CacheWrite = *in.CacheWrite
	}
	return nil
}

// usualRead is what services usually charge for tokens that they read from the cache, as
// a share of the price of input.
const usualRead = 0.1

// WithReads returns the price with the usual price of tokens read from the cache, if none
// is known.
func (p *Price) WithReads() *Price {
	if p == nil || !p.NoReads {
		return p
	}
	own := *p
	own.CacheRead, own.NoReads = p.Input*usualRead, false
	return &own
}

// Cost returns the cost of u in billionths of a dollar.
func (p *Price) Cost(u Usage) int64 {
	return int64(float64(u.Input)*p.Input*1000 + float64(u.Output)*p.Output*1000 +
		float64(u.CacheRead)*p.CacheRead*1000 + float64(u.CacheWrite)*p.CacheWrite*1000 + 0.5)
}

// Cost returns the cost of u in billionths of a dollar. It reports false if it is not
// known, because a price is missing or that of the faster tier is not known.
func (m Model) Cost(u Usage) (nano int64, known bool) {
	if m.Price == nil || m.Price.NoReads && u.CacheRead > 0 {
		return 0, false
	}
	if !u.Fast {
		return m.Price.Cost(u), true
	}
	if m.Fast == 0 {
		return 0, false
	}
	return m.FastPrice().Cost(u), true
}

// FastPrice returns the price in the faster tier of the service. The model must have a
// price and such a tier.
func (m Model) FastPrice() *Price {
	p := *m.Price
	p.Input, p.Output, p.CacheRead, p.CacheWrite = p.Input*m.Fast, p.Output*m.Fast, p.CacheRead*m.Fast, p.CacheWrite*m.Fast
	return &p
}

// Ref returns "provider/id".
func (m Model) Ref() string { return m.Provider + "/" + m.ID }

// unknownWindow is the assumed context of an unknown model, in tokens.
const unknownWindow = 200_000

// Window returns the size of the context in tokens, or an assumption if it is
// unknown.
func (m Model) Window() int {
	if m.Context > 0 {
		return m.Context
	}
	return unknownWindow
}

// Thinks reports whether m supports l. Every model supports [Off].
func (m Model) Thinks(l Level) bool {
	if l == "" || l == Off {
		return true
	}
	return slices.Contains(m.Levels, l)
}

// Level returns the highest supported level not above want.
func (m Model) Level(want Level) Level {
	best := Off
	for _, l := range Levels {
		if m.Thinks(l) {
			best = l
		}
		if l == want || want == "" {
			break
		}
	}
	return best
}

// Ref names a model of a provider.
type Ref struct{ Provider, Model string }

// String returns "provider/model".
func (r Ref) String() string { return r.Provider + "/" + r.Model }

// ParseRef splits s at its first slash. A model id may contain further slashes.
// Without a slash the provider is empty.
func ParseRef(s string) (Ref, error) {
	s = strings.TrimSpace(s)
	p, m, ok := strings.Cut(s, "/")
	if !ok {
		p, m = "", s
	}
	if m == "" || ok && p == "" {
		return Ref{},
			chela.Errorf(chela.CodeInvalid, "model %q: want provider/model, for example anthropic/claude-sonnet-4-5", s)
	}
	return Ref{Provider: strings.ToLower(p), Model: m}, nil
}
