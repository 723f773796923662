package tui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/tui"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

var update = flag.Bool("update", false, "update the golden files")

// terminal runs a screen without a program: it executes the commands, and checks what the
// terminal shows.
type terminal struct {
	t     *testing.T
	model tea.Model
	msgs  chan tea.Msg
	vt    *vt
	raw   bytes.Buffer // what was written
}

// screen is the part of the model that the tests use.
type screen interface {
	Left() (bool, error)
	Busy() bool
}

// open opens a screen on a session of the gateway.
func open(t *testing.T, g *chelatest.Gateway, change func(*tui.Options)) *terminal {
	t.Helper()
	o := tui.Options{Client: dial(t, g), Session: "agent:main:main"}
	if change != nil {
		change(&o)
	}
	term := &terminal{t: t, msgs: make(chan tea.Msg, 1024), vt: newVT(80, 24)}
	o.Out = io.MultiWriter(term.vt, &term.raw)
	term.model = tui.New(t.Context(), o)
	term.run(term.model.Init())
	term.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return term
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

func (x *terminal) resize(w, h int) {
	x.vt.resize(w, h)
	x.update(tea.WindowSizeMsg{Width: w, Height: h})
}

// run executes a command; its message arrives later.
func (x *terminal) run(c tea.Cmd) {
	if c == nil {
		return
	}
	go func() {
		select {
		case x.msgs <- c():
		case <-x.t.Context().Done():
		}
	}()
}

// update passes a message to the model.
func (x *terminal) update(msg tea.Msg) {
	x.t.Helper()
	switch v := reflect.ValueOf(msg); {
	case msg == nil:
		return
	case v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd](): // a batch or a sequence
		x.each(v)
		return
	}
	var cmd tea.Cmd
	x.model, cmd = x.model.Update(msg)
	x.run(cmd)
	x.check()
}

// each executes the commands of a batch concurrently, those of a sequence in
// order.
func (x *terminal) each(v reflect.Value) {
	cmds := make([]tea.Cmd, v.Len())
	for i := range cmds {
		cmds[i] = v.Index(i).Interface().(tea.Cmd)
	}
	if _, ok := v.Interface().(tea.BatchMsg); ok {
		for _, c := range cmds {
			x.run(c)
		}
		return
	}
	go func() {
		for _, c := range cmds {
			if c != nil {
				x.msgs <- c()
			}
		}
	}()
}

// check checks that the terminal shows the drawing, where the cursor is, and nothing below
// it.
func (x *terminal) check() {
	x.t.Helper()
	if left, _ := x.model.(screen).Left(); left {
		return
	}
	v := x.model.View()
	lines := strings.Split(v.Content, "\n")
	for _, l := range lines {
		if ansi.Width(l) > max(x.vt.width, 4) {
			x.t.Errorf("line %q is wider than %d columns", l, x.vt.width)
		}
	}
	if x.vt.width < 10 || x.vt.height < 10 {
		return // there is no room for all
	}
	if most := x.vt.height - x.vt.height/3; len(lines) > most {
		x.t.Errorf("%d lines drawn on a terminal with %d rows", len(lines), x.vt.height)
	}
	var shown []string
	for _, l := range x.vt.lines[x.drawn():] {
		shown = append(shown, l.String())
	}
	if d := cmp.Diff(strings.TrimRight(blanks.ReplaceAllString(ansi.Clean(v.Content), ""), "\n"),
		strings.TrimRight(strings.Join(shown, "\n"), "\n")); d != "" {
		x.t.Errorf("the terminal does not show the drawing (-want +got)\n%s", d)
	}
}

// drawn returns the first line of the drawing on the terminal.
func (x *terminal) drawn() int { return max(x.vt.y-x.model.View().Cursor.Y, 0) }

// printed returns the printed text.
func (x *terminal) printed() string { return x.vt.before(x.drawn()) }

