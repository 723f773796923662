package repl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

// session is the session of the conversations.
const session = "agent:main:main"

// terminal is a conversation and the person who has it.
type terminal struct {
	t    *testing.T
	chat *repl.Chat
	in   chan string
	end  chan error

	mu       sync.Mutex
	out, err bytes.Buffer
	wrote    chan struct{} // filled by each write
}

// stream is one of the outputs of a terminal.
type stream struct {
	x *terminal
	b *bytes.Buffer
}

// Write writes p.
func (s stream) Write(p []byte) (int, error) {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	select {
	case s.x.wrote <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

// open opens a conversation with the gateway. The person is there if the
// conversation is interactive.
func open(t *testing.T, g *chelatest.Gateway, o repl.Options) *terminal {
	t.Helper()
	x := &terminal{t: t, in: make(chan string), end: make(chan error, 1), wrote: make(chan struct{}, 1)}
	o.Client, o.Input = dial(t, g), x.in
	if o.Session == "" {
		o.Session = session
	}
	o.Printer.Out, o.Printer.Err = stream{x, &x.out}, stream{x, &x.err}
	x.chat = repl.New(o)
	return x
}

func dial(t *testing.T, g *chelatest.Gateway) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Dial: g.Dial, Caps: []string{wire.CapToolEvents}})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// run runs the conversation.
func (x *terminal) run() *terminal {
	go func() { x.end <- x.chat.Run(x.t.Context()) }()
	return x
}

// sees waits until text was written.
func (x *terminal) sees(text string) {
	x.t.Helper()
	x.counts(text, 1)
}

// counts waits until text was written n times.
func (x *terminal) counts(text string, n int) {
	x.t.Helper()
	for limit := time.After(waittest.Limit); ; {
		out, err := x.written()
		if strings.Count(out+err, text) >= n {
			return
		}
		select {
		case <-x.wrote:
		case <-limit:
			x.t.Fatalf("%q was not written %d times\n%s\n%s", text, n, out, err)
		}
	}
}

func (x *terminal) written() (out, err string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String(), x.err.String()
}

// ends waits until the conversation has ended with the error.
func (x *terminal) ends(want error) {
	x.t.Helper()
	if got := waittest.For(x.t, "the end of the conversation", x.end); !errors.Is(got, want) {
		out, err := x.written()
		x.t.Errorf("the conversation ended with %v, want %v\n%s\n%s", got, want, out, err)
	}
}

// touch is a call that needs approval.
func touch(name string) llmtest.Step {
	return llmtest.Call("c-"+name, "exec", `{"command": "touch `+name+`"}`)
}

// workspace starts a gateway whose model follows the script.
func workspace(t *testing.T, steps ...llmtest.Step) (*chelatest.Gateway, *llmtest.Script) {
	t.Helper()
	m := llmtest.NewScript(steps...)
	return chelatest.Start(t, chelatest.Options{Model: m}), m
}

func made(g *chelatest.Gateway, name string) bool {
	_, err := os.Stat(filepath.Join(g.Dir, "workspace", name))
	return err == nil
}

