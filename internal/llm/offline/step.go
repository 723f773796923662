package offline

import (
	"strconv"
	"strings"
)

// call is a tool call to make.
type call struct {
	tool string
	args map[string]any
}

// step is one thing to do, with what was done of it.
type step struct {
	intent  string
	calls   []call                        // the first round
	then    func(done []result) []call    // the second round; nil: none
	render  func(t *turn, s *step) string // what to say; nil: what the calls gave
	missing func(r result) bool           // results that may fail
	answer  string                        // what to say without any call
	ask     string                        // answer is a question; the next message fills the slot
	about   string                        // what it is about, in replies
	command string                        // for exec, when no better tool is offered
	lacks   string                        // tool that is not offered
	done    []result                      // so far
	fresh   []result                      // of the round before
	round   int
	open    bool // it ends with free text
}

// next returns the step's next calls.
func (s *step) next(t *turn, made bool) []call {
	var calls []call
	switch {
	case s.round == 0:
		calls = s.calls
	case s.round == 1 && s.then != nil && !anyBad(s):
		calls = s.then(s.fresh)
	}
	s.round++
	s.fresh = nil
	for i, c := range calls {
		if made || t.tools[c.tool] {
			continue
		}
		if s.command != "" && i == 0 && t.tools["exec"] {
			return []call{{"exec", map[string]any{"command": s.command}}}
		}
		s.lacks = c.tool
		return nil
	}
	return calls
}

// anyBad reports whether a result failed that may not.
func anyBad(s *step) bool {
	for _, r := range s.done {
		if r.waits() || r.bad && !s.optional(r) {
			return true
		}
	}
	return false
}

func (s *step) optional(r result) bool { return s.missing != nil && s.missing(r) }

// reply says what the step gave.
func (s *step) reply(t *turn) string {
	switch {
	case s.lacks != "":
		return t.say(lacksText, s.about, s.lacks)
	case s.answer != "":
		return s.answer
	}
	var problems []string
	for _, r := range s.done {
		switch {
		case r.waits():
			problems = append(problems, t.say(waitsText, subject(r), strings.TrimSpace(strings.TrimPrefix(r.text, "waiting for approval"))))
		case r.bad && !s.optional(r):
			problems = append(problems, t.say(failedText, subject(r), clip(firstLine(r.text), 300)))
		}
	}
	if problems == nil {
		return s.text(t)
	}
	if good := s.good(); len(good) > 0 && s.then == nil {
		return s.text(t) + "\n\n" + strings.Join(problems, "\n")
	}
	return strings.Join(problems, "\n")
}

// good returns the results that did not fail.
func (s *step) good() []result {
	var out []result
	for _, r := range s.done {
		if !r.bad && !r.waits() {
			out = append(out, r)
		}
	}
	return out
}

func (s *step) text(t *turn) string {
	if s.render != nil {
		return s.render(t, s)
	}
	var parts []string
	for _, r := range s.good() {
		parts = append(parts, t.show(r))
	}
	return strings.Join(parts, "\n\n")
}

// subject names what a call was about.
func subject(r result) string {
	for _, name := range []string{"command", "path", "url", "pattern", "query", "task"} {
		if v := r.arg(name); v != "" {
			return "`" + clip(firstLine(v), 120) + "`"
		}
	}
	return r.call.Name
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// shownLines bounds the lines of a file in one reply.
const shownLines = 120

// show says what a call gave.
func (t *turn) show(r result) string {
	switch r.call.Name {
	case "read":
		return t.showFile(r)
	case "ls":
		where := r.arg("path")
		if where == "" {
			where = t.say(hereText)
		}
		return t.say(listText, where, fence(t.cap(r.text)))
	case "find", "grep":
		if strings.HasPrefix(r.text, "No match") || strings.HasPrefix(r.text, "Nothing matches") || r.text == "" {
			return t.say(nothingText, r.arg("pattern"))
		}
		n := strconv.Itoa(len(entries(r)))
		return t.say(foundText, r.arg("pattern"), n, fence(t.cap(r.text)))
	case "exec":
		out := t.cap(r.text)
		if m := forms().exitCode.FindStringSubmatch(r.text); m != nil {
			return t.say(exitText, r.arg("command"), m[1], fence(out))
		}
		if out == "" || strings.HasPrefix(out, "[succeeded") {
			return t.say(quietText, r.arg("command"))
		}
		return t.say(ranText, r.arg("command"), fence(out))
	case "write", "edit":
		return t.say(doneText, firstLine(r.text))
	}
	return t.cap(r.text)
}

// showFile shows a file, its first lines when it is long.
func (t *turn) showFile(r result) string {
	if !forms().numbered.MatchString(r.text) {
		return firstLine(r.text) // empty, binary or an image: the tool says so
	}
	body, next := page(r)
	text := t.say(fileText, r.arg("path"), fence(t.cap(forms().numbered.ReplaceAllString(body, ""))))
	if next > 0 {
		text += "\n" + t.say(moreText, strconv.Itoa(next))
	}
	return text
}

// page returns the lines of a file that one reply shows, and the number of the
// first line after them, 0 at the end.
func page(r result) (string, int) {
	lines := strings.Split(r.text, "\n")
	n := 0
	for n < len(lines) && forms().numbered.MatchString(lines[n]) {
		n++
	}
	if n > shownLines {
		m := forms().numbered.FindStringSubmatch(lines[shownLines])
		next, _ := strconv.Atoi(m[1])
		return strings.Join(lines[:shownLines], "\n"), next
	}
	if m := forms().moreAt.FindStringSubmatch(r.text); m != nil {
		next, _ := strconv.Atoi(m[1])
		return strings.Join(lines[:n], "\n"), next
	}
	return r.text, 0
}

// maxShown bounds the text of one result in a reply, in characters.
const maxShown = 12_000

func (t *turn) cap(s string) string {
	if out := clip(s, maxShown); out != s {
		return out + "\n" + t.say(cutText)
	}
	return s
}

// fence puts text between marks that do not occur in it.
func fence(s string) string {
	mark := "```"
	for strings.Contains(s, mark) {
		mark += "`"
	}
	return mark + "\n" + strings.TrimRight(s, "\n") + "\n" + mark
}

// entries returns the paths that a result lists.
func entries(r result) []string {
	var out []string
	for line := range strings.Lines(r.text) {
		line = strings.TrimRight(line, "\n")
		switch r.call.Name {
		case "ls":
			if m := forms().listEntry.FindStringSubmatch(line); m != nil {
				name := m[2]
				if dir := strings.TrimSuffix(r.arg("path"), "/"); dir != "" && dir != "." {
					name = dir + "/" + name
				}
				if m[1] == "folder" {
					name += "/"
				}
				out = append(out, name)
			}
		case "grep":
			if m := forms().grepEntry.FindStringSubmatch(line); m != nil {
				out = append(out, m[1])
			}
		case "find":
			if line != "" && line[0] != '[' && !strings.HasPrefix(line, "Nothing") {
				out = append(out, line)
			}
		}
	}
	return out
}
