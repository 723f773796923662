package deliver

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// calls publishes that a tool starts, and then that the model is asked again.
func (b *bench) calls(name, label string, private bool) {
	b.event(chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseStart, Tool: &chela.ToolEvent{Name: name, Label: label,
		Private: private}})
	b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseModel})
}

// writes publishes a text letter by letter.
func (b *bench) writes(text string) {
	for _, r := range text {
		b.delta(string(r))
		time.Sleep(20 * time.Millisecond)
	}
}

// asked stores the message that the run answers.
func (b *bench) asked(in chela.Inbound) {
	in.ID, in.Address = "q7", at("1")
	b.update(func(tx store.Tx) error {
		_, err := tx.Queue().Put(queue.Item{
			ID:      "r1",
			Key:     "k",
			Session: "agent:main:main",
			Kind:    queue.Message,
			Origin:  chela.Origin{Kind: chela.OriginPerson, ID: "ann"},
			Inbound: in,
			State:   queue.Taken,
			Run:     "r1",
		})
		return err
	})
}

func sentence(n int) string { return strings.TrimSpace(strings.Repeat("words ", n/6)) + "." }

// TestUsualStyle reads what a chat shows unless it is configured.
func TestUsualStyle(t *testing.T) {
	for kind, want := range map[chela.PeerKind]Stream{
		chela.Direct: StreamPartial,
		chela.Group:  StreamOff,
		chela.Room:   StreamOff,
	} {
		on(t, "STREAM-01 an answer is shown while it grows to one person only: "+string(kind), func(t *testing.T, b *bench) {
			b.style = Style{}
			b.start()
			if s := b.w.style("main",
				chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: kind, ID: "1"}}); s.Stream != want {
				t.Errorf("%s, want %s", s.Stream, want)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	on(t, "STREAM-02 paragraphs while the model writes, none shorter than the least length except the last",
		func(t *testing.T, b *bench) {
			b.style = Style{Stream: StreamBlock, BlockMin: 30, BlockMax: 60}
			b.start()
			r := b.live(chela.PhaseStart)
			text := sentence(40) + "\n\n" + "Short.\n\n" + sentence(24) + "\n\n" + sentence(90) + "\n\nEnd."
			b.writes(text)
			time.Sleep(3 * time.Second)
			if n := len(b.fake.Calls("send")); n < 2 {
				t.Errorf("%d messages before the answer was complete", n)
			}
			r.Text = text
			b.finish(r)
			time.Sleep(time.Minute)
			var got []string
			for _, m := range b.fake.Messages(at("1")) {
				got = append(got, m.Text)
			}
			for _, p := range got[:len(got)-1] {
				if len(p) < 30-len("\n\n") || len(p) > 60 {
					t.Errorf("a message of %d characters: %q", len(p), p)
				}
			}
			if diff := cmp.Diff(strings.Fields(text), strings.Fields(strings.Join(got, " "))); diff != "" {
				t.Errorf("STREAM-04 the messages together (-answer +got):\n%s", diff)
			}
		})
	on(t, "STREAM-04 nothing is repeated at the end", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 50, Prefix: "[Ann] "}
		b.start()
		r := b.live(chela.PhaseStart)
		r.Text = "The first paragraph.\n\nThe second one."
		b.delta(r.Text)
		time.Sleep(5 * time.Second)
		b.shown("[Ann] The first paragraph.")
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("[Ann] The first paragraph.", "The second one.")
	})
	on(t, "what was said before a tool", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 50, Whole: true}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("I will look.\n\nIt takes a moment.")
		b.calls("read", "read notes.txt", false)
		time.Sleep(5 * time.Second)
		b.delta("Found it.")
		time.Sleep(5 * time.Second)
		b.shown("I will look.\n\nIt takes a moment.")
		r.Text = "Found it."
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("I will look.\n\nIt takes a moment.", "Found it.")
	})
	on(t, "a message that follows a longer part of another one", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 50}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("I will look at the notes.\n\nNow.")
		time.Sleep(500 * time.Millisecond)
		b.calls("read", "read notes.txt", false)
		b.delta("There is milk on the list.\n\nAnd bread on it.\n\nNothing else.")
		time.Sleep(5 * time.Second)
		r.Text = "There is milk on the list.\n\nAnd bread on it.\n\nNothing else."
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("I will look at the notes.", "Now.", "There is milk on the list.\n\nAnd bread on it.", "Nothing else.")
	})
	on(t, "a code block is not divided", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 60}
		b.start()
		r := b.live(chela.PhaseStart)
		code := "```go\n" + strings.Repeat("x := 1\n\n", 6) + "```"
		r.Text = "Here it is:\n\n" + code + "\n\nAnd more."
		b.writes(r.Text)
		b.finish(r)
		time.Sleep(time.Minute)
		if !slices.ContainsFunc(b.fake.Messages(at("1")),
			func(m channeltest.Message) bool { return strings.Contains(m.Text, code) }) {
			t.Errorf("messages %+v", b.fake.Messages(at("1")))
		}
	})
	on(t, "after a restart the answer is complete and not repeated", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 50}
		b.start()
		b.live(chela.PhaseStart)
		b.delta("The first paragraph.\n\nThe sec")
		time.Sleep(5 * time.Second)
		b.restart()
		b.start()
		r := b.live(chela.PhaseResume)
		r.Text = "The first paragraph.\n\nThe second one."
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("The first paragraph.", "The second one.")
	})
	on(t, "STREAM-03 a silent answer", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 2, BlockMax: 10}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("NO_")
		b.delta("REPLY")
		time.Sleep(3 * time.Second)
		r.Text, r.Silent = "NO_REPLY", true
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown()
	})
}