func TestRun(t *testing.T) {
	g, m := workspace(t, llmtest.Say("first"), llmtest.Status(401, "bad key"), llmtest.Say("third"),
		llmtest.Status(401, "bad key"))
	photo := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(photo, dot(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("lines are messages, and a later answer makes up for a failure", func(t *testing.T) {
		x := open(t, g, repl.Options{}).run()
		for _, l := range []string{"/image " + photo + " what is it?", " ", "fail", "/image none.png", "again", " /quit "} {
			x.in <- l
		}
		x.ends(nil)
		out, err := x.written()
		if out != "first\nthird\n" || strings.Count(err, "✗") != 2 ||
			!strings.Contains(err, "✗ not sent: picture none.png: no such file\n") {
			t.Errorf("written:\n%s\n%s", out, err)
		}
		if n := pictures(m.Requests()[0]); n != 1 {
			t.Errorf("the model got %d pictures", n)
		}
	})
	t.Run("a failure of the last message is reported at the end", func(t *testing.T) {
		for name, end := range map[string]func(x *terminal){
			"end of input": func(x *terminal) { close(x.in) },
			"/exit":        func(x *terminal) { x.in <- "/exit" },
		} {
			x := open(t, g, repl.Options{}).run()
			x.in <- "fail"
			end(x)
			t.Log(name)
			x.ends(repl.ErrReported)
		}
	})
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		answer   string
		made     bool
		again    bool // asked again for the same action
		decision string
	}{
		{" Y ", true, true, wire.AllowOnce}, {"yes", true, true, wire.AllowOnce}, {"n", false, true, wire.Deny},
		{"No", false, true, wire.Deny},
		{"s", true, false, wire.AllowSession}, {"session", true, false, wire.AllowSession},
		{"a", true, false, wire.AllowAlways}, {"always", true, false, wire.AllowAlways},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			g, _ := workspace(t, touch("made"), llmtest.Say("finished"), llmtest.Call("c2", "exec", `{"command": "touch made"}`),
				llmtest.Say("finished again"))
			watch := g.Client()
			x := open(t, g, repl.Options{Interactive: true, Prompt: true}).run()
			x.in <- "make it"
			x.sees("? exec needs approval: ")
			x.sees("\n  touch made\n")
			x.sees("\n[y] once  [s] this session  [a] always  [n] no: ")
			x.in <- tt.answer
			x.sees("finished")
			if got := made(g, "made"); got != tt.made {
				t.Errorf("made %v, want %v", got, tt.made)
			}
			if got := decision(t, watch); got != tt.decision {
				t.Errorf("decision %s, want %s", got, tt.decision)
			}
			x.in <- "and again"
			if tt.again {
				x.counts("? exec needs approval: ", 2)
				close(x.in) // denies
			}
			x.sees("finished again")
			if _, err := x.written(); strings.Count(err, "[y]") != map[bool]int{true: 2, false: 1}[tt.again] ||
				!strings.HasPrefix(err, "› ") {
				t.Errorf("asked:\n%s", err)
			}
		})
	}
}

// decision returns the next decision.
func decision(t *testing.T, c *chelatest.Client) string {
	t.Helper()
	for {
		e := waittest.For(t, "a decision", c.Events())
		var r wire.ApprovalResolved
		if e.Name == wire.EventApprovalResolved && e.Decode(&r) == nil {
			return r.Decision
		}
	}
}

func TestOnlyOnce(t *testing.T) {
	g := chelatest.Start(t, chelatest.Options{
		Model:  llmtest.NewScript(llmtest.Call("c1", "exec", `{"command": "python3 -c 'print(1)'"}`), llmtest.Say("done")),
		Config: chelatest.Config{"tools": json.RawMessage(`{"exec": {"strictInlineEval": true}}`)},
	})
	x := open(t, g, repl.Options{Interactive: true}).run()
	x.in <- "make it"
	x.sees("\n[y] once  [n] no: ")
	for _, l := range []string{"a", "s", "session", "always", "what", "n"} {
		x.in <- l
	}
	x.sees("done")
	if _, err := x.written(); strings.Count(err, "[y] once  [n] no: ") != 6 || strings.Contains(err, "› ") {
		t.Errorf("asked:\n%s", err)
	}
}

