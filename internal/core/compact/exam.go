package compact

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// Fact is something in a conversation that its summary must contain.
type Fact struct {
	Token    string // literally; "": most words of Sentence
	Sentence string // in which it is, shortened
	From     llm.Role
	Seq      int64 // of the newest entry with it
	score    int
}

// Exam is the result of looking for the facts of a conversation in its summary.
type Exam struct {
	Facts    int
	Found    int
	Missing  []Fact // the most important first
	Restored []string
	Left     int // missing facts that had no room
}

// Limits of an exam.
const (
	maxFacts    = 400 // that are looked for
	maxRestored = 120 // sentences
	maxSentence = 240 // bytes
	maxScanned  = 6000

	openSentences = 3 // of a request without an answer, besides questions
)

// The scores of facts. Recency and references add to them.
const (
	scoreMarked = 60 // instructions, decisions, promises, open requests
	scoreWish   = 36
	scoreID     = 30 // ids, links, paths, addresses
	scoreDate   = 28
	scoreAmount = 24
	scoreName   = 14
	scoreNumber = 10
)

// Facts extracts the facts of a conversation and of the summary before it, the most
// important first. open is set if the answer to the last message of the person is not
// part of the conversation. ids reports whether names, numbers and ids are facts, too.
func Facts(entries []session.Entry, previous string, open, ids bool) []Fact {
	x := extractor{ids: ids, at: map[string]int{}, from: fromSummary}
	if previous != "" {
		body, restored := Body(previous)
		for _, line := range restored { // what was put back once is not lost later
			var sentence string
			x.from, sentence = writer(line)
			x.add("", sentence, scoreWish)
			x.text(sentence, false)
		}
		x.from = fromSummary
		x.text(body, false)
	}
	openFrom := len(entries)
	if open {
		for i := len(entries) - 1; i >= 0 && openFrom == len(entries); i-- {
			if m := entries[i].Message; m.Role == llm.RoleUser && !strings.HasPrefix(m.PlainText(), llm.EventPrefix) {
				openFrom = i
			}
		}
	}
	for i := range entries {
		e := &entries[i]
		x.seq, x.age, x.from = e.Seq, 8*(i+1)/len(entries), e.Message.Role
		text := e.Message.PlainText()
		switch e.Message.Role {
		case llm.RoleTool:
			if len(text) > 400 { // output that nobody repeated in words is read again if it is needed
				continue
			}
			x.text(text, false)
		default:
			x.text(text, i == openFrom)
			for _, c := range e.Message.Calls() {
				x.args(Shorten(string(c.Args), maxArgs))
			}
		}
	}
	slices.SortFunc(x.facts, func(a, b Fact) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.Sentence, b.Sentence),
			cmp.Compare(a.Token, b.Token))
	})
	return x.facts[:min(len(x.facts), maxFacts)]
}

// fromSummary is the origin of facts of an earlier summary.
const fromSummary llm.Role = "summary"

// extractor collects facts.
type extractor struct {
	ids   bool
	facts []Fact
	refs  []int          // by index in facts: sentences that contain it
	at    map[string]int // fact → its index
	seq   int64
	age   int // 0: old; 8: new
	from  llm.Role
}

// text adds the facts of a text. Of an open request, the first sentences and the
// questions are facts.
func (x *extractor) text(s string, open bool) {
	if len(s) > maxScanned {
		x.text(head(s, maxScanned*2/3), open)
		x.text(tail(s, maxScanned/3), open)
		return
	}
	n := 0
	for sentence := range sentences(s) {
		score := marked(sentence, x.from)
		if n++; open && (n <= openSentences || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？")) {
			score = scoreMarked
		}
		if score > 0 {
			x.add("", sentence, score)
		}
		if !x.ids {
			continue
		}
		for _, t := range tokens(sentence) {
			x.add(t.text, sentence, t.score)
		}
	}
}

// args adds the ids, links and paths in the arguments of a call. Other numbers in them
// say how the call was made.
func (x *extractor) args(s string) {
	if !x.ids {
		return
	}
	for _, t := range tokens(s) {
		if t.score >= scoreID {
			x.add(t.text, s, t.score)
		}
	}
}

