package offline

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// isChinese reports whether a text contains Chinese.
func isChinese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// Each entity in a request is replaced by one private-use character, so that
// patterns match only words.
const (
	pathMark  = 0xe000 // a path
	quoteMark = 0xe100 // a quoted text
	urlMark   = 0xe200 // a URL
	codeMark  = 0xe300 // a text in backticks
	markRange = 0x100
)

// clause is a request or a part of one, with marks.
type clause struct {
	text     string
	entities *[]entity // the entities of the marks
}

type entity struct{ text, written string } // text without and written with its delimiters

func (c clause) with(text string) clause { return clause{text, c.entities} }

// lazy returns a function that compiles the expression on first use, to keep
// the start fast.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	// entityForm finds entities, the most specific form first. Its groups are
	// the entities without delimiters, in the order of entityKinds.
	entityForm = lazy("(?is)```(?:[a-z]*\n)?(.+?)```|`([^`\n]+)`" + `|[:：]\s*\n(.+)$` +
		`|"([^"\n]*)"|“([^”]*)”|‘([^’]*)’|「([^」]*)」|《([^》]*)》|\B'([^'\n]*)'\B` +
		`|\b((?:https?://|www\.)[^\s<>"'“”，。！？；、（）\p{Han}]*[^\s<>"'“”，。！？；、（）\p{Han}.,:;!?)])` +
		`|\b((?:[a-z][a-z0-9\-]*\.)+(?:com|org|net|io|dev|cn|edu|gov)\b(?:/[\w./?=&%\-]*\w)?)` +
		`|([\p{Han}\w\-]*\p{Han}[\p{Han}\w\-]*\.[a-z][a-z0-9]{0,5}|[\w~.*\-+@/]*/\p{Han}[\p{Han}\w./\-]*)|((?:\bskills:)?[\w~.*/\-][\w~.*/\-+@]*)`)
	entityKinds = [...]rune{codeMark, codeMark, quoteMark, quoteMark, quoteMark, quoteMark,
		quoteMark, quoteMark, quoteMark,
		urlMark, urlMark, pathMark, pathMark}
	anyMark    = lazy(`[\x{E000}-\x{E3FF}]`)
	pathMarks  = lazy(`[\x{E000}-\x{E0FF}]`)
	quoteMarks = lazy(`[\x{E100}-\x{E1FF}\x{E300}-\x{E3FF}]`)
	pathForm   = lazy(`(?i)^(?:\.?[\w\-+*]+(?:\.[\w\-]+)*\.[a-z][a-z0-9]{0,9}|\.[a-z][\w\-]+|readme|makefile|dockerfile|license|changelog|` +
		`\.\.?|~|/|\./\.\.\.|skills:[\w./\-]+|[\w~.*\-+@/]*/[\w~.*\-+@/\p{Han}]*[a-z\p{Han}][\w~.*\-+@/\p{Han}]*|[\p{L}\w\-]+(?: [\p{L}\w\-]+){0,4}\.[a-z]{2,4})$`)
	noPath = lazy(`(?i)^(?:e\.g|i\.e|a\.m|p\.m|and/or|yes/no|he/she|n/a|tcp/ip|i/o|//.*)$`)
	// The words before a name in Chinese, and the end of a folder's name.
	beforeName = lazy(`^.*(?:知道|[帮给]我|一下|看看|看下|读读|读取|打开|查看|显示|展示|[创新]建|建立|生成|编辑|修改|删除|搜索|查找|` +
		`[写存放加记][到成为进入]|保存|追加|添加|一[个份]|有个|如果|一旦|只要|要是|监[视控测听]|关注|盯[着住]?|留意|叫做?|名为|里的|文件|我的|这个|那个|和|与|、)|^[请把将当在往向从给叫读看写的个我到]+`)
	afterName = lazy(`^(\S*?/\p{Han}+?)(?:目录|文件夹|里|下面|中|的|有|$)`)
)

// markEntities replaces the entities of a text by marks.
func markEntities(text string) clause {
	text = anyMark().ReplaceAllString(text, " ")
	c, at := clause{entities: new([]entity)}, 0
	for _, m := range entityForm().FindAllStringSubmatchIndex(text, markRange) {
		g := 1
		for m[2*g] < 0 {
			g++
		}
		kind, from, to := entityKinds[g-1], m[0], m[1]
		name := text[m[2*g]:m[2*g+1]]
		if kind == pathMark {
			a, z := findPath(name)
			from, to, name = from+a, from+z, name[a:z]
		} else if kind == quoteMark && pathForm().MatchString(name) {
			kind = pathMark
		}
		if from == to {
			continue
		}
		c.text += text[at:from] + string(kind+rune(len(*c.entities)))
		*c.entities = append(*c.entities, entity{name, text[from:to]})
		at = to
	}
	c.text += text[at:]
	return c
}

