package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// history builds entries: "u1:500" is a user message of 500 bytes in run 1, "a" an answer, "r" a result, "cut:4" a cut, "n" a notice.
func history(words ...string) []session.Entry {
	var es []session.Entry
	for i, w := range words {
		name, arg, _ := strings.Cut(w, ":")
		n := 100
		fmt.Sscan(arg, &n)
		e := session.Entry{Seq: int64(i + 1), Kind: session.KindMessage, Run: chela.RunID(name[1:])}
		e.Message = &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(strings.Repeat("x", n))}}
		switch name[0] {
		case 'u':
			e.Message.Role = llm.RoleUser
		case 'r':
			e.Message.Role, e.Message.CallID = llm.RoleTool, "1"
		case 'n':
			e.Kind, e.Message = session.KindNotice, nil
		case 'c':
			e.Kind, e.Message, e.First = session.KindCut, nil, int64(n)
		}
		es = append(es, e)
	}
	return es
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		entries []session.Entry
		first   int64
		turns   int
		ok      bool
	}{
		{"nothing", nil, 0, 0, false},
		{"one turn", history("u1", "a1"), 0, 0, false},
		{"two turns", history("u1", "a1", "u2"), 3, 1, true},
		{"half of equal turns", history("u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"), 5, 2, true},
		{"a large first turn", history("u1", "a1:9000", "u2", "a2", "u3", "a3"), 3, 1, true},
		{"a large last turn stays", history("u1", "a1", "u2", "a2", "u3", "a3:9000"), 5, 2, true},
		{"a message that steers begins no turn", history("u1", "a1", "u1", "a1", "u2", "a2"), 5, 1, true},
		{"without runs, what follows an answer begins one", history("u", "u", "a", "u", "a", "u", "a"), 6, 2, true},
		{"two messages of one run are one turn", history("u1", "u1", "a1", "u2", "u2"), 4, 1, true},
		{"entries that are cut already do not count", history("u1", "a1:9000", "u2", "a2", "cut:3", "n", "u3", "a3"), 7, 1, true},
		{"a cut, and one turn after it", history("u1", "a1", "u2", "a2", "cut:3"), 0, 0, false},
		{"an opening without a user message", history("a0:9000", "u1", "a1", "u2", "a2"), 4, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, turns, ok := compact.Cut(c.entries)
			if first != c.first || turns != c.turns || ok != c.ok {
				t.Errorf("got %d, %d, %v; want %d, %d, %v", first, turns, ok, c.first, c.turns, c.ok)
			}
		})
	}
	long := strings.Repeat("x", 5000)
	for name, part := range map[string]llm.Part{
		"a signature":       {Kind: llm.PartThinking, Signature: long},
		"redacted thinking": {Kind: llm.PartThinking, Redacted: long},
		"a picture":         {Kind: llm.PartImage, Data: []byte(long)},
		"a call":            {Kind: llm.PartCall, Call: &llm.ToolCall{Args: []byte(long)}},
	} {
		t.Run("the size includes "+name, func(t *testing.T) {
			es := history("u1", "a1", "u2", "a2", "u3", "a3")
			es[1].Message.Parts = append(es[1].Message.Parts, part)
			if first, turns, ok := compact.Cut(es); first != 3 || turns != 1 || !ok {
				t.Errorf("got %d, %d, %v; want 3, 1, true", first, turns, ok)
			}
		})
	}
	t.Run("repeated cuts end with the last turn", func(t *testing.T) {
		var words []string
		for i := range 100 {
			words = append(words, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
		}
		es := history(words...)
		cuts := 0
		for {
			first, _, ok := compact.Cut(es)
			if !ok {
				break
			}
			cuts++
			es = append(es, session.Entry{Seq: int64(len(es) + 1), Kind: session.KindCut, First: first})
			if ms := session.Compile(es); len(ms) == 0 || ms[0].Role != llm.RoleUser {
				t.Fatalf("cut %d leaves %d messages", cuts, len(ms))
			}
		}
		if got := session.Compile(es); len(got) != 2 || cuts > 8 {
			t.Errorf("%d messages after %d cuts", len(got), cuts)
		}
	})
}