func TestPauses(t *testing.T) {
	on(t, "STREAM-05 natural pauses between the messages of an answer", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamOff, PauseMin: 800 * time.Millisecond, PauseMax: 2500 * time.Millisecond}
		b.start()
		r := b.live(chela.PhaseStart)
		r.Text = strings.Repeat("word ", 100) // five messages
		b.finish(r)
		time.Sleep(time.Minute)
		calls := b.fake.Calls("send")
		if len(calls) < 5 {
			t.Fatalf("%d messages", len(calls))
		}
		for i, c := range calls[1:] {
			if d := c.Time.Sub(calls[i].Time); d < 800*time.Millisecond || d > 2500*time.Millisecond {
				t.Errorf("a pause of %v", d)
			}
		}
	})
}

func TestProgress(t *testing.T) {
	on(t, "STREAM-06 an answer without tools has no message about progress", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamProgress}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("Half of")
		time.Sleep(10 * time.Second)
		b.shown()
		r.Text = "Half of it."
		b.finish(r)
		time.Sleep(time.Second)
		b.shown("Half of it.")
	})
	on(t, "what the tools do, which becomes the answer", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamProgress}
		b.start()
		r := b.live(chela.PhaseStart)
		b.calls("read", "read notes.txt", false)
		time.Sleep(time.Second)
		b.shown()
		time.Sleep(time.Second)
		b.shown("🔧 read notes.txt")
		b.calls("exec", "exec: curl -H token", true)
		time.Sleep(5 * time.Second)
		b.shown("🔧 read notes.txt\n🔧 exec")
		r.Text = "Done."
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("Done.")
	})
}

func TestTypingMode(t *testing.T) {
	for mode, want := range map[Typing][3]int{ // after the start, a thought, a word
		TypingNever: {0, 0, 0}, TypingInstant: {1, 1, 1}, TypingThinking: {0, 1, 1}, TypingMessage: {0, 0, 1},
	} {
		on(t, string(mode), func(t *testing.T, b *bench) {
			b.style = Style{Stream: StreamOff, Typing: mode}
			b.start()
			b.live(chela.PhaseStart)
			time.Sleep(time.Second)
			var got [3]int
			got[0] = len(b.fake.Calls("typing"))
			b.event(chela.Event{Stream: chela.StreamThinking, Delta: "hm"})
			time.Sleep(time.Second)
			got[1] = len(b.fake.Calls("typing"))
			b.delta("No")
			b.delta(", it is not.")
			time.Sleep(time.Second)
			if got[2] = len(b.fake.Calls("typing")); got != want {
				t.Errorf("typing was shown %v times, want %v", got, want)
			}
		})
	}
}

