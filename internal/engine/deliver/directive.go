package deliver

import (
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/speech"
)

// directive matches what a model writes into an answer to say how it is sent, such as
// [[reply_to_current]] and [[reply_to:ID]].
var directive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`[ \t]*\[\[\s*(?:(reply_to_current)|reply_to\s*:\s*([^\[\]\s]{1,256})|audio_as_voice)\s*\]\][ \t]?`)
})

// current stands for the message that is answered.
const current = "current"

// directives removes the directives from a text, those about speech apart. It returns the id of the message to which
// the answer is a reply; current: the one that is answered; "": the text names none.
func directives(text string) (clean, reply string) {
	if !strings.Contains(text, "[[") {
		return text, ""
	}
	found := directive().FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return text, ""
	}
	for _, m := range found {
		if m[1] != "" {
			reply = current
		} else if m[2] != "" {
			reply = m[2]
		}
	}
	return strings.TrimLeft(directive().ReplaceAllString(text, ""), "\n"), reply
}

// shown returns what people see of an answer.
func shown(text string) string {
	text, _, _ = speech.Tags(text)
	text, _ = directives(text)
	return text
}

// shownSoFar returns what people see of an answer that is being written: without the
// directives, and without the beginning of one.
func shownSoFar(text string) string {
	text = shown(text)
	if i := strings.Index(text, "[[tts:text"); i >= 0 { // it has no end yet
		return text[:i]
	}
	if i := strings.LastIndex(text, "[["); i >= 0 && !strings.Contains(text[i:], "]]") && len(text)-i < 300 {
		return text[:i]
	}
	return text
}