// A line that is no answer to a question is a message.
func TestOtherLines(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch text := last.PlainText(); {
		case last.Role == llm.RoleTool:
			return llmtest.Say("finished")
		case text == "make it":
			close(begun)
			<-release
			return touch("made")
		default:
			return llmtest.Say("heard: " + text)
		}
	})
	g := chelatest.Start(t, chelatest.Options{Model: model})
	x := open(t, g, repl.Options{Interactive: true, Prompt: true}).run()
	x.in <- "make it"
	<-begun
	x.in <- "y" // before the question: it is no answer
	close(release)
	x.sees("\n[y] once  [s] this session  [a] always  [n] no: ")
	x.in <- "also check the tests"
	x.sees("not an answer, kept for later: also check the tests")
	x.counts("[n] no: ", 2)
	if made(g, "made") {
		t.Error("a line that was typed before the question answered it")
	}
	x.in <- "n"
	x.sees("finished")
	x.sees("heard: y")
	x.sees("heard: also check the tests")
	t.Run("they are shown again when they are sent", func(t *testing.T) {
		if _, err := x.written(); !strings.Contains(err, "› y\n") || !strings.Contains(err, "› also check the tests\n") {
			t.Errorf("written:\n%s", err)
		}
	})
	t.Run("the end of the input denies what is pending and ends the conversation", func(t *testing.T) {
		y := open(t, g, repl.Options{Interactive: true, Session: "agent:main:other"}).run()
		y.in <- "good bye"
		close(y.in)
		y.sees("heard: good bye")
		y.ends(nil)
	})
	t.Run("one message: the lines are left to the caller", func(t *testing.T) {
		g, _ := workspace(t, touch("made"), llmtest.Say("the answer"))
		y := open(t, g, repl.Options{Interactive: true})
		go func() {
			y.sees("[n] no: ")
			y.in <- "also check the tests"
			y.in <- "y"
		}()
		if a, err := y.chat.Once(t.Context(), repl.Question{Message: "make it"}); err != nil || a.Text != "the answer" {
			t.Errorf("answer %+v, %v", a, err)
		}
		if line, ok := y.chat.Kept(); !ok || line != "also check the tests" {
			t.Errorf("kept %q, %v", line, ok)
		}
	})
}

func TestWithoutPerson(t *testing.T) {
	g, _ := workspace(t, touch("first"), llmtest.Say("denied"), touch("second"), touch("third"), touch("fourth"),
		llmtest.Say("all done"), llmtest.Say("all done"))
	x := open(t, g, repl.Options{}).run()
	x.in <- "make it"
	x.sees("denied without asking: there is no terminal (use --yes to allow): ")
	x.sees("denied\n")
	watch := open(t, g, repl.Options{Interactive: true, Session: "agent:main:third"}).run()
	other := dial(t, g)
	if _, err := other.Send(t.Context(), "agent:main:other", "make it"); err != nil { // takes the step of the second call
		t.Fatal(err)
	}
	watch.sees("touch second")
	y := open(t, g, repl.Options{Yes: true}).run()
	y.in <- "make it"
	y.sees("allowed (--yes): ")
	y.sees("all done")
	x.in <- "/quit"
	x.ends(nil)
	close(y.in)
	y.ends(nil)
	for name, want := range map[string]bool{"first": false, "second": false, "third": true, "fourth": true} {
		if made(g, name) != want {
			t.Errorf("%s: made %v, want %v", name, !want, want)
		}
	}
	var pending []wire.Approval
	if err := other.Call(t.Context(), wire.MethodApprovalList, wire.None{}, &pending); err != nil || len(pending) != 1 {
		t.Errorf("%d actions of the other session are pending, want 1: %v", len(pending), err)
	}
	t.Run("actions that are pending are asked about at the start", func(t *testing.T) {
		z := open(t, g, repl.Options{Interactive: true, Prompt: true})
		z.chat.AskPending(t.Context())
		z.sees("touch second")
		z.run()
		z.in <- "y"
		z.sees("› ")
		watch.counts("decided elsewhere: allowed once", 3)
		z.in <- "/quit"
		z.ends(nil)
		watch.in <- "/quit"
		watch.ends(nil)
	})
	t.Run("one after the other", func(t *testing.T) {
		for _, id := range []string{"one", "two"} {
			var asked wire.ApprovalAsked
			if err := other.Call(t.Context(), wire.MethodApprovalAsk,
				wire.ApprovalAsk{ID: id, Command: "touch " + id, TwoPhase: true}, &asked); err != nil {
				t.Fatal(err)
			}
		}
		z := open(t, g, repl.Options{Interactive: true, Prompt: true})
		z.chat.AskPending(t.Context())
		z.sees("touch one\n")
		if _, err := z.written(); strings.Contains(err, "touch two") {
			t.Errorf("both at once:\n%s", err)
		}
		z.run()
		z.in <- "n"
		z.sees("touch two\n")
		z.in <- "y"
		z.sees("› ")
		z.in <- "/quit"
		z.ends(nil)
		for id, want := range map[string]string{"one": wire.Deny, "two": wire.AllowOnce} {
			var got wire.ApprovalDecided
			if err := other.Call(t.Context(), wire.MethodApprovalWait, wire.ApprovalID{ID: id}, &got); err != nil ||
				got.Decision == nil || *got.Decision != want {
				t.Errorf("%s: %+v, %v; want %s", id, got, err, want)
			}
		}
	})
	t.Run("without a person they are not", func(t *testing.T) {
		z := open(t, g, repl.Options{})
		z.chat.AskPending(t.Context())
		if out, err := z.written(); out+err != "" {
			t.Errorf("written: %s%s", out, err)
		}
	})
}

