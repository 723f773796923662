package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
)

var noteLimitText = localized{
	"I saved nothing: I remember only by a line in MEMORY.md, for all conversations, so I cannot keep to “%s”.",
	"什么都没有记：我只能写进 MEMORY.md，对所有会话都有效，所以做不到“%s”。",
}

// memoryFile is the file with notes.
const memoryFile = "MEMORY.md"

// noteLimit is what keeps a fact out of a file, or for a time only.
var noteLimit = lazy(`(?i)^only (?:if|when|until|till|for)\b.*|(?:[,;.]\s*(?:but|and|just)?|\b(?:but|and|just))\s+(?:please )?(?:don'?t|do not|never)\s+(?:ever )?(?:write|save|store|put|record|log|note|keep|tell|share|show|send|mention|repeat)\s+(?:it|this|that|them|anything|anyone|anybody|an?|in|to|down)\b.*` +
	`|\bwithout (?:writing|saving|storing|recording|putting)\b.*|\b(?:but )?(?:only|just) (?:for|until|till) (?:today|tonight|tomorrow|now|this|an?|one|two|\d+|the next)\b.*|\bnot in (?:a|any|the) files?\b.*|\bin your head\b.*` +
	`|[，,；;]\s*(?:但是?|不过|可是)?\s*(?:请|千万|一定)?(?:不要|不许|别|勿|不必|不用|不能|不)(?:把它?|再|要)?(?:写|存|保存|记录?|放|告诉|透露|发给)(?:进|到|入|在|下来?|成|给|任何|别|其他|$).*|[，,；;]?\s*(?:但是?|不过)?(?:只|仅)(?:在|限|记|保存|保留)(?:今天|这次|本次|这个|脑|内存|心里|到).*`)

func remember(t *turn, m match) *step {
	if w := noteLimit().FindString(m.slots["t"]); w != "" {
		w = m.named(w)
		return &step{left: w, answer: t.localize(noteLimitText, w)}
	}
	text := strings.Join(strings.Fields(m.get("t")), " ")
	s := t.addLine(memoryFile, "- ", text)
	s.render = func(t *turn, _ result) string { return t.localize(savedText, text) }
	return s
}

// fillers are words that are not specific in a question.
var fillers = lazy(`(?i)'s\b|\b(?:\w\w?|the|mine|your?|our|about|that|this|what|when|where|which|who|was|were|are|did|does|have|has|had|say|said|told|know|` +
	`anything|everything|favou?rite|for|with|and|once|day)\b|[^\p{L}\p{N}]+|[我你的是吗了过在有呢和]|什么|哪[些天里儿]?|多少|关于|来着|时候|知道|最?喜欢|名字|事情?`)

// keys returns the specific words of a question.
func keys(question string) []string {
	return strings.Fields(fillers().ReplaceAllString(question, " "))
}

// recall searches notes for the specific words of a question. Without any it
// returns all notes.
func recall(t *turn, m match) *step {
	if len(m.all(pathMark)) > 0 || noFact().MatchString(m.get("q")) {
		return nil
	}
	q := m.get("q")
	words := keys(q)
	if len(words) > 0 && t.tools["memory_search"] {
		return t.search(q, func(t *turn, found []noteLine) string {
			if len(found) == 0 {
				return t.localize(blankText)
			}
			return t.localize(recallText, t.fence(cite(found)))
		})
	}
	s := callStep("read", "path", memoryFile)
	if len(words) > 0 {
		s = callStep("grep", "path", memoryFile, "pattern", strings.Join(words, "|"), "ignoreCase", true)
	}
	s.allowMissing = true
	s.render = func(t *turn, r result) string {
		notes := strings.Join(noteLines().FindAllString(numbered().ReplaceAllString(r.text, ""), -1), "\n")
		if notes == "" || r.failed {
			return t.localize(blankText)
		}
		return t.localize(recallText, t.fence(notes))
	}
	return s
}

// noFact matches what questions about the time are about.
var noFact = lazy(`(?i)^(?:is |are )?(?:it|today|tomorrow|yesterday|now|this|next|the (?:date|time|day))\b`)

// askNotes answers a question that no other row understands from the notes, if there is
// an answer in them.
func askNotes(t *turn, m match) *step {
	q := m.expand(m.text)
	if !t.tools["memory_search"] || !t.tools["memory_get"] || len(keys(q)) == 0 ||
		len(m.all(pathMark))+len(m.all(urlMark)) > 0 {
		return nil
	}
	return t.search(q, func(t *turn, found []noteLine) string {
		if found = slices.DeleteFunc(found, func(l noteLine) bool { return l.share < plausible }); len(found) == 0 {
			t.unable = true
			return t.localize(blankText) + "\n\n" + t.suggestions(unknownText)
		}
		return t.localize(recallText, t.fence(cite(found)))
	})
}

