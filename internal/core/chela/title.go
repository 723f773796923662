package chela

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// maxTitle is the maximum length of the argument in a title, in characters.
const maxTitle = 120

// CallTitle describes a tool call in one line for people: the name of the tool and the title
// that the tool gives to the call, or else the main argument.
func CallTitle(name, title string, args json.RawMessage) string {
	if title == "" {
		title = mainArgument(args)
	}
	if title = oneLine(title); title == "" {
		return name
	}
	return name + " " + secret.RedactAddresses(title)
}

// mainArgument returns the most descriptive argument of a call.
func mainArgument(args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, key := range [...]string{"command", "label", "task", "path", "file_path", "pattern", "query",
		"url", "name", "text"} {
		s, _ := fields[key].(string)
		if s = oneLine(s); s != "" {
			return s
		}
	}
	return ""
}

func oneLine(s string) string { return Line(s, maxTitle) }

// Line returns the first line of a text without control characters, with an ellipsis if
// the text is truncated. It has at most limit characters.
func Line(s string, limit int) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1 // control characters and characters that reorder text
	}, s)
	if rs := []rune(s); len(rs) > limit {
		s, more = string(rs[:limit]), true
	}
	if more {
		s += "…"
	}
	return strings.TrimSpace(s)
}
