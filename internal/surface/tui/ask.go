package tui

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// answerDelay is how long keys still go to the input after the last key press
// and after a question appeared, so that typed text does not answer it.
const answerDelay = 700 * time.Millisecond

// ask shows an approval request. The complete action is printed to the
// scrollback; the question stays above the input.
func (s *screen) ask(a wire.Approval) tea.Cmd {
	if slices.ContainsFunc(s.asked, func(b wire.Approval) bool { return b.ID == a.ID }) {
		return nil
	}
	if s.o.Yes && a.Request.SessionKey == s.feed.Session {
		s.notice("allowed: " + a.Request.Command)
		return s.resolve(a.ID, wire.AllowOnce)
	}
	s.printPlan(a.Request)
	at := len(s.asked)
	if a.Request.SessionKey == s.feed.Session { // those of this session are asked first
		at = 0
		for at < len(s.asked) && s.asked[at].Request.SessionKey == s.feed.Session {
			at++
		}
	}
	if s.asked = slices.Insert(s.asked, at, a); at == 0 {
		s.askedAt = time.Now()
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
	keys := s.styles.Bold.Paint("y") + " once  "
	if !r.Once {
		keys += s.styles.Bold.Paint("s") + " session  " + s.styles.Bold.Paint("a") + " always  "
	}
	keys += s.styles.Bold.Paint("n") + " no"
	if s.input.Value() != "" {
		keys = s.styles.Dim.Paint("clear the input to answer y, s, a, n")
	}
	title := "? allow"
	if n := len(s.asked); n > 1 {
		title += " (1 of " + strconv.Itoa(n) + ")"
	}
	if r.SessionKey != s.feed.Session {
		title += " in another session"
	}
	return ansi.Truncate(s.styles.Warn.Paint(title+": ")+ansi.Line(command), s.width) + "\n" + ansi.Wrap("  "+keys, s.width)
}

// answer handles a key as the answer to a question. It reports false if the
// key is not an answer.
func (s *screen) answer(key string) (tea.Cmd, bool) {
	if len(s.asked) == 0 || s.input.Value() != "" || time.Since(s.typedAt) < answerDelay || time.Since(s.askedAt) < answerDelay {
		return nil, false
	}
	decision, ok := map[string]string{"y": wire.AllowOnce, "s": wire.AllowSession, "a": wire.AllowAlways, "n": wire.Deny}[key]
	if !ok || s.lost || (key == "s" || key == "a") && s.asked[0].Request.Once {
		return nil, false
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
	words := map[string]string{
		wire.AllowOnce: "✓ allowed once", wire.AllowSession: "✓ allowed for this session", wire.AllowAlways: "✓ allowed always", wire.Deny: "✗ denied",
		wire.ApprovalExpired: "✗ expired without an answer", wire.ApprovalWithdrawn: "✗ withdrawn, the run was stopped",
	}
	command, _, _ := strings.Cut(strings.TrimSpace(ansi.Clean(a.Request.Command)), "\n")
	line := cmp.Or(words[decision], ansi.Line(decision)) + ": " + ansi.Line(command)
	s.scroll.add(bare, s.styles.Dim.Paint(ansi.Truncate(line, s.columns())))
}

// withdraw removes a question and reports whether there was one.
func (s *screen) withdraw(id string) bool {
	n := len(s.asked)
	s.asked = slices.DeleteFunc(s.asked, func(a wire.Approval) bool { return a.ID == id })
	s.askedAt = time.Now()
	return len(s.asked) < n
}