// why says where the latest answer from notes comes from.
func why(t *turn, m match) *step {
	q := cmp.Or(m.get("q"), t.asked.query)
	if len(keys(q)) == 0 {
		return &step{answer: t.localize(noSourceText)}
	}
	return t.search(q, func(t *turn, found []noteLine) string {
		if len(found) == 0 {
			return t.localize(blankText)
		}
		return t.localize(sourceText, t.fence(cite(found)))
	})
}

// forget shows the lines about something, and asks whether to remove them.
func forget(t *turn, m match) *step {
	q := cmp.Or(m.get("q"), t.asked.query)
	if len(keys(q)) == 0 || len(m.all(pathMark)) > 0 {
		return nil
	}
	return t.search(q, func(t *turn, found []noteLine) string {
		if found = slices.DeleteFunc(found, func(l noteLine) bool { return l.share < enough }); len(found) == 0 {
			return t.localize(blankText)
		}
		return t.localize(forgetText, t.fence(cite(found)))
	})
}

// Shares of the words of a request that a line must contain.
const (
	plausible = 0.3 // to answer a question that may be about something else
	enough    = 0.6 // to be removed
)

// accept removes the lines that the assistant proposed in its last message. Lines that
// were changed since then stay.
func accept(t *turn, _ match) *step {
	lines := t.asked.lines
	if len(lines) == 0 {
		return nil
	}
	s := &step{allowMissing: true, hidden: true}
	for _, l := range lines {
		if !slices.ContainsFunc(s.calls, func(c llm.ToolCall) bool { return result{call: c}.arg("path") == l.path }) {
			s.calls = append(s.calls, callStep("read", "path", l.path).calls...)
		}
	}
	gone := 0
	s.then = func(result) []llm.ToolCall {
		var edits []llm.ToolCall
		for _, r := range s.done {
			before, after, n := without(r, lines)
			if gone += n; n > 0 {
				// it cannot fail
				args, _ := json.Marshal(map[string]string{"path": r.arg("path"), "oldText": before, "newText": after})
				edits = append(edits, llm.ToolCall{Name: "edit", Args: args})
			}
		}
		if edits == nil {
			s.answer, s.unable = t.localize(stayText), true
		}
		return edits
	}
	s.render = func(t *turn, r result) string {
		if r.call.Name != "edit" {
			return ""
		}
		if gone == 1 {
			return t.localize(forgottenText, t.localize(oneLineText))
		}
		return t.localize(forgottenText, t.localize(linesText, strconv.Itoa(gone)))
	}
	return s
}

// without returns a part of a file that was read, which occurs once, with and without some
// of its lines, and their number.
func without(r result, lines []noteLine) (before, after string, n int) {
	page, _ := r.page()
	text := strings.Split(page, "\n")
	first, last := len(text), -1
	gone := map[int]bool{}
	for _, l := range lines {
		if i := l.number - 1; l.path == r.arg("path") && i < len(text) && strings.TrimSpace(text[i]) == l.text {
			gone[i], first, last = true, min(first, i), max(last, i)
		}
	}
	if last < 0 {
		return "", "", 0
	}
	first, last = max(first-1, 0), min(last+1, len(text)-1)
	part := strings.Join(text[first:last+1], "\n")
	if all := strings.Join(text, "\n"); strings.Count(all, part) > 1 {
		first, last, part = 0, len(text)-1, all
	}
	var kept []string
	for i := first; i <= last; i++ {
		if !gone[i] {
			kept = append(kept, text[i])
		}
	}
	return part, strings.Join(kept, "\n"), len(gone)
}

func decline(t *turn, _ match) *step {
	if len(t.asked.lines) == 0 {
		return nil
	}
	return &step{answer: t.localize(keptText)}
}

// remarks are what the assistant said before the turn.
type remarks struct {
	query string     // of the latest search in the notes
	lines []noteLine // that its last message proposes to remove
}

// hearOwn reads a message of the assistant.
func (e *remarks) hearOwn(m *llm.Message) {
	for _, c := range m.Calls() {
		if c.Name == "memory_search" {
			e.query = result{call: c}.arg("query")
		}
	}
	if text := m.PlainText(); text != "" {
		e.lines = nil
		for _, w := range []string{forgetText.en, forgetText.zh} {
			head, _, _ := strings.Cut(w, "\n")
			if _, rest, ok := strings.Cut(text, head+"\n"); ok {
				e.lines = readCited(rest)
			}
		}
	}
}

