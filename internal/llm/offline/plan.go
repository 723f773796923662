package offline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
)

// compile makes the row's forms. A line that begins with | goes on with the
// pattern of the line before.
func (r *row) compile() {
	patterns := strings.ReplaceAll(strings.TrimSpace(r.patterns), "\n\t\t\t|", "|")
	for line := range strings.SplitSeq(patterns, "\n") {
		form := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?is)" + macros.Replace(strings.TrimSpace(line))) })
		if isChinese(line) {
			r.chinese = append(r.chinese, form)
		} else {
			r.forms = append(r.forms, form)
		}
	}
}

// match is a clause that fits a pattern.
type match struct {
	clause
	slots map[string]string
}

// parse returns the step that a clause asks for, nil when it is not understood.
func (t *turn) parse(c clause) *step {
	for _, text := range []string{c.polish().text, strings.TrimSpace(c.text)} {
		for i := range t.rows {
			r := &t.rows[i]
			forms := r.forms
			if t.chinese {
				forms = slices.Concat(r.chinese, forms)
			}
			for _, form := range forms {
				if s := t.fit(r, form(), c.with(text)); s != nil {
					return s
				}
			}
		}
	}
	return nil
}

// fit returns the step of a row for a clause that one of its patterns fits.
func (t *turn) fit(r *row, form *regexp.Regexp, c clause) *step {
	groups := form.FindStringSubmatch(c.text)
	if groups == nil {
		return nil
	}
	m := match{c, map[string]string{}}
	for i, name := range form.SubexpNames() {
		if groups[i] != "" {
			m.slots[strings.TrimRight(name, "23")] = groups[i]
		}
	}
	s := r.plan(t, m)
	if s == nil {
		return nil
	}
	s.row = r
	if s.asks = s.answer == "" && s.calls == nil; s.asks {
		s.answer = t.ask(r, m)
	}
	for _, c := range s.calls {
		t.path = cmp.Or(topic(c), t.path)
	}
	return s
}

// ask asks for what a request lacks, unless it cannot be done at all.
func (t *turn) ask(r *row, m match) string {
	if tool := t.missing(r); tool != "" {
		return t.say(lacksText, "`"+clip(firstLine(m.expand(m.text)), 120)+"`", tool)
	}
	return t.say(askText, t.say(r.example))
}

// missing returns a tool that an intent takes and that is not offered; "" when
// there is none.
func (t *turn) missing(r *row) string {
	for name := range strings.FieldsSeq(r.needs) {
		if !t.tools[name] && !(name == "web_fetch" && t.tools["exec"]) { // a command fetches as well
			return name
		}
	}
	return ""
}

// get returns a slot as the person wrote it, without quotation marks.
func (m match) get(name string) string {
	return strings.Trim(m.expand(m.slots[name]), " \t\n,，:：;；。、")
}

// quoted returns a slot, and of a slot with something in quotes only that.
func (m match) quoted(name string) string {
	if q := quoteMarks().FindString(m.slots[name]); q != "" {
		return m.expand(q)
	}
	return m.get(name)
}

// Words for the workspace and around a folder's name.
var aroundPlace = lazy(`(?i)\b(?:the|this|my|our|all|files?|folder|directory|dir|current|working|workspace|project|code(?:base)?|repo(?:sitory)?|` +
	`here|there|everything|it)\b|当前|这个|整个|所有|全部|的|目录|文件夹|项目|工作区|文件|代码|仓库`)

// place returns the folder in slot p, "" for the workspace.
func (m match) place() string {
	p := m.slots["p"]
	if anyMark().FindString(p) == p {
		return m.get("p")
	}
	return strings.TrimSpace(aroundPlace().ReplaceAllString(m.expand(p), ""))
}

func greet(t *turn, _ match) *step { return &step{answer: t.few(greetText)} }

func says(w words) func(*turn, match) *step {
	return func(t *turn, _ match) *step { return &step{answer: t.say(w)} }
}

