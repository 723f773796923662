package chela

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// maxTitle is the maximum length of the argument in a title, in characters.
const maxTitle = 120

// CallTitle describes a tool call in one line for people: the tool name and the main
// argument.
func CallTitle(name string, args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return name
	}
	if arg := mainArgument(name, fields); arg != "" {
		return name + " " + secret.RedactAddresses(arg)
	}
	return name
}

// mainArgument returns the most descriptive argument of a call.
func mainArgument(name string, fields map[string]any) string {
	text := func(key string) string { s, _ := fields[key].(string); return s }
	switch name {
	case "process":
		return oneLine(text("action") + " " + text("sessionId"))
	case "apply_patch":
		return oneLine(patchedFiles(text("input")))
	case "plan":
		return oneLine(planTitle(fields))
	}
	for _, key := range [...]string{"command", "label", "task", "path", "file_path", "pattern", "query", "url", "name", "text"} {
		if s := oneLine(text(key)); s != "" {
			return s
		}
	}
	return ""
}

// planTitle returns how far a plan is, and its steps in progress.
func planTitle(fields map[string]any) string {
	steps, _ := fields["steps"].([]any)
	done, now := 0, []string{}
	for _, s := range steps {
		step, _ := s.(map[string]any)
		switch title, _ := step["title"].(string); step["state"] {
		case "completed", "failed", "cancelled":
			done++
		case "in_progress":
			now = append(now, title)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", done, len(steps), strings.Join(now, ", ")))
}

// patchedFiles returns the names of the files in a patch.
func patchedFiles(patch string) string {
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
