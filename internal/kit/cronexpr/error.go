package cronexpr

import "fmt"

// Error describes why a text is not a cron expression.
type Error struct {
	// "second", "minute", "hour", "day of month", "month", "day of week", "year"; "" for the whole
	// expression
	Field  string
	Value  string // the part of the text that is wrong
	Reason string // follows the value in a sentence: "is not a number"
}

// Error returns a sentence about the part that is wrong, with the name of its
// field.
func (e *Error) Error() string {
	field := e.Field
	if field == "" {
		field = "cron expression"
	}
	return fmt.Sprintf("%s %q %s", field, e.Value, e.Reason)
}