// noteLine is a line of a note.
type noteLine struct {
	path    string
	number  int
	changed string // date of the last change of the note
	text    string
	share   float64 // of the words of the question that it contains
}

// cite returns lines with their places.
func cite(lines []noteLine) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s:%d (%s): %s\n", l.path, l.number, l.changed, l.text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var citation = lazy(`(?m)^(\S[^\n]*?):(\d+) \((\d{4}-\d\d-\d\d)\): ([^\n]*)$`)

// readCited reads what cite wrote.
func readCited(text string) (lines []noteLine) {
	for _, g := range citation().FindAllStringSubmatch(text, maxShown) {
		n, err := strconv.Atoi(g[2])
		if err == nil && n > 0 {
			lines = append(lines, noteLine{path: g[1], number: n, changed: g[3], text: g[4]})
		}
	}
	return lines
}

// A hit of memory_search, as the tool shows it.
var hitHead = lazy(`(?m)^(\S[^\n]*):(\d+)-(\d+) \(score [\d.]+, changed (\d{4}-\d\d-\d\d)\)$`)

// Limits of a search.
const (
	maxRead  = 3    // passages that are read
	maxShown = 5    // lines that are shown
	minScore = 0.02 // of a passage; its lines are compared with the question again
)

// search returns a step that finds lines in the notes, and renders them with show.
func (t *turn) search(question string, show func(*turn, []noteLine) string) *step {
	var hits [][]string
	s := callStep("memory_search", "query", question, "minScore", minScore)
	s.then = func(r result) []llm.ToolCall {
		hits = hitHead().FindAllStringSubmatch(r.text, maxRead)
		var calls []llm.ToolCall
		for _, h := range hits {
			first, _ := strconv.Atoi(h[2]) // digits
			last, _ := strconv.Atoi(h[3])
			calls = append(calls,
				callStep("memory_get", "path", h[1], "from", max(first, 1), "lines", max(last-first+1, 1)).calls...)
		}
		if calls == nil {
			s.answer = show(t, nil)
		}
		return calls
	}
	s.render = func(t *turn, r result) string {
		if last := &s.done[len(s.done)-1]; r.call.ID != last.call.ID || len(hits) == 0 {
			return ""
		}
		var found []noteLine
		for i, h := range hits {
			if i+1 >= len(s.done) || s.done[i+1].failed {
				continue
			}
			first, _ := strconv.Atoi(h[2])
			for j, line := range strings.Split(noteText(s.done[i+1].text), "\n") {
				if line = strings.TrimSpace(line); line != "" {
					found = append(found, noteLine{path: h[1], number: first + j, changed: h[4], text: line})
				}
			}
		}
		return show(t, best(found, keys(question)))
	}
	return s
}

// noteText returns the text of a note in a result of memory_get, without the marks around
// one that was imported.
func noteText(s string) string {
	if !strings.HasPrefix(s, "<untrusted-content ") {
		return s
	}
	_, s, _ = strings.Cut(s, "\n---\n")
	s, _, _ = strings.Cut(s, "\n</untrusted-content ")
	return s
}

// best returns the lines that contain most of the words, or none if no line contains any.
func best(lines []noteLine, words []string) []noteLine {
	most := 0.0
	for i := range lines {
		lines[i].share = share(strings.ToLower(lines[i].text), words)
		most = max(most, lines[i].share)
	}
	lines = slices.DeleteFunc(lines, func(l noteLine) bool { return l.share == 0 || l.share < most*0.75 })
	slices.SortStableFunc(lines, func(a, b noteLine) int { return cmp.Compare(b.share, a.share) })
	return lines[:min(len(lines), maxShown)]
}

// share returns the share of the words that a text contains. Of a run of Chinese
// characters its pairs count.
func share(text string, words []string) float64 {
	sum := 0.0
	for _, w := range words {
		w = strings.ToLower(w)
		r := []rune(w)
		switch {
		case !isChinese(w) || len(r) == 1:
			if stem := strings.TrimSuffix(w, "s"); utf8.RuneCountInString(stem) > 2 && strings.Contains(text, stem) ||
				contains(text, w) {
				sum++
			}
		default:
			n := 0
			for i := range r[1:] {
				if strings.Contains(text, string(r[i:i+2])) {
					n++
				}
			}
			sum += float64(n) / float64(len(r)-1)
		}
	}
	return sum / float64(max(len(words), 1))
}

// contains reports whether a text contains a word, or a character that is one.
func contains(text, word string) bool {
	if isChinese(word) {
		return strings.Contains(text, word)
	}
	return slices.Contains(
		strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), word)
}
