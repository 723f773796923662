package logfile

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Line is a record of a log, apart.
type Line struct {
	Time    string // as it was written
	Level   string
	Message string
	Attrs   string // the rest, as key=value in the order in which it was written
}

// Parse takes a line apart that is one JSON object with a message. It reports
// whether the line is.
func Parse(line []byte) (Line, bool) {
	var l Line
	var attrs []string
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return Line{}, false
	}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var v json.RawMessage
		if err != nil || !ok || dec.Decode(&v) != nil {
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
			attrs = append(attrs, name+"="+short(v))
		}
	}
	l.Attrs = strings.Join(attrs, " ")
	_, err := dec.Token()
	return l, err == nil && l.Message != "" && dec.InputOffset() == int64(len(line))
}

// bare returns a text without its quotes, and anything else as it is written.
func bare(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

// short returns a value as people read it: quotes are only around a text in
// which its end would not be seen.
func short(v json.RawMessage) string {
	if s := bare(v); s != "" && !strings.ContainsAny(s, " \t\r\n\"=") {
		return s
	}
	return string(v)
}
