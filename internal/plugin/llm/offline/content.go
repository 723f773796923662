package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	// Words after which a text is meant literally.
	literalHead = lazy(`(?i)(?:\b(?:say(?:s|ing)?|reads?|reading|texts?|contents?|words?|lines?|following|of)|[:：]|内容(?:为|是)?|文字(?:为|是)?|文本(?:为|是)?)\s*$`)
	// Words with which the description of a text begins.
	describedHead = lazy(`(?i)^(?:today'?s|tomorrow'?s|yesterday'?s|tonight'?s|current|latest|an?|the|my|your|our|some|all|any|several|many|another|each|every|random|\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\s+\S`)
	theHead       = lazy(`(?i)\b(?:an?|the|my|some|all|this)\s+$`)
	// The same in Chinese, which has measure words and puts the noun at the end.
	describedHan = lazy(`^(?:[一两二三四五六七八九十几多]|\d+)\s*(?:[首篇个份段封条项张种句些行则道]|\p{Han}*的)|^(?:一些|几个|所有|全部|我的)|` +
		`(?:列表|清单|总结|摘要|概要|报告|介绍|翻译|译文|作文|诗歌?|故事|脚本|函数|代码|文章|笑话|计划)$`)
)

// poemHan is a text in Chinese that is a description also after 内容是: nobody wants a file
// with these words.
var poemHan = lazy(
	`^(?:[一两二三四五六七八九十几]|\d+)\s*[首篇个份段封则]\s*\p{Han}*(?:诗歌?|俳句|词|故事|作文|文章|散文|小说|笑话|谜语|歌词|信|演讲稿|总结|摘要|报告|翻译|译文|脚本|函数|代码)$`)

var (
	// pronoun are words for a text that was spoken of.
	pronoun = lazy(`(?i)^(?:it|that|this|them|these|those|everything|all|(?:the )?(?:results?|output|answer|page|contents?))$|^(?:它们?|[这那][个些]|结果|输出|全部)$`)
	// nowHan is what changes from day to day.
	nowHan = lazy(`^(?:今天|今日|明天|昨天|当前|现在|目前|最新)的?(?:日期|时间|日期和时间|天气|气温|温度|新闻|汇率|股价|日程|计划)$`)
)

// described reports whether the text in a slot describes a text that would have to be made
// up, such as "a list of three tasks". What is quoted, and what follows a word such as
// "saying", is the text itself.
func (m match) described(name string) bool {
	text := m.slots[name]
	if quoteMarks().MatchString(text) || text == "" {
		return false
	}
	at := strings.LastIndex(m.text, text)
	before := m.text[:max(at, 0)]
	if pronoun().MatchString(text) || nowHan().MatchString(strings.TrimSpace(text)) {
		return true
	}
	if literalHead().MatchString(before) {
		return poemHan().MatchString(strings.TrimSpace(text))
	}
	return describedHead().MatchString(text) || theHead().MatchString(before) ||
		describedHan().MatchString(strings.TrimSpace(text))
}

// fromFile reports whether the text in a slot is the name of a file, or its contents.
func (m match) fromFile(name string) bool {
	text := m.slots[name]
	for _, mark := range pathMarks().FindAllString(text, -1) {
		e := (*m.entities)[[]rune(mark)[0]-pathMark]
		if e.text == e.written && meaning(anyMark().ReplaceAllString(text, " ")) == "" && !quoteMarks().MatchString(text) {
			return true
		}
	}
	return false
}

// cannotCopy returns the step for a request to write what another file contains.
func (t *turn) cannotCopy(m match, path string) *step {
	return &step{answer: t.localize(cannotCopyText, "`"+path+"`", "“"+clip(m.get("t"), 120)+"”"), unable: true}
}

// cannotWrite returns the step for a request to make up a text.
func (t *turn) cannotWrite(m match, name, path string) *step {
	return &step{answer: t.localize(cannotWriteText, "`"+path+"`", "“"+clip(m.get(name), 120)+"”"), unable: true}
}

