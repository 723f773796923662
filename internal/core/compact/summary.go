package compact

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Texts for a model.
var (
	//go:embed summarize.md
	summarizeText string
	//go:embed flush.md
	flushText string
)

// RestoredHeading precedes the facts that the exam puts back.
const RestoredHeading = "## Facts kept literally"

// Assemble returns a summary with the facts that the exam puts back.
func Assemble(summary string, ex Exam) string {
	summary = strings.TrimSpace(summary)
	if len(ex.Restored) == 0 {
		return summary
	}
	var b strings.Builder
	b.WriteString(summary + "\n\n" + RestoredHeading + "\n")
	for _, line := range ex.Restored {
		b.WriteString("\n- " + line)
	}
	return b.String()
}

// Body returns a summary without the facts that an exam put back, and these facts.
func Body(summary string) (body string, restored []string) {
	body, list, ok := strings.Cut(summary, "\n\n"+RestoredHeading+"\n")
	if !ok {
		return summary, nil
	}
	for line := range strings.Lines(list) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "- "); line != "" {
			restored = append(restored, line)
		}
	}
	return body, restored
}

// SummaryRequest is what a model is asked to summarize.
type SummaryRequest struct {
	Texts    []string // of Render
	Previous string   // the summary so far; "": there is none
	Hint     string   // of the person; "": none
	Turn     bool     // the texts are the beginning of a turn that goes on
	Config   Config
}

// System returns the system prompt of a summary.
func (r SummaryRequest) System() string { return strings.TrimSpace(summarizeText) }

// Tags around the data of a summary.
const (
	conversationBegin = "<conversation>\n"
	conversationEnd   = "\n</conversation>"
	previousBegin     = "<previous-summary>\n"
	previousEnd       = "\n</previous-summary>"
)

// Message returns the message that asks for a summary.
func (r SummaryRequest) Message() *llm.Message {
	var b strings.Builder
	if r.Previous != "" {
		b.WriteString(previousBegin + neutral(r.Previous) + previousEnd + "\n\n")
	}
	b.WriteString(conversationBegin + strings.Join(r.Texts, "\n\n") + conversationEnd + "\n\n")
	switch {
	case r.Turn:
		b.WriteString("Summarize this beginning of a turn that is still in progress: what the user asked for, what was done, what was found, and what is left.")
	case r.Previous != "":
		b.WriteString("Write one summary that replaces the previous summary and covers the conversation after it. Keep what still holds of the previous summary, and correct what has changed.")
	default:
		b.WriteString("Summarize the conversation.")
	}
	switch r.Config.Identifiers {
	case "off":
	case "custom":
		if rules := strings.TrimSpace(r.Config.IdentifierRules); rules != "" {
			b.WriteString("\n\n" + rules)
		}
	default:
		b.WriteString("\n\nCopy ids, hashes, links, paths, names, numbers with their units, and dates literally. Do not shorten or round them.")
	}
	if hint := strings.TrimSpace(r.Hint); hint != "" {
		b.WriteString("\n\nThe user asks you to pay attention to this in the summary: " +
			humanize.Truncate(oneLine(hint), 2000))
	}
	return llm.User(b.String())
}

// IsRequest reports whether a request to a model asks for a summary, and returns the
// conversation and the previous summary.
func IsRequest(r *llm.Request) (conversation, previous string, ok bool) {
	if len(r.System) == 0 || len(r.Messages) != 1 ||
		!strings.HasPrefix(r.System[0].Text, strings.TrimSpace(summarizeText)) {
		return "", "", false
	}
	text := r.Messages[0].PlainText()
	if rest, found := strings.CutPrefix(text, previousBegin); found {
		previous, text, _ = strings.Cut(rest, previousEnd)
	}
	_, text, _ = strings.Cut(text, conversationBegin)
	conversation, _, _ = strings.Cut(text, conversationEnd)
	return conversation, previous, true
}

