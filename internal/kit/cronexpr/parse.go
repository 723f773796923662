package cronexpr

import (
	"math/bits"
	"strings"
)

// Parse reads a cron expression. The error is an [*Error].
func Parse(text string) (Expr, error) {
	text = strings.TrimSpace(text)
	fields, err := split(text)
	if err != nil {
		return Expr{}, err
	}
	e := Expr{text: text, fixed: true}
	for i, parse := range []func(*Expr, string) *Error{parseSecond, parseMinute, parseHour, parseDay, parseMonth,
		parseWeekday, parseYear} {
		// ? is another way to write *.
		field := strings.ReplaceAll(fields[i], "?", "*")
		if err := parse(&e, field); err != nil {
			return Expr{}, err
		}
		if i < 3 && strings.ContainsAny(field, "*/") {
			e.fixed = false
		}
	}
	single := bits.OnesCount64(e.second) == 1 && bits.OnesCount64(e.minute) == 1 && bits.OnesCount32(e.hour) == 1
	e.fixed = e.fixed && single
	e.kinds = e.findKinds()
	return e, nil
}

// split returns the seven fields of an expression.
func split(text string) ([]string, error) {
	if strings.HasPrefix(text, "@") && len(strings.Fields(text)) == 1 {
		long, ok := nickname(upper(text))
		if !ok {
			return nil, &Error{Value: text,
				Reason: "is not a nickname: want @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly"}
		}
		text = long
	}
	fields := strings.Fields(text)
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, append(fields, "*")...)
	case 6:
		fields = append(fields, "*")
	case 7:
	default:
		return nil, &Error{Value: text, Reason: "does not have 5, 6 or 7 fields"}
	}
	return fields, nil
}

func nickname(name string) (string, bool) {
	switch name {
	case "@YEARLY", "@ANNUALLY":
		return "0 0 1 1 *", true
	case "@MONTHLY":
		return "0 0 1 * *", true
	case "@WEEKLY":
		return "0 0 * * SUN", true
	case "@DAILY", "@MIDNIGHT":
		return "0 0 * * *", true
	case "@HOURLY":
		return "0 * * * *", true
	}
	return "", false
}

func parseSecond(e *Expr, text string) *Error {
	f := field{name: "second", max: 59, values: 60}
	return f.parse(text, func(n int) { e.second |= 1 << n })
}

func parseMinute(e *Expr, text string) *Error {
	f := field{name: "minute", max: 59, values: 60}
	return f.parse(text, func(n int) { e.minute |= 1 << n })
}

func parseHour(e *Expr, text string) *Error {
	f := field{name: "hour", max: 23, values: 24}
	return f.parse(text, func(n int) { e.hour |= 1 << n })
}

func parseMonth(e *Expr, text string) *Error {
	f := field{name: "month", min: 1, max: 12, values: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	return f.parse(text, func(n int) { e.month |= 1 << n })
}

func parseYear(e *Expr, text string) *Error {
	if text == "*" {
		return nil
	}
	e.years = new(yearSet)
	f := field{name: "year", min: firstYear, max: lastYear, values: lastYear + 1, zero: true}
	return f.parse(text, e.years.add)
}

func parseDay(e *Expr, text string) *Error {
	f := field{name: "day of month", min: 1, max: 31, values: 31}
	if upper(text) == "LW" {
		e.lastWeekday = true
		return nil
	}
	var rest []string // the items but L
	for _, item := range strings.Split(text, ",") {
		day, nearest := strings.CutSuffix(upper(item), "W")
		switch {
		case day == "L" && nearest:
			return f.fail(text, "has LW in a list")
		case day == "L":
			e.lastDay = true
			continue
		case nearest:
			n, err := f.value(day)
			if err != nil {
				return f.fail(item, "does not have a day from 1 to 31 before the W")
			}
			e.nearest |= 1 << n
		default:
			if err := f.item(item, func(n int) { e.day |= 1 << n }); err != nil {
				return err
			}
		}
		rest = append(rest, item)
	}
	e.anyDay = len(rest) == 1 && rest[0] == "*"
	return nil
}

func parseWeekday(e *Expr, text string) *Error {
	// The step */7 is the longest, though 7 is a value as well.
	f := field{name: "day of week", max: 7, values: 7, names: "SUNMONTUEWEDTHUFRISAT", sunday: true}
	text, e.both = strings.CutPrefix(text, "+")
	e.anyWeekday = text == "*"
	for _, item := range strings.Split(text, ",") {
		days, weeks, err := f.weeks(item)
		if err != nil {
			return err
		}
		if err := f.item(days, func(n int) { e.weekday[n%7] |= weeks }); err != nil {
			err.Value = item
			return err
		}
	}
	return nil
}
