package cronexpr

import (
	"fmt"
	"strings"
)

// field describes a field of an expression.
type field struct {
	name     string
	min, max int
	values   int    // the longest step
	names    string // of the values from min, with three letters each
	sunday   bool   // the first name is max as well, at the end of a range
	zero     bool   // steps count from 0, though it is not a value
}

func (f *field) fail(value, format string, args ...any) *Error {
	return &Error{Field: f.name, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// parse calls add with the values that match.
func (f *field) parse(text string, add func(int)) *Error {
	for _, item := range strings.Split(text, ",") {
		if err := f.item(item, add); err != nil {
			return err
		}
	}
	return nil
}

// item calls add with the values of an item.
func (f *field) item(text string, add func(int)) *Error {
	if text == "" {
		return f.fail(text, "is empty")
	}
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step < 1 || step > f.values {
			return f.fail(text, "does not have a step from 1 to %d", f.values)
		}
	}
	first, last, ranged := strings.Cut(span, "-")
	if stepped && !ranged && span != "*" {
		return f.fail(text, "has a step without * or a range before it")
	}
	lo, hi, err := f.span(first, last, ranged)
	if err != nil {
		err.Value = text
		return err
	}
	for n := lo; n <= hi; n += step {
		if n > f.max {
			return f.fail(text, "is not in the range %d to %d", f.min, f.max)
		}
		if n >= f.min {
			add(n)
		}
	}
	return nil
}

// span returns the first and last value of an item: of first to last if ranged,
// of first otherwise.
func (f *field) span(first, last string, ranged bool) (lo, hi int, err *Error) {
	if first == "*" && !ranged {
		if f.zero {
			return 0, f.max, nil
		}
		return f.min, f.max, nil
	}
	if lo, err = f.value(first); err != nil || !ranged {
		return lo, lo, err
	}
	if f.sunday && upper(last) == f.names[:3] {
		return lo, f.max, nil
	}
	hi, ok := f.read(last)
	if !ok {
		return 0, 0, f.fail(last, "is not a number%s", f.orName())
	}
	if lo > hi {
		return 0, 0, f.fail(last, "begins above its end")
	}
	return lo, hi, nil
}

// value returns the value of a number or name.
func (f *field) value(text string) (int, *Error) {
	n, ok := f.read(text)
	if !ok {
		return 0, f.fail(text, "is not a number%s", f.orName())
	}
	if n < f.min || n > f.max {
		return 0, f.fail(text, "is not in the range %d to %d", f.min, f.max)
	}
	return n, nil
}

func (f *field) orName() string {
	if f.names == "" {
		return ""
	}
	return " or a name"
}

// read returns the number that a text is or that its name has.
func (f *field) read(text string) (int, bool) {
	if len(text) == 3 {
		for i := 0; i < len(f.names); i += 3 {
			if upper(text) == f.names[i:i+3] {
				return f.min + i/3, true
			}
		}
	}
	return number(text)
}

// weeks splits an item of the day of week into its days and the weeks of the
// month that its suffix selects.
func (f *field) weeks(item string) (days string, weeks uint8, err *Error) {
	days, week, ok := strings.Cut(upper(item), "#")
	if !ok {
		if days, ok = strings.CutSuffix(days, "L"); !ok {
			return item, everyWeek, nil
		}
		week = "L"
	}
	n, ok := number(week)
	switch {
	case week == "L":
		weeks = lastWeek
	case ok && n >= 1 && n <= 5:
		weeks = 1 << (n - 1)
	default:
		return "", 0, f.fail(item, "does not have a week from 1 to 5 or L after the #")
	}
	if days == "" || days == "*" {
		return "", 0, f.fail(item, "does not have a day before the week")
	}
	return days, weeks, nil
}

// number reads decimal digits. The result is limited to a value that is too high
// for any field.
func number(text string) (int, bool) {
	n := 0
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), 1<<20)
	}
	return n, text != ""
}

// upper returns a text with its letters from a to z in upper case.
func upper(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, text)
}
