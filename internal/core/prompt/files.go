package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// files renders the workspace files within the limits, in pieces, and what is to be said
// about them.
func files(in Input) (note string, context []string) {
	perFile, left := in.MaxFile, in.MaxFiles
	if perFile <= 0 {
		perFile = DefaultMaxFile
	}
	if left <= 0 {
		left = DefaultMaxFiles
	}
	var missing, cut []string
	for _, f := range in.Files {
		switch {
		case f.Missing:
			missing = append(missing, Name(f.Name))
			continue
		case f.Problem != "":
			context = append(context, "\n"+Name(f.Name)+" is omitted: "+f.Problem+".\n")
			continue
		case f.Text == "":
			continue
		}
		limit := min(perFile, left)
		if f.Name == userFile {
			limit = min(limit, maxUser)
		}
		text := shorten(f.Name, f.Text, limit)
		if len(text) != len(f.Text) {
			cut = append(cut, Name(f.Name))
		}
		left -= utf8.RuneCountInString(text)
		if text == "" {
			continue
		}
		context = append(context, "\n### "+Name(f.Name)+"\n\n")
		if in.Warn == WarnAlways && len(text) != len(f.Text) {
			context = append(context, "("+truncated(Name(f.Name))+")\n\n")
		}
		context = append(context, text, "\n")
	}
	var head strings.Builder
	if context != nil {
		head.WriteString(
			"The files under \"Project context\" were written by the person for you. This is their current content.\n")
	}
	if missing != nil {
		fmt.Fprintf(&head, "Missing files: %s.\n", strings.Join(missing, ", "))
	}
	if cut != nil && in.Warn != WarnOff {
		head.WriteString(truncated(strings.Join(cut, ", ")) + "\n")
	}
	if slices.ContainsFunc(in.Files, isSoul) {
		return head.String(), slices.Insert(context, 0, personaText)
	}
	return head.String(), context
}

// truncated is the notice about truncated files.
func truncated(names string) string {
	return "Truncated because of their length: " + names + ". Read the file if you need the omitted part."
}

// ForChildren returns the files that subagents get: those about the work, and not those
// about the person and the persona.
func ForChildren(files []File) []File {
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Name != agentsFile && f.Name != toolsFile })
}

// ForHeartbeats returns the files that light heartbeats get.
func ForHeartbeats(files []File) []File {
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Name != heartbeatFile })
}

// HasHeartbeat reports whether the files contain a HEARTBEAT.md with content.
func HasHeartbeat(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool { return f.Name == heartbeatFile && f.Text != "" })
}

// isSoul reports whether f is a SOUL.md with content.
func isSoul(f File) bool {
	base := f.Name[strings.LastIndexAny(f.Name, `/\`)+1:]
	return strings.EqualFold(base, soulFile) && f.Text != ""
}

// shorten returns at most limit characters of a text. It replaces the middle of a
// longer text with a marker.
func shorten(name, text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	marker := fmt.Sprintf("\n\n[… %d of %d characters of %s omitted …]\n\n", n-limit, n, Name(name))
	room := limit - utf8.RuneCountInString(marker)
	if room < 0 {
		return ""
	}
	runes := []rune(text)
	tail := room / 4
	return string(runes[:room-tail]) + marker + string(runes[n-tail:])
}
