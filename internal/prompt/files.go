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
			fmt.Fprintf(&b, "\n%s was left out: %s.\n", Name(f.Name), f.Problem)
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
		head.WriteString("These files of the workspace are the person's own words to you, as they are now.\n")
	}
	if slices.ContainsFunc(in.Files, isSoul) {
		head.WriteString(personaText)
	}
	if missing != nil {
		fmt.Fprintf(&head, "Missing files: %s.\n", strings.Join(missing, ", "))
	}
	if cut != nil {
		fmt.Fprintf(&head, "Too long to be shown whole: %s. Read the file when you need what was left out.\n", strings.Join(cut, ", "))
	}
	return head.String() + b.String()
}

// isSoul reports whether f describes the persona.
func isSoul(f File) bool { return strings.EqualFold(f.Name, "SOUL.md") && f.Text != "" }

// shorten returns at most limit characters of a text: its head and its tail
// around a marker.
func shorten(name, text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	marker := fmt.Sprintf("\n\n[… %d of %d characters of %s left out …]\n\n", n-limit, n, name)
	room := limit - utf8.RuneCountInString(marker)
	if room < 0 {
		return ""
	}
	runes := []rune(text)
	tail := room / 4
	return string(runes[:room-tail]) + marker + string(runes[n-tail:])
}