func status(*turn, match) *step { return does("session_status") }
func clock(*turn, match) *step {
	s := does("session_status")
	s.render = func(t *turn, r result) string {
		_, when, _ := strings.Cut("\n"+r.text, "\nTime: ")
		return t.say(timeText, cmp.Or(firstLine(when), firstLine(r.text)))
	}
	return s
}

func remind(_ *turn, m match) *step { return does("cron", "action", "add", "text", m.expand(m.text)) }
func spawn(_ *turn, m match) *step  { return does("sessions_spawn", "task", m.get("task")) }
func fetch(_ *turn, m match) *step {
	s := &step{}
	for _, u := range m.all(urlMark) {
		if !strings.Contains(u, "://") {
			u = "https://" + u
		}
		s.calls = append(s.calls, does("web_fetch", "url", u).calls...)
	}
	return s
}

var (
	afterCommand = lazy(`(?i)(?:,? and (?:tell|show|give|let) me\b.*|[，,]?\s*(?:告诉我|给我看|看看).*)$`)
	noCommand    = lazy(`(?i)^(?:(?:the|an?|my|some|this|that|it|all|tests|commands?|them)(?: .*)?|\p{Han}.*)$`)
	scripts      = lazy(`^[\w/\p{Han}\-]+\.(?:(sh)|(py)|js)\b`)
)

func run(t *turn, m match) *step {
	c := m.quoted("c")
	if at := anyMark().FindStringIndex(m.slots["c"]); at == nil || at[0] > 0 { // quotes are the command's own
		c = strings.TrimSpace(m.expand(afterCommand().ReplaceAllString(m.slots["c"], "")))
	}
	if c == "" || strings.EqualFold(c, "it") || c == "它" {
		c = t.path
	}
	if g := scripts().FindStringSubmatch(c); g != nil {
		c = map[string]string{"sh": "sh ", "py": "python3 ", "": "node "}[g[1]+g[2]] + c
	} else if noCommand().MatchString(c) {
		c = ""
	}
	return does("exec", "command", c)
}

func edit(t *turn, m match) *step {
	return does("edit", "path", cmp.Or(m.get("p"), t.path), "oldText", m.quoted("o"), "newText", m.quoted("n"))
}

// write makes a file of some text: an empty one might replace one that is not.
func write(_ *turn, m match) *step {
	text := m.quoted("t")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return does("write", "path", m.get("p"), "content", text)
}

func appendTo(_ *turn, m match) *step { return addLine(m.get("p"), "", m.quoted("t")) }

// addLine reads a file and adds a line with an edit of its end, so that nothing
// else in it changes. A file that is not there is written.
func addLine(path, bullet, line string) *step {
	if line == "" {
		return &step{}
	}
	line = bullet + line
	s := does("read", "path", path)
	s.absent = true
	s.then = func(r result) []llm.ToolCall {
		if r.bad || strings.HasSuffix(r.text, "is empty.") {
			return does("write", "path", path, "content", line+"\n").calls
		}
		shown := numbered().ReplaceAllString(r.text, "")
		end := shown[strings.LastIndexByte(shown, '\n')+1:]
		if strings.TrimSpace(end) == "" || strings.Count(shown, end) > 1 {
			end = shown // as an edit needs it: it occurs once
		}
		return does("edit", "path", path, "oldText", end, "newText", end+"\n"+line).calls
	}
	return s
}

// memoryFile is where notes are kept.
const memoryFile = "MEMORY.md"

func remember(_ *turn, m match) *step {
	text := strings.Join(strings.Fields(m.get("t")), " ")
	s := addLine(memoryFile, "- ", text)
	s.render = func(t *turn, _ result) string { return t.say(savedText, text) }
	return s
}

