package openai

import "strings"

// tags splits a text that may begin with thinking between tags, as models write
// it whose server does not tell the two apart. How the text is cut makes no
// difference.
type tags struct {
	state int
	end   string // the tag that ends the thinking
	held  string // the beginning of what may be a tag
}

// The states.
const (
	tagsBefore = iota // nothing but white space so far
	tagsOpened        // behind the tag, and line ends
	tagsInside
	tagsBehind // white space behind the thinking
	tagsOver   // the rest is text
)

// openTags are the tags that begin thinking.
var openTags = [...]string{"<think>", "<thinking>", "<thought>"}

// take returns what of the text is thinking and what is not.
func (t *tags) take(s string) (thought, text string) {
	s = t.held + s
	t.held = ""
	if t.state == tagsBefore {
		rest := strings.TrimLeft(s, " \t\r\n")
		tag, whole := begins(rest)
		switch {
		case whole:
			t.state, t.end, s = tagsOpened, "</"+tag[1:], rest[len(tag):]
		case tag != "" || rest == "":
			t.held = s
			return "", ""
		default:
			t.state = tagsOver
		}
	}
	if t.state == tagsOpened {
		if s = strings.TrimLeft(s, "\r\n"); s != "" {
			t.state = tagsInside
		}
	}
	if t.state == tagsInside {
		before, behind, ended := strings.Cut(s, t.end)
		if !ended {
			n := overlap(s, t.end)
			t.held = s[len(s)-n:]
			return s[:len(s)-n], ""
		}
		thought, s, t.state = before, behind, tagsBehind
	}
	if t.state == tagsBehind {
		if s = strings.TrimLeft(s, "\r\n"); s != "" {
			t.state = tagsOver
		}
	}
	return thought, s
}

// flush returns what is held: the text goes on with something else, or ends.
func (t *tags) flush() (thought, text string) {
	held := t.held
	t.held = ""
	switch t.state {
	case tagsInside:
		return held, ""
	case tagsBefore:
		t.state = tagsOver
	}
	return "", held
}

// begins returns the tag that s begins with, or that s may become the beginning
// of; whole says which.
func begins(s string) (tag string, whole bool) {
	for _, tag := range openTags {
		if strings.HasPrefix(s, tag) {
			return tag, true
		}
		if s != "" && strings.HasPrefix(tag, s) {
			return tag, false
		}
	}
	return "", false
}

// overlap returns how many bytes at the end of s may be the beginning of tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
