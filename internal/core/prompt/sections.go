package prompt

import "strings"

// Sections returns the sections of a Markdown text that have one of the titles, in the
// order of the titles, with their headings. A section ends at the next heading of the
// same or a higher level. The case of a title does not matter. Headings in fenced code
// are not headings. A title that occurs twice selects the first section. The older
// titles "Every Session" and "Safety" stand for "Session Startup" and "Red Lines" where
// these are missing. The result is empty if there is no such section.
func Sections(text string, titles []string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	levels := headings(lines)
	var found []string
	for _, title := range titles {
		title = strings.TrimSpace(title)
		s := sectionOf(lines, levels, title)
		if s == "" {
			switch strings.ToLower(title) {
			case "session startup":
				s = sectionOf(lines, levels, "Every Session")
			case "red lines":
				s = sectionOf(lines, levels, "Safety")
			}
		}
		if s != "" {
			found = append(found, s)
		}
	}
	return strings.Join(found, "\n\n")
}

// sectionOf returns the first section with a title; "" if there is none.
func sectionOf(lines []string, levels []int, title string) string {
	for i, level := range levels {
		if level == 0 || !strings.EqualFold(headingTitle(lines[i]), title) {
			continue
		}
		end := i + 1
		for end < len(lines) && (levels[end] == 0 || levels[end] > level) {
			end++
		}
		return strings.TrimSpace(strings.Join(lines[i:end], "\n"))
	}
	return ""
}

// headings returns the level of the heading in each line; 0: the line is no heading.
func headings(lines []string) []int {
	levels := make([]int, len(lines))
	fence := ""
	for i, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case fence != "":
			if rest, ok := strings.CutPrefix(line, fence); ok && strings.Trim(rest, fence[:1]) == "" {
				fence = ""
			}
		case strings.HasPrefix(line, "```"), strings.HasPrefix(line, "~~~"):
			fence = line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
		default:
			n := len(line) - len(strings.TrimLeft(line, "#"))
			if n <= 6 && strings.HasPrefix(line[n:], " ") {
				levels[i] = n
			}
		}
	}
	return levels
}

// headingTitle returns the title of a line that is a heading.
func headingTitle(line string) string {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "#"))
}
