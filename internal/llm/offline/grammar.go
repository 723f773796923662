package offline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row is an intent: how it is said, and what is done for it.
type row struct {
	intent   string
	example  words // for help; empty: not listed
	patterns []string
	// make returns the step, nil when the row does not fit after all.
	make func(t *turn, m match) *step
	// talk rows take a whole message, never a part of one.
	talk bool
	// greedy rows have free text, in which "and" joins no requests.
	greedy bool
}

// grammar is the compiled table.
type grammar struct {
	rows  []row
	forms [][]form        // by row
	vocab map[string]bool // words of the patterns, for typing mistakes
}

// match is a clause that fits a pattern.
type match struct {
	clause
	groups map[string]string
	at     *topic
}

// topic is what a request said so far.
type topic struct {
	path string // the file that "it" stands for
}

// get returns a group as the person wrote it, without marks of quotation.
func (m match) get(name string) string { return clean(m.expand(m.groups[name])) }

// has reports whether a group holds something.
func (m match) has(name string) bool { return strings.TrimSpace(m.groups[name]) != "" }

// clean takes blanks and what is left of punctuation off a slot.
func clean(s string) string {
	s = strings.Trim(s, " \t\n,，:：;；。、")
	for _, q := range []string{`""`, "''", "``", "“”", "‘’", "「」"} {
		r := []rune(q)
		if rest, ok := strings.CutPrefix(s, string(r[0])); ok && len(s) > len(string(r[0])) {
			if in, ok := strings.CutSuffix(rest, string(r[1])); ok {
				return in
			}
		}
	}
	return s
}

// macros stand for parts of patterns.
var macros = strings.NewReplacer(
	"{P}", `[\x{E000}-\x{E0FF}]`, "{Q}", `[\x{E100}-\x{E1FF}]`, "{U}", `[\x{E200}-\x{E2FF}]`, "{C}", `[\x{E300}-\x{E3FF}]`,
	"{X}", `[\x{E000}-\x{E1FF}\x{E300}-\x{E3FF}]`,
	"{see}", `(?:show|open|read|display|cat|print|view|see|look|check|examine|inspect|output|dump|get|give|load|pull up|bring up|review|type|less|peek|take a|have a|go through|let me|tell me|fetch|present|reveal|i want to (?:see|read|know)|i'd like to (?:see|read|know))`,
	"{看}", `(?:看看|看一看|看一下|看下|瞧瞧|瞅瞅|查看|查阅|读取|读一下|读读|阅读|读出|读|打开|显示|展示|输出|打印|念|看|预览|浏览|cat)`,
	"{里}", `(?:里面|里边|里头|里|之中|中|下面|下边|下|内部|内|上)`,
	"{夹}", `(?:文件夹|目录|子目录|路径)`,
	"{dir}", `(?:the |this |my |our )?(?:folder |directory |dir )?(?:[\w./~\-]+|[\x{E000}-\x{E1FF}])(?: (?:folder|directory|dir|files?|project|repo|package|module|source|code|tree|workspace))*`,
	"{text}", `(?:(?:the|a|an) )?(?:(?:exact )?(?:words?|text|typo|strings?|phrase|pattern|term|keyword|expression|lines?|sentence) )?`,
)

// form is a pattern of a row. It is compiled when it is tried first.
type form struct {
	lazily
	chinese bool // it fits no text without Chinese
}

// compile builds the grammar.
func compile() *grammar {
	g := &grammar{rows: table(), vocab: map[string]bool{}}
	word, short := regexp.MustCompile(`[a-z]{4,}`), regexp.MustCompile(`[a-z]{3,}`)
	syntax := regexp.MustCompile(`\?P<\w+>|\\p\{Han\}|\{\w+\}`)
	for _, r := range g.rows {
		var forms []form
		for _, p := range r.patterns {
			plain := syntax.ReplaceAllString(p, "")
			chinese := langOf(p) == chinese && !short.MatchString(plain)
			p = macros.Replace(p)
			for _, w := range word.FindAllString(p, -1) {
				g.vocab[w] = true
			}
			forms = append(forms, form{lazy("(?is)" + unique(p)), chinese})
		}
		g.forms = append(g.forms, forms)
	}
	for _, w := range strings.Fields("with that this from then what where have into named called please could would about there which when your") {
		g.vocab[w] = true
	}
	return g
}

// unique makes the names of groups unique, as regexp wants them: the second q
// is q__2.
func unique(p string) string {
	seen := map[string]int{}
	return forms().groupName.ReplaceAllStringFunc(p, func(g string) string {
		name := g[4 : len(g)-1]
		if seen[name]++; seen[name] > 1 {
			return "(?P<" + name + "__" + strconv.Itoa(seen[name]) + ">"
		}
		return g
	})
}

