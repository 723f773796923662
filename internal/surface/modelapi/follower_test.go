package modelapi

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

// TestFollower plays events of runs, and joins what a client is sent.
func TestFollower(t *testing.T) {
	model := chela.Event{Run: "r", Stream: chela.StreamLifecycle, Phase: chela.PhaseModel}
	says := func(s string) chela.Event {
		return chela.Event{Run: "r", Stream: chela.StreamAssistant, Text: s, Delta: "x"}
	}
	end := chela.Event{Run: "r", Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd}
	for _, tt := range []struct {
		name   string
		events []chela.Event
		final  string
		want   string
	}{
		{"one message", []chela.Event{model, says("a"), says("ab"), end}, "ab", "ab"},
		{"no deltas", []chela.Event{model, end}, "ab", "ab"},
		{"messages around calls", []chela.Event{model, says("Let me look."), model, says("Done."), end}, "Done.",
			"Let me look.\n\nDone."},
		{"calls without text", []chela.Event{model, model, says("Done."), end}, "Done.", "Done."},
		{"the answer begins anew", []chela.Event{model, says("Hel"), says(""), says("Good"), says("Good day"), end},
			"Good day", "Hel\n\nGood day"},
		{"the answer begins anew in the same words",
			[]chela.Event{model, says("Hello"), says(""), says("He"), says("Hello you"), end}, "Hello you", "Hello you"},
		{"a note at the end", []chela.Event{model, says("half"), end}, "half\n\n(incomplete)", "half\n\n(incomplete)"},
		{"less at the end", []chela.Event{model, says("text HEARTBEAT_OK"), end}, "text", "text HEARTBEAT_OK"},
		{"something else at the end", []chela.Event{model, says("secret"), end}, "(hidden)", "secret\n\n(hidden)"},
		{"silence", []chela.Event{model, says("NO_"), says("NO_REPLY"), end}, "", ""},
		{"nearly silence", []chela.Event{model, says("NO"), says("NO "), says("NO way"), end}, "NO way", "NO way"},
		{"nothing after the answer", []chela.Event{model, says("Done."), model, end}, "Done.", "Done."},
		{"another run", []chela.Event{model, {Run: "s", Stream: chela.StreamAssistant, Text: "x"}, says("a"), end}, "a", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFollower("r")
			var each, last strings.Builder
			for _, e := range tt.events {
				f.observe(e)
				text, _ := f.take()
				each.WriteString(text)
			}
			each.WriteString(f.rest(tt.final))
			if _, over := f.take(); !over {
				t.Error("the end was not seen")
			}
			g := newFollower("r")
			for _, e := range tt.events { // a slow client
				g.observe(e)
			}
			text, _ := g.take()
			last.WriteString(text + g.rest(tt.final))
			if each.String() != tt.want {
				t.Errorf("sent %q, want %q", each.String(), tt.want)
			}
			if got := last.String(); !strings.HasSuffix(got, tt.final) && !strings.HasPrefix(got, tt.final) ||
				len(got) > len(tt.want) {
				t.Errorf("a slow client was sent %q", got)
			}
		})
	}
}