// lineRange is which lines of a file are asked for.
type lineRange struct {
	first, count int // count 0: to the end
	last         int // the last lines instead
}

var (
	rangeForm = lazy(`(?i)\b(?:(first|top|last|bottom|final)\s+(?:(\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\s+)?lines?|lines?\s+(\d+)(?:\s*(?:-|–|to|through|until)\s*(?:line\s+)?(\d+))?|(\d+|one|two|three|four|five|six|seven|eight|nine|ten)(?:st|nd|rd|th)\s+line)\b`)
	rangeHan  = lazy(`(前|最?后|末尾)\s*([一两二三四五六七八九十]|\d+)\s*行|第\s*([一二三四五六七八九十]|\d+)\s*(?:行?\s*(?:到|至|-|–|—)\s*第?\s*([一二三四五六七八九十]|\d+)\s*)?行`)
	ordinals  = lazy(`(?i)\b(?:second|third|fourth|fifth|middle|next|previous)\s+(?:\w+\s+)?lines?\b|\b(?:every|each|odd|even|empty|blank|longest|shortest)\b.*\blines?\b`)
	numbers   = strings.Fields("one two three four five six seven eight nine ten twelve 十二 twenty 二十")
)

// number returns the value of a number in figures or words.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	if i := slices.Index(strings.Split("零 一 二 三 四 五 六 七 八 九 十", " "), strings.Replace(s, "两", "二", 1)); i >= 0 {
		return i
	}
	switch i := slices.Index(numbers, strings.ToLower(s)); {
	case i < 0:
		return 1
	case i < 10:
		return i + 1
	case i < 12:
		return 12
	default:
		return 20
	}
}

// lineRange returns the lines that a request is about, and whether it is about some only.
func (m match) lineRange() (r lineRange, ok bool) {
	m.knows(rangeForm())
	m.knows(rangeHan())
	if g := rangeForm().FindStringSubmatch(m.text); g != nil {
		switch word := strings.ToLower(g[1]); {
		case word == "first" || word == "top":
			return lineRange{first: 1, count: number(g[2])}, true
		case word != "":
			return lineRange{last: number(g[2])}, true
		case g[5] != "":
			return lineRange{first: number(g[5]), count: 1}, true
		}
		return between(g[3], g[4])
	}
	g := rangeHan().FindStringSubmatch(m.text)
	switch {
	case g == nil:
		return r, false
	case g[1] == "前":
		return lineRange{first: 1, count: number(g[2])}, true
	case g[1] != "":
		return lineRange{last: number(g[2])}, true
	}
	return between(g[3], g[4])
}

// between returns the lines from one to another; empty: only the first.
func between(from, to string) (lineRange, bool) {
	r := lineRange{first: max(number(from), 1), count: 1}
	if to != "" {
		r.count = max(number(to)-r.first+1, 1)
	}
	return r, true
}

// readLines reads some lines of a file.
func readLines(path string, lines lineRange) *step {
	if lines.last == 0 {
		return callStep("read", "path", path, "offset", lines.first, "limit", lines.count)
	}
	s := callStep("read", "path", path)
	s.render = func(t *turn, r result) string {
		shown, _ := splitPage(r.text)
		if !numbered().MatchString(shown) {
			return t.show(r)
		}
		text, whole := r.page()
		if !whole {
			t.unable = true
			return t.localize(tooLongText, subject(r))
		}
		all := strings.Split(text, "\n")
		return t.localize(shownTexts["read"], subject(r), t.fence(strings.Join(all[max(len(all)-lines.last, 0):], "\n")))
	}
	return s
}

var pageNote = lazy(`\n\n\[([^\n]*)\]$`)

// splitPage splits a result of read into the text, and the notes for the model after it.
func splitPage(s string) (text, note string) {
	at := pageNote().FindStringSubmatchIndex(s)
	if at == nil {
		return s, ""
	}
	return s[:at[0]], s[at[2]:at[3]]
}

