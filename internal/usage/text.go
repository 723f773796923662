package usage

import (
	"strconv"

	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/llm"
)

// Total returns what the sums spent together.
func Total(sums ...Sum) Sum {
	var t Sum
	for _, s := range sums {
		t.Calls += s.Calls
		t.Tokens = t.Tokens.Add(s.Tokens)
		t.NanoUSD += s.NanoUSD
		t.Unpriced += s.Unpriced
	}
	return t
}

// Priced reports whether every call of the sum had a price: only then its
// money is the whole truth.
func (s Sum) Priced() bool { return s.Calls > 0 && s.Unpriced == 0 }

// Footer returns the line about usage that follows an answer: for "tokens"
// and "full"; every other mode has none. Only "full" shows money, and only
// when all of it is known.
func Footer(mode string, u llm.Usage, nano int64, priced bool) string {
	switch mode {
	case "tokens":
		return Tokens(u)
	case "full":
		if priced {
			return Tokens(u) + " · " + about(u) + USD(nano)
		}
		return Tokens(u)
	}
	return ""
}

// Tokens returns u in words: "in 1.2k · out 340 · cached 12k". In is what was
// not read from the provider's cache.
func Tokens(u llm.Usage) string {
	mark := about(u)
	s := "in " + mark + figure.Count(u.Input+u.CacheWrite) + " · out " + mark + figure.Count(u.Output)
	if u.CacheRead > 0 {
		s += " · cached " + mark + figure.Count(u.CacheRead)
	}
	return s
}

// about marks numbers that no provider reported.
func about(u llm.Usage) string {
	if u.Estimated {
		return "~"
	}
	return ""
}

// USD returns an amount in billionths of a dollar for people: "$0.0045",
// "$12.30". Amounts below a cent keep four digits or, when they are smaller
// still, two that count.
func USD(nano int64) string {
	sign := ""
	if nano < 0 {
		sign, nano = "-", -nano
	}
	digits := 2
	switch {
	case nano == 0:
	case nano < 100_000: // below $0.0001
		digits = 6
	case nano < 1_000_000_000:
		digits = 4
	}
	return sign + "$" + strconv.FormatFloat(float64(nano)/1e9, 'f', digits, 64)
}
