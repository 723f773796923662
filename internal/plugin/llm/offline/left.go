package offline

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// gapForm finds what stands for any text in a pattern. If it is not a slot, it becomes a
// group without a name: a gap, whose words the plan does not use.
var gapForm = lazy(`(>)?((?:\.|\[\^\\x\{E000\}-\\x\{E3FF\}\])(?:\*|\{0,\d+\})\??)`)

// withGaps returns a pattern whose gaps are groups without names.
func withGaps(pattern string) string {
	return gapForm().ReplaceAllStringFunc(pattern, func(s string) string {
		if strings.HasPrefix(s, ">") {
			return s
		}
		return "(" + s + ")"
	})
}

// reading is what a plan has used of a match.
type reading struct {
	marks   string           // the entities
	dropped []string         // parts of slots that it did not use
	known   []*regexp.Regexp // words that it has understood by itself
}

// knows says that the plan has understood the words of an expression wherever they are.
func (m match) knows(e *regexp.Regexp) { m.read.known = append(m.read.known, e) }

// all returns the entities of a kind, which the plan uses, in order.
func (m match) all(kind rune) []string {
	for _, r := range m.text {
		if r >= kind && r < kind+markRange {
			m.read.marks += string(r)
		}
	}
	return m.clause.all(kind)
}

// outside returns the parts of a clause that belong to no slot of a match.
func outside(form *regexp.Regexp, at []int, text string) []string {
	out := []string{text[:at[0]], text[at[1]:]}
	names := form.SubexpNames()
	for i := 1; i < len(names); i++ {
		if names[i] == "" && at[2*i] >= 0 && !inSlot(names, at, i) {
			out = append(out, text[at[2*i]:at[2*i+1]])
		}
	}
	return out
}

// inSlot reports whether a group is a part of a slot.
func inSlot(names []string, at []int, group int) bool {
	for i, name := range names {
		if name != "" && at[2*i] >= 0 && at[2*i] <= at[2*group] && at[2*group+1] <= at[2*i+1] {
			return true
		}
	}
	return false
}

// left returns the words of a clause that carry meaning and that a plan has not used, or "".
func (m match) left(r *row, parts []string) string {
	if r.wholeMessage || r.checks {
		return ""
	}
	if r.words != "" {
		m.knows(r.known())
	}
	if r.freeText {
		for _, p := range parts {
			if w := limits().FindString(p); w != "" {
				return strings.TrimSpace(w)
			}
		}
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(m.slots)) {
		if w := slotLimits().FindString(m.slots[name]); w != "" && name != "p" {
			return m.named(w)
		}
	}
	for _, p := range append(parts, m.read.dropped...) {
		if w := m.meaning(p); w != "" {
			return m.named(p)
		}
	}
	for _, mark := range anyMark().FindAllString(m.text, -1) {
		if !strings.Contains(m.read.marks, mark) {
			return m.named(mark)
		}
	}
	return ""
}

// named returns a part of a clause for a reply.
func (c clause) named(part string) string {
	part = strings.Trim(part, " \t\n,.;:，。；：、!?！？")
	return clip(cmp.Or(anyMark().ReplaceAllStringFunc(part, func(mark string) string {
		return (*c.entities)[int([]rune(mark)[0]-pathMark)%markRange].written
	}), part), 120)
}

// meaning returns the words of a part of a clause that the plan has not used and that are not
// fillers, and the entities that it has not used.
func (m match) meaning(part string) string {
	for _, known := range m.read.known {
		part = known.ReplaceAllString(part, " ")
	}
	part = anyMark().ReplaceAllStringFunc(part, func(mark string) string {
		if strings.Contains(m.read.marks, mark) {
			return " "
		}
		return mark
	})
	return meaning(part)
}

// meaning returns a text without its fillers.
func meaning(text string) string {
	text = plainHan().ReplaceAllString(strings.ToLower(text), " ")
	text = noWord().ReplaceAllString(plainWords().ReplaceAllString(text, " "), " ")
	return strings.Join(slices.DeleteFunc(strings.Fields(text), misspelt), " ")
}

// misspelt reports whether a word is a frequent one with its letters in another order.
func misspelt(word string) bool {
	letters := func(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }
	return slices.ContainsFunc([]string{"show", "open", "read", "list", "what", "file", "files", "folder", "please",
		"content", "contents", "text"}, func(w string) bool {
		return len(w) == len(word) && w[0] == word[0] && letters(w) == letters(word)
	})
}

