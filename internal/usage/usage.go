// Package usage is what was spent: one [Row] per model call, sums of them, and
// the [Budget] that ends a run.
package usage

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// Row is the usage of one model call.
type Row struct {
	Run      chela.RunID
	Session  chela.SessionKey
	Agent    chela.AgentID
	Provider string
	Model    string
	Time     time.Time
	Tokens   llm.Usage
	NanoUSD  int64 // billionths of a dollar, at that time's price
	Priced   bool  // false: no price known, NanoUSD is 0
}

// Sum is what several calls spent together.
type Sum struct {
	Day      string           // YYYY-MM-DD; empty in a total
	Session  chela.SessionKey // with Query.BySession only
	Provider string
	Model    string
	Calls    int64
	Tokens   llm.Usage
	NanoUSD  int64
	Unpriced int64 // calls without a price
}

// Query says what is summed up. The zero Query sums up all that was ever used.
type Query struct {
	Session   chela.SessionKey // empty: all
	Since     time.Time
	Until     time.Time     // the first moment that does not count; zero: none
	Offset    time.Duration // by which days begin before those of UTC
	BySession bool          // sums of each session, by its key first
}

// Reader reads usage.
type Reader interface {
	// Sums returns sums by day and model, oldest first.
	Sums(Query) ([]Sum, error)
	// OfRun returns the total of one run.
	OfRun(chela.RunID) (Sum, error)
}

// Table is the usage inside a transaction.
type Table interface {
	Reader
	// Add stores a row.
	Add(Row) error
}

// Budget bounds a run. Fields that are not positive do not bound.
type Budget struct {
	ToolCalls int           // calls of tools
	Failures  int           // calls of tools that failed, one after the other
	Identical int           // calls of one tool with the same arguments, other than polls
	Tokens    int64         // of all model calls
	NanoUSD   int64         // of all model calls with a price
	Time      time.Duration // wall time
}
