package usage

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestFooter(t *testing.T) {
	t.Parallel()
	u := llm.Usage{Input: 1000, Output: 100}
	price := &llm.Price{Input: 3, Output: 15}
	nano := price.Cost(u)
	for _, c := range []struct {
		name, mode string
		u          llm.Usage
		nano       int64
		priced     bool
		want       string
	}{
		{"USAGE-02 price 3/15", "full", u, nano, true, "in 1k · out 100 · $0.0045"},
		{"USAGE-03 no price", "full", u, 0, false, "in 1k · out 100"},
		{"USAGE-04 off", "off", u, nano, true, ""},
		{"unset", "", u, nano, true, ""},
		{"USAGE-07 tokens", "tokens", llm.Usage{Input: 1180, Output: 340, CacheRead: 12_000}, nano, true,
			"in 1.2k · out 340 · cached 12k"},
		{"estimated", "full", llm.Usage{Input: 10, Output: 5, Estimated: true}, 10_000, true, "in ~10 · out ~5 · ~$0.000010"},
		{"cache writes count as input", "tokens", llm.Usage{Input: 10, CacheWrite: 90, Output: 1}, 0,
			false, "in 100 · out 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Footer(c.mode, c.u, c.nano, c.priced)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !c.priced && strings.Contains(got, "$") {
				t.Error("a dollar sign without a price")
			}
		})
	}
}

func TestUSD(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0:              "$0.00",
		4_500_000:      "$0.0045",
		20_000:         "$0.000020",
		12_300_000_000: "$12.30",
		999_000_000:    "$0.9990",
		99_999:         "$0.000100",
		100_000:        "$0.0001",
		1_000_000_000:  "$1.00",
		-4_500_000:     "-$0.0045",
	} {
		if got := USD(n); got != want {
			t.Errorf("USD(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestTotal(t *testing.T) {
	t.Parallel()
	a := Sum{Calls: 2, NanoUSD: 5, Tokens: llm.Usage{Input: 1, Output: 2}}
	b := Sum{Calls: 1, Unpriced: 1, Tokens: llm.Usage{CacheRead: 3, Estimated: true}}
	got := Total(a, b)
	want := Sum{Calls: 3, NanoUSD: 5, Unpriced: 1, Tokens: llm.Usage{Input: 1, Output: 2, CacheRead: 3, Estimated: true}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !a.Priced() || b.Priced() || got.Priced() || (Sum{}).Priced() {
		t.Error("Priced: want only a")
	}
}