// fillers tell nothing of what is asked for.
var fillers = lazy(`(?i)'s\b|\b(?:\w\w?|the|mine|your?|our|about|that|this|what|when|where|which|who|was|were|are|did|does|have|has|had|say|said|told|know|` +
	`anything|everything|favou?rite|for|with|and|once)\b|[^\p{L}\p{N}]+|[我你的是吗了过在有呢和]|什么|哪[些天里儿]?|多少|关于|来着|时候|知道|最?喜欢|名字|事情?`)

// recall looks up notes by the telling words of a question: all of them when
// there is none.
func recall(_ *turn, m match) *step {
	if len(m.all(pathMark)) > 0 {
		return nil
	}
	s := does("read", "path", memoryFile)
	if keys := strings.Fields(fillers().ReplaceAllString(m.get("q"), " ")); len(keys) > 0 {
		s = does("grep", "path", memoryFile, "pattern", strings.Join(keys, "|"), "ignoreCase", true)
	}
	s.absent = true
	s.render = func(t *turn, r result) string {
		notes := strings.Join(noteLine().FindAllString(numbered().ReplaceAllString(r.text, ""), -1), "\n")
		if notes == "" || r.bad {
			return t.say(blankText)
		}
		return t.say(recallText, t.fence(notes))
	}
	return s
}

func read(t *turn, m match) *step {
	s := does("read", "path", t.path)
	for i, p := range m.all(pathMark) {
		tool := "read"
		if strings.HasSuffix(p, "/") || strings.Trim(p, "./~") == "" {
			tool = "ls"
		}
		s.calls = append(s.calls[:min(i, len(s.calls))], does(tool, "path", p).calls...)
	}
	return s
}

func list(_ *turn, m match) *step {
	m.slots["p"] = cmp.Or(anyMark().FindString(m.text), m.slots["p"])
	dir := m.place()
	if fileName().MatchString(dir) || strings.Count(dir, " ") > 1 {
		return nil
	}
	return does("ls", "path", cmp.Or(dir, "."))
}

var (
	fileName = lazy(`(?i)^(?:.*/)?(?:\.*[^./]+\.[^/]*|readme|makefile|dockerfile|license|changelog)$`)
	// What people say behind a text to look for.
	behindText = lazy(`\s*(?:[这那]个)?(?:单词|词|字样|字|函数|变量|关键字)?的?(?:所有)?(?:文件|行|地方|内容|位置|代码)?$`)
)

func search(_ *turn, m match) *step {
	m.slots["q"] = behindText().ReplaceAllString(m.slots["q"], "")
	q, dir, where := m.quoted("q"), m.place(), "?path"
	if strings.HasPrefix(q, "看") || strings.HasPrefix(q, "询") || strings.Count(dir, " ") > 2 {
		return nil
	}
	if strings.ContainsAny(dir, "*?{") {
		where = "?glob"
	}
	return does("grep", "pattern", q, "literal", true, where, dir, "ignoreCase", strings.ToLower(q) == q)
}

// kinds are what people call files, each with their ending.
var kinds = strings.Fields("go go golang go python py py py md md markdown md javascript js js js typescript ts txt txt text txt 文本 txt rust rs " +
	"java java c c cpp cpp shell sh script sh 脚本 sh html html css css json json yaml yaml csv csv pdf pdf sql sql 图片 {png,jpg} 照片 {png,jpg}")

func find(_ *turn, m match) *step {
	q, ext := m.get("q"), strings.ToLower(m.get("ext"))
	if i := slices.Index(kinds, ext); i >= 0 {
		q = "*." + kinds[i|1]
	}
	switch {
	case q == "" && ext != "" && !strings.ContainsAny(ext, ".*?"):
		return nil
	case strings.HasPrefix(q+ext, ".") && len(q+ext) < 6:
		q = "*" + q + ext
	case q != "" && !pathForm().MatchString(q) && !strings.ContainsAny(q, "*?{"):
		q = "*" + q + "*"
	}
	return does("find", "pattern", cmp.Or(q, ext), "?path", m.place())
}
