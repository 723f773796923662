package cronexpr

import "math/bits"

// Expr is a cron expression. The zero Expr matches no time. An Expr does not
// change, so it can be used by several goroutines at once.
type Expr struct {
	text           string
	second, minute uint64 // bit n is set if the value n matches, here and below
	hour, month    uint32
	day            uint32   // of the month
	nearest        uint32   // the days with W
	lastDay        bool     // L
	lastWeekday    bool     // LW
	weekday        [7]uint8 // the weeks of the month for each weekday: bit n-1 is #n, lastWeek is #L
	anyDay         bool     // the day of month is *
	anyWeekday     bool     // the day of week is *
	both           bool     // the day of week has +
	fixed          bool     // second, minute and hour are single values
	years          *yearSet // nil for any year
	kinds          uint16   // bit n is set if years of the kind n have a day that matches
}

// The weeks of the month in which a weekday matches.
const (
	everyWeek = 1<<5 - 1
	lastWeek  = 1 << 5
)

// String returns the text that Parse was given, without the white space around
// it.
func (e Expr) String() string { return e.text }

// TopOfHour reports whether e matches the first second of more than one hour of
// a day and no other second of an hour, as "0 * * * *" and "0 9-17 * * MON" do.
func (e Expr) TopOfHour() bool {
	return e.second == 1 && e.minute == 1 && bits.OnesCount32(e.hour) > 1
}

const (
	firstYear = 1
	lastYear  = 9999
)

// yearSet is a set of years: bit n%64 of element n/64 is the year n.
type yearSet [(lastYear + 64) / 64]uint64

func (s *yearSet) add(year int) { s[year/64] |= 1 << (year % 64) }

func (s *yearSet) has(year int) bool { return s[year/64]>>(year%64)&1 != 0 }