// page returns the lines of a file that were read, without their numbers and the notes after
// them, and whether they are those to the end of the file.
func (r result) page() (text string, whole bool) {
	text, note := splitPage(r.text)
	whole = numbered().MatchString(text) && !strings.Contains(note, "More lines follow") &&
		!strings.Contains(note, "was not read")
	return numbered().ReplaceAllString(text, ""), whole
}

var (
	// What is asked about a file or a folder that only a language model, or another tool,
	// could answer.
	beyondReading = lazy(`(?i)\b(?:summar\w+|explain\w*|translat\w+|sort(?:ed|ing)?|revers\w+|(?:upper|lower)[ -]?case|capital\w*|count(?:ed|ing)?|how (?:many|much|long|big)|number of|` +
		`better|improv\w+|wrong|errors?|typos?|mistakes?|bugs?|chang(?:ed?|es|ing)|differ\w*|compar\w+|only|except|without|mean(?:s|ing)?|important|main (?:point|idea)s?|` +
		`rewrit\w+|rephras\w+|fix(?:ed)?|convert\w*|(?:in|into|to) (?:french|german|spanish|italian|chinese|english|japanese|russian|portuguese)|paragraphs?|sentences?|sections?|` +
		`largest|biggest|smallest|newest|oldest|latest|longest|shortest|most recent(?:ly)?|modified|today|yesterday|last week|hidden|size|bytes)\b|` +
		`总结|概括|摘要|翻译|解释|说明了?什么|排序|倒序|统计|多少[字行词]|几[行个字]|区别|不同|比较|有什么问题|错误|意思|为什么|改进|最[大小新旧长短]|大小|修改过|今天|昨天|隐藏|段落?|翻成|译成`)
	howMany = lazy(`(?i)\bhow many\b|多少个?|几个`)
)

// beyond returns what a request to read asks that reading does not answer, or "".
func (m match) beyond() string {
	return cmp.Or(beyondReading().FindString(m.text), ordinals().FindString(m.text))
}

// cannotRead returns the step for a question about a file or folder that reading does not
// answer.
func (t *turn) cannotRead(path, what string) *step {
	return &step{answer: t.localize(cannotReadText, "`"+path+"`", "“"+what+"”"), unable: true}
}

// counted tells how many files and folders a list has.
func counted(t *turn, r result) string {
	files, folders := 0, 0
	for line := range strings.Lines(r.text) {
		switch {
		case strings.HasPrefix(line, "[folder]"):
			folders++
		case strings.HasPrefix(line, "[file]"), strings.HasPrefix(line, "[link]"):
			files++
		}
	}
	return t.localize(countText, fmt.Sprint(files), fmt.Sprint(folders), t.show(r))
}

var (
	cannotWriteText = localized{
		"I wrote nothing to %s: I am no language model, so I cannot make up %s. Give me the text itself in quotation marks.",
		"没有写入 %s：我不是语言模型，编不出%s。请把要写的文字放在引号里。",
	}
	cannotCopyText = localized{
		"I wrote nothing to %s: I have no tool that copies text from a file. If you mean the words %s, put them in quotation marks.",
		"没有写入 %s：我没有从文件里复制文字的工具。如果就是要写%s这几个字，请放在引号里。",
	}
	cannotReadText = localized{
		"I can show %s as it is, but I cannot answer the part %s: that needs a language model.",
		"我可以原样显示 %s，但做不到%s：这需要语言模型。",
	}
	tooLongText = localized{"%s is too long for me to show its last lines.", "%s 太长，我没法显示最后几行。"}
	noEndText   = localized{"I added nothing to %s: I cannot read its end, because it is too long or no text.",
		"没有写入 %s：它太长或者不是文本，我读不到它的末尾。"}
	countText = localized{"There are %s files and %s folders. %s", "一共有 %s 个文件和 %s 个文件夹。%s"}
)