// until runs the screen until f is true.
func (x *terminal) until(what string, f func() bool) {
	x.t.Helper()
	limit := time.After(waittest.Limit)
	for !f() {
		select {
		case m := <-x.msgs:
			x.update(m)
		case <-limit:
			x.t.Fatalf("waited %v in vain: %s\n%s", waittest.Limit, what, x.all())
		}
	}
}

// sees runs the screen until the text is visible, printed or drawn.
func (x *terminal) sees(text string) {
	x.t.Helper()
	x.until("to see "+text, func() bool { return strings.Contains(x.all(), text) })
}

// showsOnce runs the screen until each text is visible, and checks that none is twice.
func (x *terminal) showsOnce(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.sees(text)
	}
	x.idle()
	for _, text := range texts {
		if n := strings.Count(x.all(), text); n != 1 {
			x.t.Errorf("%q is shown %d times\n%s", text, n, x.all())
		}
	}
}

// idle runs the screen until nothing is in progress, and lets it print what is left,
// which a busy machine may do later.
func (x *terminal) idle() {
	x.t.Helper()
	x.until("to be idle", func() bool { return !x.model.(screen).Busy() })
	for quiet := 0; quiet < 3; {
		select {
		case m := <-x.msgs:
			x.update(m)
			quiet = 0
		case <-time.After(15 * time.Millisecond):
			quiet++
		}
	}
}

// all returns the printed and drawn text without styles.
func (x *terminal) all() string {
	if left, _ := x.model.(screen).Left(); left {
		return x.vt.before(len(x.vt.lines))
	}
	all := x.printed() + "\n" + ansi.Clean(x.model.View().Content)
	return blanks.ReplaceAllString(all, "")
}

func (x *terminal) press(keys ...tea.KeyPressMsg) {
	x.t.Helper()
	for _, k := range keys {
		x.update(k)
	}
}

// types enters a text and presses Enter.
func (x *terminal) types(text string) {
	x.t.Helper()
	x.update(tea.PasteMsg{Content: text})
	x.press(enter)
}

// answers turns to the question and presses keys as the answer.
func (x *terminal) answers(keys ...tea.KeyPressMsg) {
	x.t.Helper()
	x.press(append([]tea.KeyPressMsg{tab}, keys...)...)
}

var (
	enter   = tea.KeyPressMsg{Code: tea.KeyEnter}
	up      = tea.KeyPressMsg{Code: tea.KeyUp}
	tab     = tea.KeyPressMsg{Code: tea.KeyTab}
	newline = tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt}
	ctrlC   = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	ctrlO   = tea.KeyPressMsg{Code: 'o', Mod: tea.ModCtrl}
)

