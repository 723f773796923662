package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// TestAside sets the messages of a run aside and brings them back, while another run uses
// the id of its call.
func TestAside(t *testing.T) {
	t.Parallel()
	var entries []session.Entry
	add := func(list ...*session.Entry) {
		for _, e := range list {
			e.Seq = int64(len(entries) + 1)
			if e.ID == "" {
				e.ID = fmt.Sprint("e", e.Seq)
			}
			entries = append(entries, *e)
		}
	}
	say := func(run string, ms ...*llm.Message) {
		for _, m := range ms {
			add(&session.Entry{Kind: session.KindMessage, Run: chela.RunID(run), Message: m})
		}
	}
	call := func() *llm.Message {
		return &llm.Message{Role: llm.RoleAssistant,
			Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c", Name: "act", Args: []byte("{}")}}}}
	}
	result := func(text string) *llm.Message {
		return &llm.Message{Role: llm.RoleTool, CallID: "c", ToolName: "act", Parts: []llm.Part{llm.Text(text)}}
	}
	check := func(when, want string) {
		t.Helper()
		var got []string
		for _, m := range session.Compile(entries) {
			text := m.PlainText()
			for _, c := range m.Calls() {
				text += "<" + c.ID + ">"
			}
			got = append(got, strings.Trim(m.CallID+" "+text, " "))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: %s\nwant %s", when, got, want)
		}
	}
	aside := func(run string) { add(session.SetAside(entries, chela.RunID(run), time.Now())...) }
	back := func(run string) { add(session.BringBack(entries, chela.RunID(run), time.Now())...) }

	say("a", llm.User("first"), call())
	check("at first", "first, <c>, c interrupted: the outcome is unknown")
	aside("a")
	aside("a")
	say("b", llm.User("second"), call(), result("of b"))
	check("aside", "second, <c>, c of b")
	back("a")
	back("a")
	say("a", result("of a"), llm.User("more"))
	check("back", "second, <c>, c of b, first, <c-2>, c-2 of a, more")
	aside("a")
	say("d", llm.User("third"))
	check("aside again", "second, <c>, c of b, third")
	back("a")
	check("back again", "second, <c>, c of b, third, first, <c-3>, c-3 of a, more")
}