// Check returns what is wrong with a summary, or nil. source is the size of what was
// summarized, in tokens.
func Check(m *llm.Message, facts []Fact, source int) error {
	text := strings.TrimSpace(m.PlainText())
	switch {
	case m.Stop == llm.StopRefusal || refuses(text):
		return errors.New("the model refused")
	case len([]rune(text)) < 12:
		return errors.New("the summary is empty")
	case m.Stop == llm.StopLength:
		return errors.New("the summary was cut off")
	case estimate.Text(text) >= max(source, 64):
		return fmt.Errorf("the summary has about %d tokens and is not shorter than the conversation with %d",
			estimate.Text(text), source)
	}
	literal, found := 0, 0
	p := newPaper(text)
	for _, f := range facts {
		literal++
		if p.has(f) {
			found++
		}
	}
	if literal >= 3 && found == 0 {
		return errors.New("the summary contains none of the facts of the conversation")
	}
	return nil
}

// refuses reports whether a text is a refusal instead of a summary.
func refuses(s string) bool {
	if len(s) > 600 {
		return false
	}
	low := strings.ToLower(s)
	for _, w := range [...]string{
		"i can't", "i cannot", "i can’t", "i'm sorry", "i’m sorry", "i am sorry", "sorry, ", "as an ai", "i'm unable",
		"i am unable", "i won't",
		"对不起", "抱歉", "我无法", "我不能", "很遗憾",
	} {
		if strings.HasPrefix(low, w) {
			return true
		}
	}
	return false
}

// Note returns the text that replaces messages if no model can summarize them.
func Note(messages int) string {
	return fmt.Sprintf("%s before this point could not be summarized. They are not shown here, but are kept in the history. Ask the user if something is missing.", humanize.Many(messages, "message"))
}

// FlushPrompt asks the model to save notes before a compaction.
func (c Config) FlushPrompt() string {
	if p := strings.TrimSpace(c.Flush.Prompt); p != "" {
		return p
	}
	return strings.TrimSpace(flushText)
}

// Extract summarizes a rendered conversation without a model: the requests of the user
// and the answers, shortened, at most about most bytes, the newest last.
func Extract(conversation, previous string, most int) string {
	var asked, told, done []string
	for _, block := range strings.Split(conversation, "\n\n[") {
		if !strings.HasPrefix(block, "[") {
			block = "[" + block
		}
		label, text, _ := strings.Cut(block, "] ")
		switch {
		case strings.HasPrefix(label, labelUser):
			asked = append(asked, head(oneLine(text), 240))
		case strings.HasPrefix(label, labelCall):
			done = append(done, strings.TrimPrefix(label, labelCall)+" "+head(oneLine(text), 120))
		case strings.HasPrefix(label, labelAssistant):
			said, calls, _ := strings.Cut(text, "\n"+labelCall)
			told = append(told, head(oneLine(said), 240))
			if calls != "" {
				done = append(done, head(oneLine(calls), 140))
			}
		}
	}
	var b strings.Builder
	if previous, _ := Body(previous); previous != "" {
		b.WriteString("## Before\n\n" + Shorten(strings.TrimSpace(previous), most/3) + "\n\n")
	}
	list := func(title string, lines []string, room int) {
		from := len(lines)
		for n := 0; from > 0 && n+len(lines[from-1])+3 <= room; from-- {
			n += len(lines[from-1]) + 3
		}
		if from == len(lines) {
			return
		}
		b.WriteString("## " + title + "\n\n")
		if from > 0 {
			fmt.Fprintf(&b, "(%d earlier ones are left out.)\n", from)
		}
		for _, l := range lines[from:] {
			b.WriteString("- " + l + "\n")
		}
		b.WriteString("\n")
	}
	list("Requests", asked, most/4)
	list("Answers", told, most/4)
	list("Tools used", done, most/8)
	return strings.TrimSpace(b.String())
}