func key(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

var blanks = regexp.MustCompile(`(?m) +$`)

// prompts matches the size of the context, which depends on the name of the
// test directory.
var prompts = regexp.MustCompile(`context [0-9.]+k`)

var times = regexp.MustCompile(`  \d+\.\d+s`)

// golden runs the screen until it shows the content of a file.
func (x *terminal) golden(name string) {
	x.t.Helper()
	x.idle()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(x.lasting()), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	for limit := time.After(waittest.Limit); x.lasting() != string(want); {
		select {
		case m := <-x.msgs:
			x.update(m)
		case <-limit:
			x.t.Fatalf("(-want +got)\n%s", cmp.Diff(string(want), x.lasting()))
		}
	}
}

// lasting returns the printed and drawn text without what differs from run to run.
func (x *terminal) lasting() string {
	text := times.ReplaceAllString(x.all(), "")
	text = prompts.ReplaceAllString(text, "context Nk")
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// workspace returns a gateway whose model follows the script, and its workspace
// directory.
func workspace(t *testing.T, steps ...llmtest.Step) (*chelatest.Gateway, string) {
	t.Helper()
	dir := t.TempDir()
	g := chelatest.Start(t, chelatest.Options{Dir: dir, Model: llmtest.NewScript(steps...)})
	return g, filepath.Join(dir, "workspace")
}

func TestConversation(t *testing.T) {
	g, dir := workspace(t,
		llmtest.Calls(llmtest.ToolCall("c1", "read", `{"path": "notes.txt"}`),
			llmtest.ToolCall("c2", "read", `{"path": "none.txt"}`)),
		llmtest.Say("# Notes\n\nThey say **hello**, 你好.\n\n- one\n- two\n\n```go\nfmt.Println(\"hi\")\n```\n\nThat is all."),
	)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := open(t, g, func(o *tui.Options) { o.Lines = []string{"chela · mock/m"} })
	x.types("what do my notes say?\nboth of them")
	x.sees("That is all.")
	x.golden("conversation")

	t.Run("ctrl+o shows the tool output of this turn", func(t *testing.T) {
		x.press(ctrlO)
		x.until("two lines of output", func() bool { return strings.Count(x.all(), "  │ ") >= 2 })
	})
	t.Run("another screen shows the same conversation", func(t *testing.T) {
		y := open(t, g, nil)
		y.sees("That is all.")
		y.golden("later")
	})
}

func TestModelOutputIsCleaned(t *testing.T) {
	g, _ := workspace(t, llmtest.Say("safe \x1b]0;owned\x07\x1b[2Jtext \u202eevil"))
	x := open(t, g, nil)
	x.types("hi")
	x.sees("safe text evil")
	x.idle()
	if all := x.raw.String(); strings.Contains(all, "\x1b]") || strings.Contains(all, "\x1b[2J") ||
		strings.Contains(all, "\u202e") {
		t.Errorf("printed: %q", all)
	}
}

func TestApproval(t *testing.T) {
	call := llmtest.Call("c1", "exec", `{"command": "touch made"}`)
	for _, tt := range []struct {
		name string
		keys []tea.KeyPressMsg
		made bool
		said string
	}{
		{"y allows once", []tea.KeyPressMsg{key('y')}, true, "✓ allowed once: writes made"},
		{"s and enter allow for the session", []tea.KeyPressMsg{key('s'), enter}, true,
			"✓ allowed for this session: writes made"},
		{"a and enter allow always", []tea.KeyPressMsg{key('a'), enter}, true, "✓ allowed always: writes made"},
		{"n denies", []tea.KeyPressMsg{key('n')}, false, "✗ denied: writes made"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, dir := workspace(t, call, llmtest.Say("done"))
			x := open(t, g, nil)
			x.types("make it")
			x.sees("? allow: writes made")
			x.sees("┃ touch made") // the plan
			x.answers(tt.keys...)
			x.sees(tt.said)
			x.sees("done")
			x.idle()
			if _, err := os.Stat(filepath.Join(dir, "made")); (err == nil) != tt.made {
				t.Errorf("the file: %v, want made %v", err, tt.made)
			}
			if strings.Contains(x.all(), "? allow") {
				t.Errorf("the question is still there\n%s", x.all())
			}
		})
	}
	t.Run("letters of a message are not an answer, and the message is sent", func(t *testing.T) {
		g, dir := workspace(t, call, llmtest.Say("done"), llmtest.Say("done as well"))
		x := open(t, g, nil)
		x.types("make it")
		x.sees("? allow: writes made")
		for _, r := range "also check the tests" {
			x.press(key(r))
		}
		x.sees("› also check the tests")
		x.press(enter)
		x.sees("❯ also check the tests")
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil || !strings.Contains(x.all(), "? allow: writes made") {
			t.Errorf("the question was answered: %v\n%s", err, x.all())
		}
		x.answers(key('n'))
		x.sees("✗ denied: writes made")
	})
	t.Run("a pending approval is shown by the next screen, even in another session", func(t *testing.T) {
		g, dir := workspace(t, call, llmtest.Say("done"))
		x := open(t, g, nil)
		x.types("make it")
		x.sees("? allow: writes made")
		y := open(t, g, func(o *tui.Options) { o.Session = "agent:main:other" })
		y.sees("needs approval in session agent:main:main")
		y.answers(key('y'), enter)
		x.sees("done")
		x.idle()
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Error(err)
		}
		y.until("the question to disappear", func() bool { return !strings.Contains(y.all(), "? allow") })
	})
	t.Run("the /approve command decides it", func(t *testing.T) {
		g, dir := workspace(t, call, llmtest.Say("done"))
		x := open(t, g, nil)
		x.types("make it")
		x.sees("? allow: writes made")
		x.types("/approve allow-once")
		x.sees("✓ allowed once: writes made")
		x.sees("done")
		x.idle()
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Error(err)
		}
	})
	t.Run("it is withdrawn if another client stops the run", func(t *testing.T) {
		g, _ := workspace(t, call, llmtest.Say("done"))
		x := open(t, g, nil)
		x.types("make it")
		x.sees("? allow: writes made")
		if _, err := dial(t, g).Abort(t.Context(), "main", ""); err != nil {
			t.Fatal(err)
		}
		x.sees("✗ withdrawn, the run was stopped: writes made")
		x.until("the question to disappear", func() bool { return !strings.Contains(x.all(), "? allow") })
	})
	t.Run("a key press right after another client's decision does not answer the next question", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { // so that no time passes before the key press
			g := chelatest.Start(t,
				chelatest.Options{Dir: dir, Model: llmtest.NewScript(call, call, llmtest.Say("done"), llmtest.Say("done"))})
			x := open(t, g, nil)
			x.types("make it")
			x.sees("? allow: writes made")
			other := dial(t, g)
			if _, err := other.Send(t.Context(), "agent:main:other", "make it"); err != nil {
				t.Fatal(err)
			}
			x.sees("(1 of 2)")
			x.press(tab)
			pending := func() (list []wire.Approval) {
				if err := other.Call(t.Context(), wire.MethodApprovalList, nil, &list); err != nil {
					t.Fatal(err)
				}
				return list
			}
			if err := other.Call(t.Context(), wire.MethodApprovalResolve,
				wire.ApprovalResolve{ID: pending()[0].ID, Decision: wire.Deny}, nil); err != nil {
				t.Fatal(err)
			}
			x.sees("✗ denied: writes made")
			x.press(key('y'))
			x.sees("› y")
			if n := len(pending()); n != 1 {
				t.Errorf("%d questions are pending, want the second one", n)
			}
			x.update(tea.KeyPressMsg(tea.Key{Code: tea.KeyBackspace}))
			x.answers(key('y'), enter)
			x.until("the second question to be decided", func() bool { return len(pending()) == 0 })
			time.Sleep(time.Hour) // until the timers of the screen have ended
		})
	})
	t.Run("AP-15 always is neither offered nor accepted for an action that can only be allowed once", func(t *testing.T) {
		inline := llmtest.Call("c1", "exec", `{"command": "python3 -c 'print(1)'"}`)
		g := chelatest.Start(t, chelatest.Options{
			Model:  llmtest.NewScript(inline, llmtest.Say("done")),
			Config: chelatest.Config{"tools": json.RawMessage(`{"exec": {"strictInlineEval": true}}`)},
		})
		x := open(t, g, nil)
		x.types("make it")
		x.sees("? allow: runs python3")
		x.press(tab)
		if all := x.all(); strings.Contains(all, "a always") || !strings.Contains(all, "y once") {
			t.Errorf("question:\n%s", all)
		}
		x.press(key('a'))
		x.sees("› a") // the key went to the input
	})
	t.Run("at any width the whole plan is shown once, and the keys stand above the input", func(t *testing.T) {
		command := "touch " + strings.Repeat("made ", 50) + "'a\x1b[2Jb\u202ec' " + strings.Repeat("x", 300) + " ../end"
		long, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{20, 30, 40, 80, 160} {
			g, _ := workspace(t, call, llmtest.Call("c2", "exec", string(long)), llmtest.Say("done"), llmtest.Say("done"))
			other := open(t, g, nil)
			other.types("make it")
			other.sees("? allow: writes made")
			x := open(t, g, func(o *tui.Options) { o.Session = "agent:main:other" })
			x.resize(width, 24)
			x.sees("? allow in another")
			x.types("make more")
			x.sees("? allow (1 of 2):")
			want := strings.ReplaceAll(strings.NewReplacer("\x1b", `\x1b`, "\u202e", `\u202e`).Replace(command), " ", "")
			plans := func() int {
				var plan strings.Builder
				for _, l := range strings.Split(x.printed(), "\n") {
					if text, ok := strings.CutPrefix(l, "┃ "); ok {
						plan.WriteString(strings.ReplaceAll(text, " ", ""))
					}
				}
				return strings.Count(plan.String(), want)
			}
			x.until("the whole plan", func() bool { return plans() > 0 })
			_, below, _ := strings.Cut(x.all(), "? allow (1 of 2):")
			question, _, above := strings.Cut(below, "\n──") // the line above the input
			if _, keys, _ := strings.Cut(question, "\n"); !above || strings.Join(strings.Fields(keys), " ") != "tab to answer" {
				t.Errorf("width %d: the keys are not above the input:\n%s", width, x.all())
			}
			x.answers(key('n'))
			x.sees("✗ denied: ")
			if n := plans(); n != 1 {
				t.Errorf("width %d: the plan is shown %d times", width, n)
			}
		}
	})
	t.Run("yes allows without a question", func(t *testing.T) {
		g, _ := workspace(t, call, llmtest.Say("done"))
		x := open(t, g, func(o *tui.Options) { o.Yes = true })
		x.types("make it")
		x.sees("done")
		if !strings.Contains(x.all(), "allowed: writes made") {
			t.Errorf("the allowed action is not shown\n%s", x.all())
		}
	})
}

