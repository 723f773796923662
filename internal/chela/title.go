package chela

import (
	"encoding/json"
	"strings"
	"unicode"
)

// maxTitle bounds what a title says of a call, in characters.
const maxTitle = 120

// CallTitle returns a tool call in one line for people: its name and what it is
// about.
func CallTitle(name string, args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return name
	}
	if about := about(name, fields); about != "" {
		return name + " " + about
	}
	return name
}

// about returns the most telling argument.
func about(name string, fields map[string]any) string {
	text := func(key string) string { s, _ := fields[key].(string); return s }
	switch name {
	case "process":
		return oneLine(text("action") + " " + text("sessionId"))
	case "apply_patch":
		return oneLine(patched(text("input")))
	}
	for _, key := range [...]string{"command", "path", "file_path", "pattern", "query", "url", "name", "text"} {
		if s := oneLine(text(key)); s != "" {
			return s
		}
	}
	return ""
}

// patched returns the files that a patch names.
func patched(patch string) string {
	var files []string
	for line := range strings.Lines(patch) {
		for _, op := range [...]string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"} {
			if file, ok := strings.CutPrefix(line, op); ok {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return strings.Join(files, ", ")
}

// oneLine returns the first line of a text, and a mark when there is more.
func oneLine(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1 // what steers a terminal or reorders text
	}, s)
	if rs := []rune(s); len(rs) > maxTitle {
		s, more = string(rs[:maxTitle]), true
	}
	if more {
		s += "…"
	}
	return strings.TrimSpace(s)
}
