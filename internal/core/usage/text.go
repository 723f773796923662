package usage

import (
	"strconv"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Total returns the total of sums.
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

// Priced reports whether every call in the sum had a price, so that NanoUSD is complete.
func (s Sum) Priced() bool { return s.Calls > 0 && s.Unpriced == 0 }

// Footer returns the line about usage that follows an answer, for the modes "tokens" and
// "full". For other modes it returns "". Only "full" includes the cost, and only if
// priced is set.
func Footer(mode string, u llm.Usage, nano int64, priced bool) string {
	switch mode {
	case "tokens":
		return Tokens(u)
	case "full":
		if priced {
			return Tokens(u) + " · " + estimateMark(u) + USD(nano)
		}
		return Tokens(u)
	}
	return ""
}

// Tokens formats u for people: "in 1.2k · out 340 · cached 12k". "in" excludes tokens
// read from the provider's cache.
func Tokens(u llm.Usage) string {
	mark := estimateMark(u)
	s := "in " + mark + humanize.Count(u.Input+u.CacheWrite) + " · out " + mark + humanize.Count(u.Output)
	if u.CacheRead > 0 {
		s += " · cached " + mark + humanize.Count(u.CacheRead)
	}
	return s
}

// estimateMark returns the prefix of estimated numbers.
func estimateMark(u llm.Usage) string {
	if u.Estimated {
		return "~"
	}
	return ""
}

// USD formats an amount in billionths of a dollar for people: "$0.0045", "$12.30".
// Amounts below a dollar have four decimal places, very small ones six.
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
