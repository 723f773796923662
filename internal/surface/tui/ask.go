package tui

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// turning says whether keys answer the first question. They go to the input unless
// the person turned to the question, so that typed text decides nothing.
type turning struct {
	turned bool
	chosen string // decision that waits for Enter; "": none
}

// ask shows an approval request. The complete action is printed to the
// scrollback, once; the question stays above the input.
func (s *screen) ask(a wire.Approval) tea.Cmd {
	if slices.ContainsFunc(s.asked, func(b wire.Approval) bool { return b.ID == a.ID }) {
		return nil
	}
	told := s.told[a.ID]
	s.told[a.ID] = true
	if s.o.Yes && a.Request.SessionKey == s.feed.Session {
		if !told {
			s.notice("allowed: " + a.Request.Command)
		}
		return s.resolve(a.ID, wire.AllowOnce)
	}
	if !told {
		s.printPlan(a.Request)
	}
	at := len(s.asked)
	if a.Request.SessionKey == s.feed.Session { // those of this session are asked first
		at = 0
		for at < len(s.asked) && s.asked[at].Request.SessionKey == s.feed.Session {
			at++
		}
	}
	if s.asked = slices.Insert(s.asked, at, a); at == 0 {
		s.turning = turning{}
	}
	return nil
}

// printPlan prints the action that needs approval.
func (s *screen) printPlan(r wire.ApprovalRequest) {
	title := "? " + ansi.Line(cmp.Or(r.Tool, "a tool")) + " needs approval"
	if r.SessionKey != s.feed.Session {
		title += " in session " + ansi.Line(r.SessionKey)
	}
	s.scroll.add(block, s.styles.Warn.Paint(title))
	if r.Reason != "" {
		for l := range strings.SplitSeq(ansi.Wrap(ansi.Line(r.Reason), s.columns()-2), "\n") {
			s.scroll.extend("  " + s.styles.Dim.Paint(l))
		}
	}
	bar := s.styles.Warn.Paint("┃") + " "
	for l := range strings.SplitSeq(ansi.Wrap(strings.TrimRight(ansi.Clean(r.Command), "\n"), s.columns()-2), "\n") {
		s.scroll.extend(bar + l)
	}
}

// question returns the question above the input, or "" if none is pending.
func (s *screen) question() string {
	if len(s.asked) == 0 {
		return ""
	}
	r := s.asked[0].Request
	command, _, more := strings.Cut(strings.TrimSpace(ansi.Clean(r.Command)), "\n")
	if more {
		command += " …"
	}
	keys := s.answerKeys(r)
	title := "? allow"
	if n := len(s.asked); n > 1 {
		title += " (1 of " + strconv.Itoa(n) + ")"
	}
	if r.SessionKey != s.feed.Session {
		title += " in another session"
	}
	return ansi.Truncate(s.styles.Warn.Paint(title+": ")+ansi.Line(command), s.width) + "\n" +
		ansi.Wrap("  "+keys, s.width)
}

// answerKeys returns the keys that answer a question.
func (s *screen) answerKeys(r wire.ApprovalRequest) string {
	bold := s.styles.Bold.Paint
	switch {
	case s.chosen != "":
		return bold("enter") + " " + choices[s.chosen] + "  " + bold("esc") + " back"
	case s.turned && r.Once:
		return bold("y") + " once  " + bold("n") + " no  " + bold("esc") + " back"
	case s.turned:
		return bold("y") + " once  " + bold("s") + " session  " + bold("a") + " always  " + bold("n") +
			" no  " + bold("esc") + " back"
	case s.input.Value() != "":
		return s.styles.Dim.Paint("clear the input, then tab to answer")
	}
	return bold("tab") + " to answer"
}

// choices says what the decisions do.
var choices = map[string]string{
	wire.AllowOnce: "allow it once", wire.AllowSession: "allow it for its session",
	wire.AllowAlways: "allow it always", wire.Deny: "deny it",
}

// answer handles a key that concerns a question. It reports false if the key goes to the
// input. Tab in an empty input turns to the question. Then y and n decide it, if it is one
// of this session; everything that reaches further needs Enter, too. Any other key turns
// back.
func (s *screen) answer(key string) (tea.Cmd, bool) {
	switch {
	case len(s.asked) == 0 || s.lost:
		return nil, false
	case !s.turned:
		s.turned = key == "tab" && s.input.Value() == ""
		return nil, s.turned
	}
	r, chosen := s.asked[0].Request, s.chosen
	decision := map[string]string{"y": wire.AllowOnce, "s": wire.AllowSession, "a": wire.AllowAlways, "n": wire.Deny}[key]
	lasts := decision == wire.AllowSession || decision == wire.AllowAlways
	s.turning = turning{}
	switch {
	case chosen != "" && key == "enter":
		return s.resolve(s.asked[0].ID, chosen), true
	case chosen != "" && key == "esc":
		s.turned = true
		return nil, true
	case chosen != "" || decision == "" || lasts && r.Once:
		return nil, key == "esc" || key == "tab" || key == "enter"
	case lasts || r.SessionKey != s.feed.Session:
		s.turning = turning{true, decision}
		return nil, true
	}
	return s.resolve(s.asked[0].ID, decision), true
}

// resolve sends a decision.
func (s *screen) resolve(id, decision string) tea.Cmd {
	return s.call(wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, func(err error) tea.Msg {
		return resolved{id, err}
	})
}

// resolveResult handles the result of resolve. If another client was faster, an
// event reports its decision.
func (s *screen) resolveResult(r resolved) {
	if r.err == nil {
		return
	}
	s.note = ansi.Line(r.err.Error())
	if _, refused := errors.AsType[*wire.Error](r.err); refused {
		s.withdraw(r.id)
	}
}

// approvalResolved shows a decision and removes the question.
func (s *screen) approvalResolved(a wire.Approval, decision string) {
	if !s.withdraw(a.ID) {
		return
	}
	mark, words := feed.Decided(decision)
	command, _, _ := strings.Cut(strings.TrimSpace(ansi.Clean(a.Request.Command)), "\n")
	line := strings.TrimSpace(mark+" "+ansi.Line(words)) + ": " + ansi.Line(command)
	s.scroll.add(bare, s.styles.Dim.Paint(ansi.Truncate(line, s.columns())))
}

// withdraw removes a question and reports whether there was one.
func (s *screen) withdraw(id string) bool {
	i := slices.IndexFunc(s.asked, func(a wire.Approval) bool { return a.ID == id })
	if i < 0 {
		return false
	}
	s.asked = slices.Delete(s.asked, i, i+1)
	if i == 0 {
		s.turning = turning{}
	}
	return true
}