func TestInterrupt(t *testing.T) {
	hang := llmtest.Say("begin of a long answer\n\nand more")
	hang.Fault.Hang = llmtest.HangMiddle
	g, _ := workspace(t, hang, hang)
	x := open(t, g, repl.Options{}).run()
	x.in <- "go on"
	x.sees("begin of")
	x.chat.Interrupt()
	x.sees("stopped\n")
	x.chat.Interrupt() // nothing is in progress
	x.ends(repl.ErrInterrupted)
	y := open(t, g, repl.Options{}).run()
	y.in <- "go on"
	y.sees("begin of")
	y.chat.Interrupt()
	y.chat.Interrupt() // at once
	y.ends(repl.ErrInterrupted)
}

func TestOnce(t *testing.T) {
	hang := llmtest.Say("begin")
	hang.Fault.Hang = llmtest.HangMiddle
	steps := []llmtest.Step{touch("made"), llmtest.Say("the answer"), hang}
	asked := make(chan *llm.Request, len(steps))
	thinks := `{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 1000000, "input": ["text", "image"], "reasoning": true}]}}}`
	g := chelatest.Start(t, chelatest.Options{Config: chelatest.Config{"models": json.RawMessage(thinks)},
		Model: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			asked <- r
			return steps[n]
		})})
	x := open(t, g, repl.Options{Yes: true})
	picture := wire.Attachment{Type: "image", FileName: "a.png", MIME: "image/png", Content: dot(t)}
	a, err := x.chat.Once(t.Context(), repl.Question{Message: "hi", Files: []wire.Attachment{picture}, Think: "high",
		Timeout: time.Hour})
	if err != nil || a.Text != "the answer" || a.Model != "mock/m" || a.Session != session ||
		a.RunID == "" || a.Usage == nil {
		t.Errorf("answer %+v, %v", a, err)
	}
	if out, err := x.written(); out != "" || !strings.Contains(err, "· exec touch made\n") ||
		strings.Contains(err, "the answer") {
		t.Errorf("written %q, %q", out, err)
	}
	if r := <-asked; pictures(r) != 1 || r.Thinking != "high" {
		t.Errorf("the model got %d pictures, thinking %s", pictures(r), r.Thinking)
	}
	<-asked

	x = open(t, g, repl.Options{})
	go func() {
		<-asked
		x.chat.Interrupt()
	}()
	if a, err = x.chat.Once(t.Context(), repl.Question{Message: "hang"}); !errors.Is(err, repl.ErrInterrupted) {
		t.Errorf("interrupt: %v", err)
	}
	stopped(t, g, a)
}

// stopped checks that the run of an answer has ended, or ends.
func stopped(t *testing.T, g *chelatest.Gateway, a repl.Answer) {
	t.Helper()
	var w wire.AgentWaited
	err := g.Client().Call(t.Context(), wire.MethodAgentWait,
		wire.AgentWait{RunID: a.RunID, TimeoutMs: waittest.Limit.Milliseconds()}, &w)
	if err != nil || w.Status == wire.StatusTimeout {
		t.Errorf("the run was not stopped: %+v, %v", w, err)
	}
}

