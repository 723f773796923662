package logfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Line is a parsed log record.
type Line struct {
	Time    string // as written
	Level   string
	Message string
	Attrs   string // other attributes, as key=value in their order
}

// Parse parses a line that is one JSON object with a message. It reports false
// for other lines.
func Parse(line []byte) (Line, bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid(line) {
		return Line{}, false
	}
	var l Line
	var attrs []string
	for d.More() {
		name, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			return Line{}, false
		}
		switch name {
		case "time":
			l.Time = bare(v)
		case "level":
			l.Level = bare(v)
		case "msg":
			l.Message = bare(v)
		default:
			attrs = append(attrs, fmt.Sprint(name, "=", short(v)))
		}
	}
	l.Attrs = strings.Join(attrs, " ")
	return l, l.Message != ""
}

// bare returns the text of a string, or any other value as it is written.
func bare(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

// short returns a value for display, with quotes only if it contains spaces.
func short(v []byte) string {
	if s := bare(v); s != "" && !strings.ContainsAny(s, " \t\r\n\"=") {
		return s
	}
	return string(v)
}