// parse returns the step that a clause asks for, nil when it is not
// understood.
func (g *grammar) parse(t *turn, c clause, at *topic, talk bool) (*step, *row) {
	soft := c.polish()
	han := langOf(c.text) == chinese
	for _, v := range []clause{soft, c.with(strings.TrimSpace(c.text)), soft.with(g.infinitive(soft.text)), soft.with(g.spelled(soft.text))} {
		if v.text == "" {
			continue
		}
		for i := range g.rows {
			if g.rows[i].talk && !talk {
				continue
			}
			for _, f := range g.forms[i] {
				if f.chinese && !han {
					continue
				}
				m := f.get().FindStringSubmatch(v.text)
				if m == nil {
					continue
				}
				groups := map[string]string{}
				for j, name := range f.get().SubexpNames() {
					if name != "" && m[j] != "" {
						name, _, _ = strings.Cut(name, "__")
						groups[name] = m[j]
					}
				}
				if s := g.rows[i].make(t, match{v, groups, at}); s != nil {
					s.intent = g.rows[i].intent
					return s, &g.rows[i]
				}
			}
		}
	}
	return nil, nil
}

// spelled returns a text with typing mistakes in known words mended, "" when
// there are none.
func (g *grammar) spelled(text string) string {
	out := forms().latinWord.ReplaceAllStringFunc(text, func(w string) string {
		low := strings.ToLower(w)
		if g.vocab[low] || low != w && strings.ToUpper(w) == w || len(w) == 3 && slices.Contains(shortWords, low) {
			return w
		}
		best := ""
		for k := range g.vocab {
			if near(low, k) && (best == "" || k < best) {
				best = k
			}
		}
		if best == "" {
			return w
		}
		return best
	})
	if out == text {
		return ""
	}
	return out
}

// shortWords are words of three letters that are no mistyped longer ones.
var shortWords = strings.Fields("the and for you are can how was has did not any all get put run add new out its let use see who why say our one two")

// infinitive returns a text that begins with "showing" with "show" in its
// place, "" for others.
func (g *grammar) infinitive(text string) string {
	word, rest, _ := strings.Cut(text, " ")
	stem, ok := strings.CutSuffix(strings.ToLower(word), "ing")
	if !ok || len(stem) < 3 {
		return ""
	}
	if !g.vocab[stem] && g.vocab[stem+"e"] {
		stem += "e"
	} else if n := len(stem); stem[n-1] == stem[n-2] && !g.vocab[stem] {
		stem = stem[:n-1]
	}
	return stem + " " + rest
}

// near reports whether one letter was mistyped, left out, doubled or swapped.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a[0] != b[0] {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	return i == len(a) || a[i+1:] == b[i+1:] ||
		i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// maxRequest bounds a request that is looked at, in bytes: what is longer is a
// document and not a plain request.
const maxRequest = 8 << 10

// plan makes the steps of a request, in groups that follow one another.
func plan(g *grammar, t *turn, text string) [][]*step {
	if len(text) > maxRequest {
		return [][]*step{{{intent: "unknown", answer: t.say(unknownText)}}}
	}
	c := normal(text)
	at := &topic{path: t.lastPath()}
	if p := g.followUp(t, c, at); p != nil {
		return p
	}
	if steps := g.split(t, c, at, forms().strongSplit, false); steps != nil {
		return steps
	}
	if s, _ := g.parse(t, c, at, true); s != nil {
		if more := g.joined(t, c, s); more != nil {
			return more
		}
		return [][]*step{{s}}
	}
	if more := g.split(t, c, &topic{path: t.lastPath()}, forms().weakSplit, true); more != nil {
		return more
	}
	return [][]*step{{{intent: "unknown", answer: t.say(unknownText)}}}
}

// joined splits what was understood as one request into several when all the
// parts are understood, too.
func (g *grammar) joined(t *turn, c clause, s *step) [][]*step {
	if i := slices.IndexFunc(g.rows, func(r row) bool { return r.intent == s.intent }); i >= 0 && g.rows[i].greedy && len(c.all(quoteMark)) == 0 {
		return nil
	}
	return g.split(t, c, &topic{path: t.lastPath()}, forms().weakSplit, true)
}