func TestOnceTimeout(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		hang := llmtest.Say("begin")
		hang.Fault.Hang = llmtest.HangMiddle
		g := chelatest.Start(t, chelatest.Options{Dir: dir, Model: llmtest.NewScript(hang)})
		x := open(t, g, repl.Options{})
		began := time.Now()
		a, err := x.chat.Once(t.Context(), repl.Question{Message: "hang", Timeout: time.Minute})
		if err == nil || err.Error() != "no answer within 1m0s; the run was stopped" || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		stopped(t, g, a)
	})
}

func pictures(r *llm.Request) (n int) {
	for _, p := range r.Messages[0].Parts {
		if p.Kind == llm.PartImage {
			n++
		}
	}
	return n
}

// dot returns a picture file.
func dot(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPrinter(t *testing.T) {
	t.Parallel()
	tool := func(failed bool, took time.Duration) feed.Tool {
		return feed.Tool{ID: "c", Label: "read\x1b[2J a", Failed: failed, Took: took, Output: "gone\nreally"}
	}
	text := func(s string) feed.Step { return feed.Step{Kind: feed.Text, Text: s} }
	ended := func(e feed.End) feed.Step { return feed.Step{Kind: feed.RunEnded, End: e} }
	for _, tt := range []struct {
		name     string
		quiet    bool
		steps    []feed.Step
		out, err string
	}{
		{"a growing message", false, []feed.Step{text("a\x1b[2J"), text("a"), text("ab\n"), text("ab\nc"),
			ended(feed.End{State: wire.StateFinal, Text: "ab\nc"})}, "ab\nc\n", ""},
		{"a message that was restarted", false, []feed.Step{text("a"), text("b")}, "a\nb", "(answer restarted)\n"},
		{"an answer that was not streamed", false,
			[]feed.Step{ended(feed.End{State: wire.StateFinal, Text: "a", Footer: "12 to\x1b[2Jkens"})}, "a\n", "12 tokens\n"},
		{"an answer that is complete", false, []feed.Step{text("a\x1b[2Jb"), {Kind: feed.TextEnded},
			ended(feed.End{State: wire.StateFinal, Text: "a\x1b[2Jb"})}, "ab\n", ""},
		{"the same answer again", false, []feed.Step{text("a"), ended(feed.End{State: wire.StateFinal, Text: "a"}),
			ended(feed.End{State: wire.StateFinal, Text: "a"})}, "a\na\n", ""},
		{"tools", false, []feed.Step{
			text("I look"), {Kind: feed.ToolStarted, Tool: tool(false, 0)},
			{Kind: feed.ToolEnded, Tool: tool(false, 999*time.Millisecond)},
			{Kind: feed.ToolEnded, Tool: tool(false, 1040*time.Millisecond)},
			{Kind: feed.ToolEnded, Tool: tool(true, 0)}, text("So"),
		}, "I look\nSo", "· read a\n✓ read a (1s)\n✗ read a: gone really\n"},
		{"notes", false, []feed.Step{text("a\n"), {Kind: feed.Notice, Text: "no\x1b[2Jte\n"},
			{Kind: feed.Notice, Text: "another"}, ended(feed.End{State: wire.StateAborted, Text: "b"})}, "a\n",
			"note\nanother\nstopped\n"},
		{"a message that was restarted, quiet", true,
			[]feed.Step{text("a"), text("b"), ended(feed.End{State: wire.StateFinal, Text: "b"})}, "a\nb\n", ""},
		{"quiet", true, []feed.Step{
			{Kind: feed.ToolStarted, Tool: tool(false, 0)}, {Kind: feed.Notice, Text: "note"},
			ended(feed.End{State: wire.StateError, Text: "b", Error: "no\x1b[2J quota", Footer: "f"}),
		}, "", "✗ no quota\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			p := repl.Printer{Out: &out, Err: &err, Quiet: tt.quiet}
			for _, s := range tt.steps {
				p.Step(s)
			}
			if d := cmp.Diff([]string{tt.out, tt.err}, []string{out.String(), err.String()}); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var got []string
	for l := range repl.Lines(strings.NewReader("a\r\n\n b \nlast")) {
		got = append(got, l)
	}
	if want := []string{"a", "", " b ", "last"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
