package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, price string
		reads       bool // the usual price of reads is assumed
		usage       llm.Usage
		nano        int64
		known       bool
	}{
		{"complete", `{"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}`, false,
			llm.Usage{Input: 10, Output: 10, CacheRead: 10, CacheWrite: 10}, 220_500, true},
		{"writes cost what input costs", `{"input": 3, "output": 15, "cacheRead": 0}`, false,
			llm.Usage{CacheRead: 10, CacheWrite: 10}, 30_000, true},
		{"free writes", `{"input": 3, "output": 15, "cacheWrite": 0}`, false, llm.Usage{CacheWrite: 10}, 0, true},
		{"unknown reads", `{"input": 3, "output": 15}`, false, llm.Usage{Input: 10, CacheRead: 1}, 0, false},
		{"unknown reads that did not happen", `{"input": 3, "output": 15}`, false, llm.Usage{Input: 10}, 30_000, true},
		{"usual reads", `{"input": 3, "output": 15}`, true, llm.Usage{CacheRead: 10}, 3_000, true},
		{"usual reads replace no price", `{"input": 3, "output": 15, "cacheRead": 1}`, true,
			llm.Usage{CacheRead: 10}, 10_000, true},
	} {
		var m llm.Model
		if err := json.Unmarshal([]byte(`{"cost": `+c.price+`}`), &m); err != nil {
			t.Fatal(err)
		}
		if c.reads {
			m.Price = m.Price.WithReads()
		}
		if nano, known := m.Cost(c.usage); nano != c.nano || known != c.known {
			t.Errorf("%s: %d %v, want %d %v", c.name, nano, known, c.nano, c.known)
		}
	}
	fast := llm.Model{Price: &llm.Price{Input: 4, Output: 20, CacheRead: 0.2, CacheWrite: 5}, Fast: 2.5}
	used := llm.Usage{Input: 10, Output: 10, CacheRead: 10, CacheWrite: 10}
	usual, _ := fast.Cost(used)
	if used.Fast = true; used.Add(used).Fast {
		t.Error("a sum is of the fast tier")
	}
	if nano, known := fast.Cost(used); nano != 730_000 || usual != 292_000 || !known {
		t.Errorf("in the fast tier: %d %v, else %d", nano, known, usual)
	}
	fast.Fast = 0
	if nano, known := fast.Cost(used); known {
		t.Errorf("in a fast tier whose price is not known: %d", nano)
	}
	if _, known := (llm.Model{}).Cost(llm.Usage{Input: 1}); known {
		t.Error("a cost without a price")
	}
}