// slow returns a step that begins an answer and hangs.
func slow() llmtest.Step {
	s := llmtest.Say("begin of a long answer\n\nand more")
	s.Fault.Hang = llmtest.HangMiddle
	return s
}

func TestInterrupt(t *testing.T) {
	g, _ := workspace(t, slow(), llmtest.Say("second answer"))
	x := open(t, g, nil)
	x.types("go on")
	x.sees("begin of a long answer")
	x.press(ctrlC)
	x.sees("■ stopped")
	x.idle()
	if left, _ := x.model.(screen).Left(); left {
		t.Fatal("the first interrupt quit the screen")
	}
	x.types("again")
	x.sees("second answer")
	x.idle()
	x.update(tea.PasteMsg{Content: "draft"})
	x.press(ctrlC)
	if left, _ := x.model.(screen).Left(); left || strings.Contains(x.all(), "draft") {
		t.Fatalf("with a draft: quit %v\n%s", left, x.all())
	}
	x.press(ctrlC)
	if left, err := x.model.(screen).Left(); !left || err != nil {
		t.Fatalf("idle: quit %v, %v", left, err)
	}
}

// line is a connection to a gateway that the test can cut.
type line struct {
	mu    sync.Mutex
	to    func(context.Context) (net.Conn, error) // nil: connecting fails
	conns []net.Conn
}

