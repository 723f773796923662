package markdown

import "strings"

// Cut returns the length of the complete blocks at the beginning of a growing
// text. Appending to the text does not change how they are rendered. It cuts
// only after an empty line outside of code, before a line that cannot belong to
// a list.
func Cut(src string) int {
	cut, fence := 0, ""
	blank := false
	for at := 0; at < len(src); {
		end := strings.IndexByte(src[at:], '\n')
		if end < 0 {
			end = len(src) - at
		} else {
			end++
		}
		line := src[at : at+end]
		body := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(body, fence) && strings.Trim(body, fence[:1]) == "" {
				fence = ""
			}
			blank = false
		case body == "":
			blank = true
		default:
			if blank && begins(line) {
				cut = at
			}
			blank = false
			fence = opened(body)
		}
		at += end
	}
	return cut
}

// begins reports whether a line after an empty one is certain to begin a new
// block. The line may be incomplete, so a prefix of a list marker is not
// certain.
func begins(line string) bool {
	c := line[0]
	if c == ' ' || c == '\t' {
		return false
	}
	body := strings.TrimRight(line, "\n")
	if strings.Trim(body, "0123456789") == "" {
		return false
	}
	if c == '-' || c == '*' || c == '+' {
		return len(body) > 1 && body[1] != ' ' && body[1] != '\t' && body[1] != c
	}
	digits := len(body) - len(strings.TrimLeft(body, "0123456789"))
	return digits == 0 || body[digits] != '.' && body[digits] != ')'
}

// opened returns the code fence that a line opens, or "".
func opened(body string) string {
	for _, mark := range [...]string{"```", "~~~"} {
		if strings.HasPrefix(body, mark) {
			n := len(body) - len(strings.TrimLeft(body, mark[:1]))
			return body[:n]
		}
	}
	return ""
}