// add adds a fact, or a reference to a known one.
func (x *extractor) add(token, sentence string, score int) {
	switch x.from {
	case llm.RoleUser:
		score += 6
	case llm.RoleTool:
		score -= 8
	}
	key := token
	if key == "" {
		key = "\n" + sentence
	}
	i, known := x.at[key]
	if !known {
		i = len(x.facts)
		x.at[key] = i
		x.facts, x.refs = append(x.facts, Fact{Token: token}), append(x.refs, 0)
	}
	x.refs[i]++
	f := &x.facts[i]
	// The newest sentence of a person or the assistant is the one that is put back.
	if !known || x.from != llm.RoleTool || f.From == llm.RoleTool {
		f.Sentence, f.From = around(sentence, token), x.from
	}
	f.Seq = x.seq
	f.score = max(f.score, score+x.age+2*bits.Len(uint(x.refs[i])))
}

// Take looks for facts in a summary. Missing ones are put back as the sentences that
// contain them, within room bytes.
func Take(facts []Fact, summary string, room int) Exam {
	ex := Exam{Facts: len(facts)}
	paper := newPaper(summary)
	for _, f := range facts {
		if paper.has(f) {
			ex.Found++
		} else {
			ex.Missing = append(ex.Missing, f)
		}
	}
	back := newPaper("")
	for _, f := range ex.Missing {
		if back.has(f) { // in a sentence that was put back for another fact
			continue
		}
		line := author(f.From) + oneLine(neutral(f.Sentence))
		if len(ex.Restored) >= maxRestored || room < len(line)+3 {
			ex.Left++
			continue
		}
		room -= len(line) + 3
		ex.Restored = append(ex.Restored, line)
		back.add(line)
	}
	return ex
}

// writer splits a line that was put back into the author and the sentence; see author.
func writer(line string) (llm.Role, string) {
	for _, r := range [...]llm.Role{llm.RoleUser, llm.RoleTool, llm.RoleAssistant} {
		if s, ok := strings.CutPrefix(line, author(r)); ok {
			return r, s
		}
	}
	return fromSummary, line
}

// author returns the beginning of a line that was put back.
func author(r llm.Role) string {
	switch r {
	case llm.RoleUser:
		return "user: "
	case llm.RoleTool:
		return "tool: "
	case fromSummary:
		return ""
	}
	return "assistant: "
}

// paper is a text in which facts are looked for.
type paper struct {
	text  string // lower case, one space between words
	words map[string]bool
}

func newPaper(s string) *paper {
	p := &paper{words: map[string]bool{}}
	p.add(s)
	return p
}

func (p *paper) add(s string) {
	s = strings.ToLower(oneLine(s))
	p.text += "\n" + s
	for w := range keywords(s) {
		p.words[w] = true
	}
}

// has reports whether the text contains a fact.
func (p *paper) has(f Fact) bool {
	if f.Token != "" {
		return containsToken(p.text, strings.ToLower(oneLine(f.Token)))
	}
	s := strings.ToLower(oneLine(f.Sentence))
	if strings.Contains(p.text, s) {
		return true
	}
	all, found := 0, 0
	for w := range keywords(s) {
		all++
		if p.words[w] {
			found++
		}
	}
	return all > 0 && found*10 >= all*7
}

// containsToken reports whether s contains t, and not within a longer number or word.
func containsToken(s, t string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], t)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(t)
		if (i == 0 || !joins(s[i-1], t[0])) && (end == len(s) || !joins(s[end], t[len(t)-1])) {
			return true
		}
		from = i + 1
	}
}

// joins reports whether the bytes a and b belong to one word.
func joins(a, b byte) bool { return alnum(a) && alnum(b) }

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// around returns a sentence, or, if it is long, the part around a token.
func around(sentence, token string) string {
	if len(sentence) <= maxSentence {
		return sentence
	}
	i := max(strings.Index(sentence, token), 0)
	from := max(0, min(i-maxSentence/2, len(sentence)-maxSentence))
	to := min(len(sentence), max(from+maxSentence, i+len(token)))
	s := head(tail(sentence, len(sentence)-from), to-from)
	if from > 0 {
		s = "…" + s
	}
	if to < len(sentence) {
		s += "…"
	}
	return s
}