func (l *line) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	if to == nil {
		return nil, errors.New("connection refused")
	}
	c, err := to(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

// cut closes the connections. New ones are made with to.
func (l *line) cut(to func(context.Context) (net.Conn, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns, l.to = nil, to
}

// client returns a client that connects over the line and reconnects quickly.
func (l *line) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{
		Dial: l.dial, Caps: []string{wire.CapToolEvents},
		Delay: func(int, error) time.Duration { return 5 * time.Millisecond },
	})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestReconnect(t *testing.T) {
	long := llmtest.Say("begin of a long answer\n\nand its end")
	long.Gap = 300 * time.Millisecond
	g, _ := workspace(t, llmtest.Say("zeroth"), long, llmtest.Say("third"))
	l := &line{to: g.Dial}
	x := open(t, g, func(o *tui.Options) { o.Client = l.client(t) })
	x.types("before")
	x.sees("zeroth")
	x.idle()
	x.types("tell me")
	x.sees("begin of a long answer")
	l.cut(nil)
	x.sees("connection lost")
	x.sees("connection refused")
	l.cut(g.Dial)
	x.sees("and its end")
	x.showsOnce("connection lost", "reconnected", "zeroth", "❯ tell me", "begin of a long answer", "and its end")
	x.types("and then?")
	x.sees("third")
}

// TestAnswerMissed loses the connection while the answer is completed.
func TestAnswerMissed(t *testing.T) {
	long := llmtest.Say("begin of a long answer\n\nand its end")
	long.Gap = 100 * time.Millisecond
	g, _ := workspace(t, long)
	l := &line{to: g.Dial}
	x := open(t, g, func(o *tui.Options) { o.Client = l.client(t) })
	x.types("tell me")
	x.sees("begin of a long answer")
	l.cut(nil)
	x.sees("connection lost")
	x.types("and then?")
	other := open(t, g, nil)
	other.sees("and its end")
	l.cut(g.Dial)
	x.sees("the script has no step") // the answer to the second message
	x.showsOnce("begin of a long answer", "and its end", "❯ and then?")
}

// lossy is a connection that never delivers sessions.changed: these events are
// sent aside, and the gateway may end before.
type lossy struct{ net.Conn }

func (c lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte(wire.EventSessionsChanged),
		bytes.Repeat([]byte("x"), len(wire.EventSessionsChanged))))
	return n, err
}

