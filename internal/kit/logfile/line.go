package logfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Line is a parsed log record.
type Line struct {
	Time    string // as written
	Level   string
	Message string
	Attrs   string // other attributes, as key=value in their order
}

// blank is the whitespace of JSON.
const blank = " \t\r\n"

// Parse parses a line that is one JSON object with a message. It reports false
// for other lines.
func Parse(line []byte) (Line, bool) {
	line = bytes.Trim(line, blank)
	if !bytes.HasPrefix(line, []byte("{")) || !json.Valid(line) {
		return Line{}, false
	}
	var l Line
	var attrs []string
	for rest := bytes.Trim(line[1:len(line)-1], blank); len(rest) > 0; rest = bytes.TrimLeft(rest, blank+",") {
		name, after := value(rest)
		v, after := value(bytes.TrimLeft(after, blank+":"))
		rest = after
		switch name := bare(name); name {
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
	return l, l.Message != ""
}

// value returns the first value of a fragment of valid JSON, and the rest.
func value(b []byte) (v, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ', '\t', '\r', '\n', ',', ':': // after a literal or a number
			if depth == 0 {
				return b[:i], b[i:]
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return b[:i+1], b[i+1:]
		}
	}
	return b, nil
}

// bare returns a string without its quotes, and other values as written.
func bare(v []byte) string {
	if in, ok := bytes.CutPrefix(v, []byte(`"`)); ok && !bytes.ContainsFunc(in, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) {
		return string(in[:len(in)-1])
	}
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