// split plans the parts of a request. With all set every part must be
// understood; without, the first must be, and the others are owned up to.
func (g *grammar) split(t *turn, c clause, at *topic, by *regexp.Regexp, all bool) [][]*step {
	parts := cutAt(c, by)
	if len(parts) < 2 || len(parts) > maxParts {
		return nil
	}
	var steps []*step
	var of []clause
	for i := range parts {
		s, r := g.parse(t, parts[i], at, false)
		switch {
		case s != nil && s.ask != "" && all:
			return nil
		case s == nil && i > 0 && !all && steps[len(steps)-1].open:
			return nil // free text that holds a joining word
		case s == nil && (all || i == 0):
			return nil
		case s != nil && slices.ContainsFunc(steps, s.same):
			continue
		case s == nil:
			s = &step{intent: "unknown", answer: t.say(partText, clip(parts[i].expand(parts[i].text), 200))}
		}
		s.open = r != nil && (r.greedy || (r.intent == "write" || r.intent == "append") && len(parts[i].all(quoteMark)) == 0)
		steps, of = append(steps, s), append(of, parts[i])
	}
	if all {
		return groups(steps)
	}
	var out [][]*step
	for i, s := range steps {
		// A part may itself be several requests.
		if s.intent != "unknown" && !s.open {
			if more := g.split(t, of[i], &topic{path: at.path}, forms().weakSplit, true); more != nil {
				out = append(out, more...)
				continue
			}
		}
		out = append(out, []*step{s})
	}
	return out
}

// maxParts bounds the parts of a request.
const maxParts = 20

// cutAt splits a clause, without empty parts.
func cutAt(c clause, by *regexp.Regexp) []clause {
	var parts []clause
	for _, text := range by.Split(c.text, -1) {
		if p := c.with(text).polish(); strings.Trim(p.text, " \t.,，。!！?？") != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// groups puts steps that only read side by side.
func groups(steps []*step) [][]*step {
	var out [][]*step
	for i, s := range steps {
		if i > 0 && s.reads() && steps[i-1].reads() {
			out[len(out)-1] = append(out[len(out)-1], s)
			continue
		}
		out = append(out, []*step{s})
	}
	return out
}

// same reports whether two steps ask for the same look at something.
func (s *step) same(o *step) bool {
	return s.intent == o.intent && s.reads() && o.reads() && s.about == o.about
}

// reads reports whether a step only looks.
func (s *step) reads() bool {
	for _, c := range s.calls {
		switch c.tool {
		case "read", "ls", "grep", "find", "session_status", "memory_search":
		default:
			return false
		}
	}
	return s.then == nil && len(s.calls) > 0
}

var slotAsked = []words{askFile, askText, askName, askCommand, askContent, askNote, askURL, askTask}

// followUp plans what refers to the conversation before: again, more, the
// second one, and the answer to a question.
func (g *grammar) followUp(t *turn, c clause, at *topic) [][]*step {
	soft := c.polish()
	switch {
	case forms().againForm.MatchString(soft.text):
		return g.again(t)
	case forms().moreForm.MatchString(soft.text):
		return [][]*step{{t.more()}}
	}
	if m := forms().nthForm.FindStringSubmatch(soft.text); m != nil {
		return [][]*step{{t.nth(m[1:])}}
	}
	if len(t.past) == 0 {
		return nil
	}
	prev := t.past[len(t.past)-1]
	asked := slices.ContainsFunc(slotAsked, func(w words) bool {
		return strings.HasSuffix(prev.reply, w.en) || strings.HasSuffix(prev.reply, w.zh)
	})
	if s, _ := g.parse(t, c, &topic{path: at.path}, true); !asked || s != nil && s.ask == "" && !bare(c) {
		return nil
	}
	joined := normal(prev.text)
	full := normal(joined.expand(joined.polish().text) + " " + c.expand(soft.text))
	if s, _ := g.parse(t, full, at, true); s != nil && s.ask == "" {
		return [][]*step{{s}}
	}
	return nil
}

// bare reports whether a clause is one named thing and nothing else.
func bare(c clause) bool {
	r := []rune(c.polish().text)
	return len(r) == 1 && r[0] >= pathMark && r[0] < codeMark+markRange
}

// again plans the last request that was none itself.
func (g *grammar) again(t *turn) [][]*step {
	for i := len(t.past) - 1; i >= 0; i-- {
		text := t.past[i].text
		if soft := normal(text).polish(); text == "" || forms().againForm.MatchString(soft.text) {
			continue
		}
		old := *t
		old.past, old.exchange.text = t.past[:i], text
		old.lang = langOf(text)
		return plan(g, &old, text)
	}
	return [][]*step{{{intent: "again", answer: t.say(noAgainText)}}}
}