// findPath returns the position of the path in a token, or 0, 0.
func findPath(s string) (from, to int) {
	if m := afterName().FindStringSubmatch(s); m != nil {
		return 0, len(m[1])
	}
	if from = len(beforeName().FindString(s)); isChinese(s) && s[from] != '.' {
		return from, len(s)
	}
	if to = len(s); !strings.HasSuffix(s, "..") && s != "." {
		to = len(strings.TrimRight(s, "."))
	}
	if !isChinese(s) && !pathForm().MatchString(s[:to]) || noPath().MatchString(s[:to]) {
		return 0, 0
	}
	return 0, to
}

// expand replaces marks by their entities. A single mark becomes the entity's
// text; within a text its delimiters are kept.
func (c clause) expand(s string) string {
	single := anyMark().FindString(s) == strings.TrimSpace(s)
	return anyMark().ReplaceAllStringFunc(s, func(mark string) string {
		t := (*c.entities)[int([]rune(mark)[0]-pathMark)%markRange]
		if single {
			return t.text
		}
		return t.written
	})
}

// all returns the entities of a kind, in order.
func (c clause) all(kind rune) []string {
	var out []string
	for _, r := range c.text {
		if r >= kind && r < kind+markRange {
			out = append(out, (*c.entities)[r-kind].text)
		}
	}
	return out
}

// Phrases around a request.
var (
	politeHead = lazy(
		`(?i)^(?:(?:first(?: of all)?|please|pls|plz|kindly|hey|hi|hello|ok(?:ay)?|so|well|now|just|also|then|and|chela|` +
			`(?:could|can|may) i(?: please)?|(?:could|can|would|will) (?:you|u)(?: be so kind(?: as)? to| mind| possibly)?|do you mind|` +
			`would you be able to|(?:i'd|i would) (?:like|love|want|need)(?: for)?(?: you)?(?: to)?|i (?:want|need|wish)(?: you)? to|i wanna|` +
			`let'?s|let us|go ahead and|help me(?: to)?|try to|quickly|(?:i was wondering|i wonder) (?:if you could)?|` +
			`(?:tell me|let me know|find out|do you know|i wonder) (?:if|whether)?|(?:check|see|look|verify) (?:if|whether)|if (?:(?:it|that)(?:'?s| is) )?(?:possible|ok(?:ay)?|you (?:can|could|have time)))(?:[\s,:]+|$)|` +
			`(?:(?:如果|要是)?(?:可以|方便|有空|有时间|可能)的话|首先|先|请问|麻烦你?(?:一下)?|拜托你?|劳驾|帮我|帮忙|帮|请你?|能不能|能否|可不可以|你?可以|你能|那么|现在|给我|` +
			`我(?:想要?|要|需要)(?:让你|请你|你)?|不知道|再)[\s,，:：]*)`)
	politeTail = lazy(`(?i)(?:[\s,，]+(?:please|pls|plz|thanks(?: a lot)?|thank you|thx|for me|if you (?:can|could|have time)|if (?:it'?s |that'?s )?possible|would you|right now|now|ok(?:ay)?)|` +
		`[\s,，]*(?:好吗|可以吗|行吗|好不好|谢谢你?|谢了|吧|呗|呢|吗|嘛|啊|呀|哦|[\s.!?。！？~]))+$`)
	strongSplit = lazy(
		`(?i)[\s,;，；。.]*(?:\b(?:and then|then|after that|afterwards|and finally|finally)\b|然后再?|接着再?|随后|之后再|最后再|` +
			`[写做弄]完(?:后|之后|了)?|完成后|[，,]\s*再|[;；\n]+|[.!?]\s+|[。！？])[\s,，]*`)
	weakSplit = lazy(`(?i)\s*(?:,?\s+(?:and|&)(?: also)?\s+|,\s+|，|并且|同时|以及|顺便|并)\s*`)
	// Parts that request nothing.
	noRequest = lazy(`(?i)^(?:(?:and )?(?:tell|show|give) me (?:the |what |its )?(?:results?|output|text|it prints|happens)|i (?:told|said)\b.*|` +
		`把?(?:结果|输出)?告诉我?(?:一下)?(?:结果|输出)?|(?:给我)?看看?(?:结果|输出)|改一下|我们.*继续)$`)
)

// stripPoliteness removes polite phrases from a clause.
func (c clause) stripPoliteness() clause {
	for before := ""; before != c.text; {
		before = c.text
		c.text = strings.TrimSpace(c.text)
		if n := len(politeHead().FindString(c.text)); n < len(c.text) {
			c.text = c.text[n:]
		}
		if loc := politeTail().FindStringIndex(c.text); loc != nil && loc[0] > 0 {
			c.text = c.text[:loc[0]]
		}
	}
	return c
}

// split splits a clause into parts that request something.
func (c clause) split(by *regexp.Regexp) []clause {
	var parts []clause
	for _, text := range by.Split(c.text, maxParts) {
		if p := c.with(text).stripPoliteness(); strings.Trim(p.text, " \t.,，。!！?？") != "" &&
			!noRequest().MatchString(p.text) {
			parts = append(parts, p)
		}
	}
	return parts
}