// TestAnotherGateway restarts the gateway while the screen is open.
func TestAnotherGateway(t *testing.T) {
	t.Run("every event arrives", func(t *testing.T) { anotherGateway(t, func(c net.Conn) net.Conn { return c }) })
	t.Run("changes of the session do not arrive",
		func(t *testing.T) { anotherGateway(t, func(c net.Conn) net.Conn { return lossy{c} }) })
}

func anotherGateway(t *testing.T, wrap func(net.Conn) net.Conn) {
	dir := t.TempDir()
	g := chelatest.Start(t, chelatest.Options{Dir: dir, Model: llmtest.NewScript(llmtest.Say("first answer"))})
	first := g.Dial
	l := &line{to: func(ctx context.Context) (net.Conn, error) {
		c, err := first(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(c), nil
	}}
	x := open(t, g, func(o *tui.Options) { o.Client = l.client(t) })
	x.types("tell me")
	x.sees("first answer")
	x.idle()
	g.Stop()
	x.sees("connection lost")
	x.types("and then?")
	next := chelatest.Start(t, chelatest.Options{Dir: dir, Model: llmtest.NewScript(llmtest.Say("second answer"))})
	l.cut(next.Dial)
	x.sees("second answer")
	x.showsOnce("❯ tell me", "❯ and then?", "first answer", "second answer", "connection lost", "reconnected")
}

func TestInput(t *testing.T) {
	g, dir := workspace(t, llmtest.Say("one"), llmtest.Say("two"))
	file := filepath.Join(dir, "typed")
	x := open(t, g, func(o *tui.Options) { o.History = file })
	x.press(key('a'), newline, key('b'), enter)
	x.sees("one")
	x.sees("❯ a\n  b\n")
	x.idle()
	x.update(tea.PasteMsg{Content: "draft"})
	x.press(up)
	if !strings.Contains(x.all(), "› a\n  b") {
		t.Errorf("input history:\n%s", x.all())
	}
	x.press(ctrlC)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history file: %v, %v", info, err)
	}
	t.Run("a later screen has the input history", func(t *testing.T) {
		y := open(t, g, func(o *tui.Options) { o.History = file })
		y.press(up)
		if !strings.Contains(y.all(), "› a\n  b") {
			t.Errorf("input history:\n%s", y.all())
		}
	})
	t.Run("commands are completed", func(t *testing.T) {
		x.press(key('/'))
		x.sees("/new ")
		x.press(key('s'), key('t'), key('a'))
		if all := x.all(); !strings.Contains(all, "/status") || strings.Contains(all, "/new ") {
			t.Errorf("menu:\n%s", all)
		}
		x.press(tab)
		if all := x.all(); !strings.Contains(all, "› /status") {
			t.Errorf("completed input:\n%s", all)
		}
		x.press(enter)
		x.sees("❯ /status")
		x.idle()
	})
	t.Run("/quit ends the screen", func(t *testing.T) {
		x.types("/quit")
		if left, err := x.model.(screen).Left(); !left || err != nil {
			t.Errorf("quit %v, %v", left, err)
		}
	})
}

