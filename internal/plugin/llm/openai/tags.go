package openai

import "strings"

// tags separates thinking in tags at the beginning of a text from the rest, for
// servers that do not separate them. The result does not depend on how the text
// is split.
type tags struct {
	state   int
	end     string // the closing tag
	pending string // possibly the beginning of a tag: the next text decides
}

// States.
const (
	tagsBefore = iota // only white space so far
	tagsOpened        // after the opening tag and newlines
	tagsInside
	tagsBehind // white space after the thinking
	tagsOver   // the rest is text
)

// openTags are the tags that begin thinking.
var openTags = [...]string{"<think>", "<thinking>", "<thought>"}

// take returns the thinking and the text in s.
func (t *tags) take(s string) (thought, text string) {
	s = t.pending + s
	t.pending = ""
	if t.state == tagsBefore {
		rest := strings.TrimLeft(s, " \t\r\n")
		tag, whole := matchTag(rest)
		switch {
		case whole:
			t.state, t.end, s = tagsOpened, "</"+tag[1:], rest[len(tag):]
		case tag != "" || rest == "":
			t.pending = s
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
			t.pending = s[len(s)-n:]
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

// flush returns the pending text, at the end of the text.
func (t *tags) flush() (thought, text string) {
	held := t.pending
	t.pending = ""
	switch t.state {
	case tagsInside:
		return held, ""
	case tagsBefore:
		t.state = tagsOver
	}
	return "", held
}

// matchTag returns the tag that s begins with, or that s is a prefix of; whole
// reports which.
func matchTag(s string) (tag string, whole bool) {
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

// overlap returns the length of the longest suffix of s that is a prefix of
// tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
