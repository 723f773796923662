package compact_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

//go:embed testdata/exam.txt
var examText string

// past is a history of the exam corpus.
type past struct {
	name     string
	entries  []session.Entry
	keep     []string
	summary  string
	restored int // number of facts that are put back; -1: any
	open     bool
}

// corpus reads the histories.
func corpus(t testing.TB) (out []past) {
	t.Helper()
	for _, part := range strings.Split(examText, "\n=== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		p := past{name: name, summary: "The user and the assistant talked about several things.", restored: -1}
		add := func(m *llm.Message) {
			p.entries = append(p.entries, session.Entry{Seq: int64(len(p.entries) + 1), Kind: session.KindMessage, Message: m})
			p.open = m.Role == llm.RoleUser
		}
		for line := range strings.Lines(body) {
			kind, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch kind {
			case "user":
				add(llm.User(text))
			case "assistant":
				add(&llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(text)}})
			case "call":
				tool, args, _ := strings.Cut(text, " ")
				add(&llm.Message{Role: llm.RoleAssistant,
					Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1", Name: tool, Args: []byte(args)}}}})
			case "result":
				add(&llm.Message{Role: llm.RoleTool, CallID: "1", ToolName: "t", Parts: []llm.Part{llm.Text(text)}})
			case "keep":
				p.keep = append(p.keep, text)
			case "summary":
				p.summary = text
			case "restored":
				p.restored, _ = strconv.Atoi(text)
			case "":
			default:
				t.Fatalf("%s: line %q", name, line)
			}
		}
		out = append(out, p)
	}
	return out
}

func TestExamCorpus(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	if len(all) < 30 {
		t.Fatalf("%d histories", len(all))
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			ex := compact.Take(compact.Facts(p.entries, "", p.open, true), p.summary, 4000)
			text := compact.Assemble(p.summary, ex)
			for _, want := range p.keep {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in:\n%s", want, text)
				}
			}
			if p.restored >= 0 && len(ex.Restored) != p.restored {
				t.Errorf("put back %q, want %d", ex.Restored, p.restored)
			}
		})
	}
}