func TestPicture(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	g := chelatest.Start(t, chelatest.Options{
		Model: llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			for _, p := range r.Messages[len(r.Messages)-1].Parts {
				if p.Kind == llm.PartImage {
					return llmtest.Say("I see a picture of type " + p.MIME)
				}
			}
			return llmtest.Say("I see none")
		}),
	})
	x := open(t, g, nil)
	x.types("/image " + file + " what is it?")
	x.sees("I see a picture of type image/png")
	x.sees("what is it?")
}

func TestSizes(t *testing.T) {
	long := strings.Repeat("a long line of code that is wider than most terminals are, and 宽的字符 too\n", 60)
	step := llmtest.Say("```\n" + long + "```")
	step.Fault.Hang = llmtest.HangMiddle
	g, _ := workspace(t, step)
	x := open(t, g, nil)
	x.types("code")
	x.sees("a long line")
	for _, size := range [][2]int{{80, 24}, {30, 10}, {10, 5}, {200, 60}, {4, 3}, {80, 24}} {
		x.resize(size[0], size[1])
	}
	x.update(tea.PasteMsg{Content: strings.Repeat("line\n", 30)})
	x.resize(40, 12)
	x.press(ctrlC, ctrlC) // the draft, the turn
	x.sees("■ stopped")
}

func TestFailure(t *testing.T) {
	g, _ := workspace(t, llmtest.Status(401, "bad key"))
	x := open(t, g, nil)
	x.types("hi")
	x.sees("refused the key")
	x.sees("/model") // the hint
}