var (
	// plainWords are fillers, and words that intents expect anyway, such as verbs.
	plainWords = lazy(`(?i)\b(?:an?|the|this|that|these|those|it|its|my|our|your|i|i'm|i'd|me|we|us|you|they|them|their|is|are|am|was|be|being|been|do|does|did|have|has|had|got|` +
		`can|could|would|will|want|need|like|please|thanks|of|in|on|at|to|into|from|for|with|by|about|inside|within|under|through|as|and|also|too|just|so|now|here|there|there's|ok|okay|` +
		`what|what's|whats|where|which|hey|hi|hello|chela|any|some|all|every|everything|anything|s|` +
		`files?|folders?|director(?:y|ies)|dir|documents?|notes?|text|contents?|code|scripts?|words?|lines?|strings?|pages?|site|website|web|url|link|command|called|named|name|` +
		`show|see|read|open|view|display|print|cat|look|pull|up|give|get|check|find|know|tell|let|list|say|says|take|put|make|go|please|visit|browse|wonder|exist)\b`)
	// The same in Chinese.
	plainHan = lazy(`有没有|出来|下来|列出|读取|东西|瞅瞅?|瞧瞧?|念|结果|是不是|能不能|可不可以|知道|帮忙|帮我|帮|麻烦|拜托|一下子?|一遍|一声|一[个份]|[这那]个|[这那]些|里面?|里头|其中|当中|下面|底下|上面?|文件夹?|目录|文档|文本|文字|内容|网页|页面|网站|网址|链接|脚本|代码|命令|指令|名字|名称|` +
		`看看|读读|打开|显示|展示|查看|查找|告诉|什么|哪些|哪里|所有|全部|现在|当前|我们?|你们?|您|它|请|给|想|要|把|将|从|在|往|向|到|对|和|与|跟|及|的|地|得|了|着|过|呢|吗|吧|啊|呀|哦|嘛|是|有|叫|去|来|都|也|就|再|还|看|读|找|列|个|中|下|些|点|啥|写|用|说`)
	noWord = lazy(`[\s\pP\pS]+`)

	// limits are words that deny or limit a request.
	limits = lazy(`(?i)\b(?:don'?t|do not|not|never|unless|except|excluding|if|only|but|without|until|till|instead)\b|不|别|勿|无需|甭|除|如果|要是|假如|若|只|仅|直到`)
	// slotLimits are limits in a text that is not quoted.
	slotLimits = lazy(`(?i)[\s,](?:unless|except|only (?:if|when|for)|if (?:it|the|there|that|this|not|possible)|but (?:not|don'?t|do not|never|only|without)|without \w+ing)\b.*|(?:除非|如果|要是|但是?(?:不要?|别|勿|只)).*|.{0,20}(?:除外|例外)`)
)

// refuse returns the step for a request that was understood only in part.
func (t *turn) refuse(s *step) *step {
	w := leftText
	if denials().MatchString(s.left) {
		w = deniedText
	}
	answer := cmp.Or(s.answer, t.localize(w, "“"+s.left+"”"))
	return &step{row: s.row, answer: answer, unable: true, left: s.left}
}

var (
	// denialStart finds the negation that a request begins with.
	denialStart = lazy(`(?i)^(?:please\s+)?(?:(?:don'?t|do not|never|must not|i (?:don'?t|do not) (?:want|need) you to)\b|(?:请|先|千万|我|你|可|就|绝对)*(?:不要|别|勿|无需|不用|不想|不许|不必|不希望))`)
	denials     = lazy(`(?i)^(?:please )?(?:don'?t|do not|not|never)\b|^\p{Han}{0,4}?(?:不要?|别|勿|无需|甭)`)
	leftText    = localized{
		"I did nothing, because I did not understand %s in this request, and I do a request only as a whole. Put text that is meant literally in quotation marks, or say \"help\" to see what I can do.",
		"什么都没有做：这个请求里的%s我没听懂，只做一部分不行。如果是原文，请放在引号里；输入“帮助”可以看到我会做什么。",
	}
	deniedText = localized{
		"I did nothing, because the request says %s. If something is to be done, say it without a negation.",
		"什么都没有做，因为请求里说了%s。需要我做的事，请直接说。",
	}
)
