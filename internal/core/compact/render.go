package compact

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// Maximum sizes in the text of a conversation, in bytes.
const (
	maxArgs   = 400
	maxResult = 1500
)

// Labels of the parts of a rendered conversation. [Extract] reads them.
const (
	labelUser      = "[User"
	labelAssistant = "[Assistant"
	labelCall      = "[Call of "
	labelResult    = "[Result of "
	labelError     = "[Error of "
	labelOmitted   = "[Omitted: "
)

// Render returns the messages of a conversation as texts for a summary. Arguments and
// results of tools are shortened. A user message has the day when it was written.
func Render(entries []session.Entry) []string {
	out := make([]string, 0, len(entries))
	for i := range entries {
		if t := renderEntry(&entries[i]); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// RenderWithin is Render for a model with the window. Messages that are too large for
// it are only listed.
func RenderWithin(entries []session.Entry, window int) []string {
	out := make([]string, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		t := renderEntry(e)
		if Oversized(estimate.Text(t), window) {
			t = omitted(e)
		}
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

func renderEntry(e *session.Entry) string {
	m := e.Message
	var b strings.Builder
	text := strings.TrimSpace(m.PlainText())
	switch m.Role {
	case llm.RoleUser:
		b.WriteString(labelUser)
		if !e.Time.IsZero() {
			b.WriteString(e.Time.UTC().Format(", 2006-01-02"))
		}
		b.WriteString("] ")
	case llm.RoleAssistant:
		if text != "" {
			b.WriteString(labelAssistant + "] ")
		}
	case llm.RoleTool:
		label := labelResult
		if m.IsError {
			label = labelError
		}
		b.WriteString(label + m.ToolName + "] ")
		text = Shorten(text, maxResult)
	}
	b.WriteString(neutral(text))
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Kind == llm.PartImage:
			b.WriteString(" (a picture)")
		case p.Kind == llm.PartCall && p.Call != nil:
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "%s%s] %s", labelCall, p.Call.Name, neutral(Shorten(string(p.Call.Args), maxArgs)))
		}
	}
	return strings.TrimSpace(b.String())
}

// omitted describes a message that is too large to be summarized.
func omitted(e *session.Entry) string {
	return fmt.Sprintf("%sa message of the %s with about %d tokens was too large to be summarized. It begins: %s]",
		labelOmitted, roleName(e.Message.Role), estimate.Messages(e.Message),
		neutral(oneLine(Shorten(e.Message.PlainText(), 300))))
}

func roleName(r llm.Role) string {
	switch r {
	case llm.RoleUser:
		return "user"
	case llm.RoleTool:
		return "tools"
	}
	return "assistant"
}

// neutral returns a text in which the tags around a conversation cannot be closed.
func neutral(s string) string {
	if !strings.Contains(s, "</") {
		return s
	}
	return strings.NewReplacer("</conversation", "<\\/conversation", "</summary", "<\\/summary").Replace(s)
}

// Shorten returns s with at most about most bytes: the beginning and the end.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "\n[…]\n"
	if most <= len(mark)+8 {
		return head(s, most)
	}
	most -= len(mark)
	return head(s, most*2/3) + mark + tail(s, most/3)
}

// head returns at most n bytes from the beginning of s, without a broken character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns at most n bytes from the end of s.
func tail(s string, n int) string {
	i := max(len(s)-n, 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
