package budget_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/engine/budget"
)

// TestQuoteOfFast reserves at the price of the faster tier, for the models that have one.
func TestQuoteOfFast(t *testing.T) {
	t.Parallel()
	models := []llm.Model{{Price: &llm.Price{Input: 4, Output: 20}, Fast: 2.5}, {Price: &llm.Price{Input: 1, Output: 2}}}
	for fast, want := range map[bool][2]float64{false: {20, 2}, true: {50, 2}} {
		q := budget.QuoteOf(&llm.Request{Messages: []*llm.Message{llm.User("hi")}, Fast: fast}, 0, models...)
		if got := [2]float64{q.Prices[0].Output, q.Prices[1].Output}; got != want {
			t.Errorf("fast %v: prices of output %v, want %v", fast, got, want)
		}
	}
}