// A result of background work is printed between the answers, and leaves the line that is
// being typed as it is.
func TestBackground(t *testing.T) {
	child, answer, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch text := last.PlainText(); {
		case strings.Contains(r.System[1].Text, "# Subagent Context"):
			<-child
			return llmtest.Say("done")
		case last.Role == llm.RoleTool:
			return llmtest.Say("started")
		case text == "spawn":
			return llmtest.Call("c", "sessions_spawn", `{"task":"work","label":"w"}`)
		case text == "slow":
			close(asked)
			<-answer
			return llmtest.Say("first half and second half")
		}
		return llmtest.Say("told w")
	})
	g := chelatest.Start(t, chelatest.Options{Model: model})
	x := open(t, g, nil)
	x.types("spawn")
	x.sees("started")
	x.idle()
	x.types("slow")
	x.until("the model is asked", func() bool { return closed(asked) })
	x.update(tea.PasteMsg{Content: "half a line"})
	close(child)
	watch := dial(t, g)
	x.until("the result waits", func() bool {
		var page wire.TasksPage
		err := watch.Call(t.Context(), wire.MethodTasksList, wire.TasksList{}, &page)
		return err == nil && len(page.Tasks) == 1 && page.Tasks[0].Delivery == wire.DeliveryQueued
	})
	close(answer)
	x.sees("told w")
	x.idle()
	t.Run("SEED-05 a result is printed after the answer", func(t *testing.T) {
		x.until("to print the result", func() bool {
			return strings.Contains(x.printed(), "❯ slow\n\nfirst half and second half\n\ntold w")
		})
	})
	t.Run("SEED-05 a result leaves the line that is typed", func(t *testing.T) {
		if got := x.model.View().Content; !strings.Contains(ansi.Clean(got), "› half a line") {
			t.Errorf("drawn:\n%s", got)
		}
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFailedCommand(t *testing.T) {
	command := llmtest.Call("c1", "exec", `{"command": "cat none; echo; printf 'two\\nthree\\nfour\\n'; false"}`)
	g, _ := workspace(t, command, llmtest.Say("it failed"))
	x := open(t, g, func(o *tui.Options) { o.Yes = true })
	x.types("do it")
	x.sees("it failed")
	x.idle()
	t.Run("a command that failed has a mark, its exit code and the first lines of its output", func(t *testing.T) {
		if got := x.printed(); !strings.Contains(got, "✗ exec ") || strings.Contains(got, "✓") ||
			!strings.Contains(got, "exit code 1") ||
			!strings.Contains(got,
				"  │ cat: none: No such file or directory\n  │ two\n  │ three\n  │ … 1 more line; ctrl+o shows the output\n") {
			t.Errorf("printed:\n%s", got)
		}
	})
	t.Run("the history shows it in the same way", func(t *testing.T) {
		y := open(t, g, nil)
		y.sees("it failed")
		if got := y.printed(); !strings.Contains(got, "✗ exec ") ||
			!strings.Contains(got, "exit code 1\n  │ cat: none: No such") {
			t.Errorf("printed:\n%s", got)
		}
	})
}

// The input is at the bottom once there is enough text, and stays there.
func TestBottom(t *testing.T) {
	t.Run("a terminal that breaks lines again", func(t *testing.T) { testBottom(t, "xterm-256color", false) })
	t.Run("a terminal that cuts lines", func(t *testing.T) { testBottom(t, "linux", true) })
}

func testBottom(t *testing.T, name string, cuts bool) {
	long := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "paragraph %d of the answer\n\n", i)
		}
		return b.String()
	}
	g, _ := workspace(t, llmtest.Say(long(30)), llmtest.Call("c1", "exec", `{"command": "touch made"}`),
		llmtest.Say("done"))
	x := open(t, g, func(o *tui.Options) {
		o.Getenv = func(key string) string { return map[string]string{"TERM": name}[key] }
	})
	x.vt.cuts = cuts
	x.types("tell me")
	x.sees("paragraph 29")
	x.idle()
	bottom := func(when string) {
		t.Helper()
		if n := x.vt.blank(); n > 0 {
			t.Errorf("%s: %d empty rows at the bottom\n%s", when, n, x.all())
		}
	}
	bottom("after an answer")
	x.press(key('/'))
	bottom("menu")
	x.press(tea.KeyPressMsg{Code: tea.KeyEscape})
	bottom("menu closed")
	x.press(newline, newline, newline)
	bottom("several lines")
	x.press(ctrlC)
	bottom("one line")
	x.types("make it")
	x.sees("? allow")
	bottom("question")
	x.answers(key('n'))
	x.sees("done")
	x.idle()
	bottom("answered")
	for _, size := range [][2]int{{60, 24}, {40, 16}, {120, 16}, {120, 30}, {30, 12}, {80, 24}} {
		x.resize(size[0], size[1])
		x.idle()
		t.Run(fmt.Sprintf("a terminal of %d columns and %d rows shows no rows twice", size[0], size[1]), func(t *testing.T) {
			all := x.vt.before(len(x.vt.lines))
			for _, once := range []string{"── main", "› message, or", "✗ denied: "} {
				if n := strings.Count(all, once); n != 1 {
					t.Errorf("%q is shown %d times\n%s", once, n, all)
				}
			}
		})
	}
	t.Run("no printed line is lost or repeated", func(t *testing.T) {
		all := x.vt.before(len(x.vt.lines))
		for i := range 30 {
			if n := strings.Count(all, fmt.Sprintf("paragraph %d of", i)); n != 1 {
				t.Errorf("paragraph %d is shown %d times", i, n)
			}
		}
	})
	t.Run("at the end the drawing is removed", func(t *testing.T) {
		x.types("/quit")
		if all := x.vt.before(len(x.vt.lines)); strings.Contains(all, "── main") || strings.Contains(all, "› message") {
			t.Errorf("left:\n%s", all)
		}
	})
}