func TestAcknowledge(t *testing.T) {
	on(t, "an emoji, until the answer", func(t *testing.T, b *bench) {
		b.style = Style{Reaction: "👀", Acknowledge: AcknowledgeAll, Withdraw: true}
		b.asked(chela.Inbound{})
		b.start()
		r := b.live(chela.PhaseStart)
		time.Sleep(time.Second)
		r.Text = "Yes."
		b.finish(r)
		time.Sleep(time.Second)
		var got []string
		for _, c := range b.fake.Calls("react") {
			got = append(got, c.Text)
		}
		if !slices.Equal(got, []string{"👀", ""}) {
			t.Errorf("reactions %q", got)
		}
	})
	on(t, "not in a direct chat by default", func(t *testing.T, b *bench) {
		b.style = Style{Reaction: "👀", Acknowledge: AcknowledgeMentions}
		b.asked(chela.Inbound{Mentioned: true})
		b.start()
		b.live(chela.PhaseStart)
		time.Sleep(time.Second)
		if n := len(b.fake.Calls("react")); n != 0 {
			t.Errorf("%d reactions", n)
		}
	})
}

func TestReplies(t *testing.T) {
	long := strings.Repeat("word ", 50) // three messages
	for name, c := range map[string]struct {
		mode Reply
		text string
		want []string
	}{
		"off":                             {ReplyOff, long, []string{"", "", ""}},
		"CH-11 first":                     {ReplyFirst, long, []string{"q7", "", ""}},
		"all":                             {ReplyAll, long, []string{"q7", "q7", "q7"}},
		"the model asks for it":           {ReplyOff, "[[reply_to_current]] Yes.", []string{"q7"}},
		"the model names another message": {ReplyOff, "Yes. [[ reply_to: m3 ]]", []string{"m3"}},
	} {
		on(t, name, func(t *testing.T, b *bench) {
			b.style = Style{Stream: StreamOff, Reply: c.mode}
			b.asked(chela.Inbound{})
			b.start()
			r := b.live(chela.PhaseStart)
			r.Text = c.text
			b.finish(r)
			time.Sleep(time.Minute)
			var got []string
			for _, m := range b.fake.Messages(at("1")) {
				if got = append(got, m.ReplyTo); strings.Contains(m.Text, "[[") {
					t.Errorf("a person sees %q", m.Text)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("replies to %q, want %q", got, c.want)
			}
		})
	}
}

func TestDirectives(t *testing.T) {
	for _, c := range []struct{ text, clean, reply, soFar string }{
		{"plain", "plain", "", "plain"},
		{"[[reply_to_current]]\nYes", "Yes", current, "Yes"},
		{"a [[reply_to:12]] b", "ab", "12", "ab"},
		{"[[audio_as_voice]] hi", "hi", "", "hi"},
		{"see [[Wiki]]", "see [[Wiki]]", "", "see [[Wiki]]"},
		{"text [[rep", "text [[rep", "", "text "},
		{"a[i[[0", "a[i[[0", "", "a[i"},
	} {
		clean, reply := directives(c.text)
		if soFar := shownSoFar(c.text); clean != c.clean || reply != c.reply || soFar != c.soFar {
			t.Errorf("%q: %q, %q, %q", c.text, clean, reply, soFar)
		}
	}
}

func TestRunStates(t *testing.T) {
	on(t, "parts of an answer stay when the run is stopped", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamBlock, BlockMin: 10, BlockMax: 50}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("The first paragraph.\n\nThe sec")
		time.Sleep(5 * time.Second)
		r.State, r.Text = run.Aborted, "The first paragraph.\n\nThe sec"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("The first paragraph.")
	})
}
