// Package usage records the cost of model calls: one [Row] per call, sums of rows, the
// [Budget] of a run, the [Limits] of money, and the [Hold] that reserves money before a
// call.
package usage

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
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

// RowOf returns the row of a call of a model, at its present price. The caller sets for
// whom the call was.
func RowOf(m llm.Model, u llm.Usage, now time.Time) Row {
	row := Row{Provider: m.Provider, Model: m.ID, Time: now, Tokens: u}
	row.NanoUSD, row.Priced = m.Cost(u)
	return row
}

// Sum is the total usage of several calls.
type Sum struct {
	Day      string           // YYYY-MM-DD; empty in a total
	Session  chela.SessionKey // with Query.BySession and of Reader.OfTree only
	Run      chela.RunID      // of Reader.OfTree only
	Provider string
	Model    string
	Calls    int64
	Tokens   llm.Usage
	NanoUSD  int64
	Unpriced int64 // calls without a price
}

// Query selects the rows to sum. The zero Query selects all rows.
type Query struct {
	Session   chela.SessionKey // empty: all
	Since     time.Time
	Until     time.Time     // exclusive; zero: no limit
	Offset    time.Duration // offset of the days from UTC; positive: east
	BySession bool          // a sum per session, ordered by key first
}

// Activity counts what happened in a session on a day: messages, or calls of a tool that have
// the same result.
type Activity struct {
	Day     string // YYYY-MM-DD
	Session chela.SessionKey
	Tool    string // "": messages that began a run or joined one
	Result  string // of the calls: ok, error and others; "": they have not ended
	Count   int64
}

// Reader reads usage.
type Reader interface {
	// Sums returns sums by day and model, oldest first.
	Sums(Query) ([]Sum, error)
	// Activity counts messages and tool calls by session, day, tool and result, in this
	// order. Rows that maintenance has removed are not counted. BySession is ignored.
	Activity(Query) ([]Activity, error)
	// OfRun returns the total of one run.
	OfRun(chela.RunID) (Sum, error)
	// Committed returns the amount spent or held in the named scope. Only calls for
	// which a hold was stored are included.
	Committed(scope string) (int64, error)
	// Held returns the part of Committed that is held and not settled.
	Held(scope string) (int64, error)
	// OfTree returns the usage of a run and of all runs below it, a sum for each run and
	// model, in the order of the runs' first calls.
	OfTree(root chela.RunID) ([]Sum, error)
}

// Table reads and writes usage in a transaction.
type Table interface {
	Reader
	// Add stores a row.
	Add(Row) error
	// PutHold stores a hold without checking its limits; use [Reserve]. It fails with
	// a chela.CodeConflict error if the id exists.
	PutHold(Hold) error
	// SettleHold replaces a hold by the amount spent. It fails with a
	// chela.CodeConflict error if the hold is already settled.
	SettleHold(id string, nano int64) error
	// PruneHolds deletes holds created before t and returns the number of rows.
	PruneHolds(t time.Time) (int, error)
}

// Budget limits a run. A field that is not positive is no limit.
type Budget struct {
	ToolCalls int           // tool calls
	Failures  int           // consecutive failed tool calls
	Identical int           // calls of one tool with the same arguments, other than polls
	Tokens    int64         // of all model calls
	Time      time.Duration // wall time
}
