package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// files renders the workspace files within the limits.
func files(in Input) string {
	perFile, left := in.MaxFile, in.MaxFiles
	if perFile <= 0 {
		perFile = DefaultMaxFile
	}
	if left <= 0 {
		left = DefaultMaxFiles
	}
	var b strings.Builder
	var missing, cut []string
	for _, f := range in.Files {
		switch {
		case f.Missing:
			missing = append(missing, f.Name)
			continue
		case f.Problem != "":
			fmt.Fprintf(&b, "\n%s is omitted: %s.\n", Name(f.Name), f.Problem)
			continue
		case f.Text == "":
			continue
		}
		text := shorten(f.Name, f.Text, min(perFile, left))
		if len(text) != len(f.Text) {
			cut = append(cut, f.Name)
		}
		left -= utf8.RuneCountInString(text)
		if text != "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n", Name(f.Name), text)
		}
	}
	var head strings.Builder
	if b.Len() > 0 {
		head.WriteString("The workspace files below were written by the person for you. This is their current content.\n")
	}
	if slices.ContainsFunc(in.Files, isSoul) {
		head.WriteString(personaText)
	}
	if missing != nil {
		fmt.Fprintf(&head, "Missing files: %s.\n", strings.Join(missing, ", "))
	}
	if cut != nil {
		fmt.Fprintf(&head, "Truncated because of their length: %s. Read the file if you need the omitted part.\n", strings.Join(cut, ", "))
	}
	return head.String() + b.String()
}

// isSoul reports whether f is a SOUL.md with content.
// ForChildren returns the files that subagents get: those about the work, and not those
// about the person and the persona.
func ForChildren(files []File) []File {
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Name != "AGENTS.md" && f.Name != "TOOLS.md" })
}

func isSoul(f File) bool { return strings.EqualFold(f.Name, "SOUL.md") && f.Text != "" }

// shorten returns at most limit characters of a text. It replaces the middle of a
// longer text with a marker.
func shorten(name, text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	marker := fmt.Sprintf("\n\n[… %d of %d characters of %s omitted …]\n\n", n-limit, n, name)
	room := limit - utf8.RuneCountInString(marker)
	if room < 0 {
		return ""
	}
	runes := []rune(text)
	tail := room / 4
	return string(runes[:room-tail]) + marker + string(runes[n-tail:])
}
