package session

import (
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// maxTitle is the maximum length of a title in characters.
const maxTitle = 60

// TitleOf returns the title of a session that begins with a message: the first words of
// its first line. Credentials that can be recognized are hidden, because titles stand in lists.
func TitleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(secret.Mask(line))
	var b strings.Builder
	n := 0
	for _, w := range words {
		size := len([]rune(w))
		if n > 0 && n+1+size > maxTitle {
			return b.String() + "…"
		}
		if n > 0 {
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += size
	}
	return humanize.Truncate(b.String(), maxTitle)
}

// envelope is the sender, the time or both, which OpenClaw writes before a message.
var envelope = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\[[^\]\n]*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}[^\]\n]*\]\s*`)
})

// typed returns what a person wrote in a message of a transcript of OpenClaw: the message
// without the context that OpenClaw put before it. It is empty for the message with which
// OpenClaw begins a transcript after a reset.
func typed(text string) string {
	text = strings.TrimSpace(text)
	for {
		head, rest, _ := strings.Cut(text, "\n")
		head = strings.TrimSpace(head)
		switch {
		case strings.HasSuffix(head, "⟦openclaw:ctx⟧"), strings.HasSuffix(head, "(untrusted metadata):"),
			strings.HasSuffix(head, "(untrusted, for context):"):
			text = afterBlock(rest)
		case strings.HasPrefix(head, "System: ["): // an event
			text = strings.TrimSpace(rest)
		case strings.HasPrefix(head, "A new session was started via /new or /reset"):
			return ""
		default:
			return envelope().ReplaceAllString(text, "")
		}
	}
}

// afterBlock returns the text behind a block of context: a fenced one, or the lines before
// the first empty line.
func afterBlock(text string) string {
	end := "\n\n"
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "```") {
		text, end = t[len("```"):], "\n```"
	}
	_, rest, _ := strings.Cut(text, end)
	return strings.TrimSpace(rest)
}
