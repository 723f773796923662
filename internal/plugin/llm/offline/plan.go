package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/timephrase"
)

// compile compiles the row's patterns. A line that begins with | continues the
// line before.
func (r *row) compile() {
	r.known = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + r.words) })
	patterns := strings.ReplaceAll(strings.TrimSpace(r.patterns), "\n\t\t\t|", "|")
	for line := range strings.SplitSeq(patterns, "\n") {
		form := sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile("(?is)" + withGaps(macros.Replace(strings.TrimSpace(line))))
		})
		if isChinese(line) {
			r.chinese = append(r.chinese, form)
		} else {
			r.forms = append(r.forms, form)
		}
	}
}

// match is a clause that matches a pattern.
type match struct {
	clause
	slots map[string]string
	read  *reading
}

// parse returns the step for a clause, or nil if it is not understood. If a part of it
// is not understood, the step says so and does nothing.
func (t *turn) parse(c clause) *step {
	path := t.path
	var partly *step
	for _, text := range []string{c.stripPoliteness().text, strings.TrimSpace(c.text)} {
		for i := range t.rows {
			r := &t.rows[i]
			if r.guesses && denialStart().MatchString(text) {
				continue
			}
			forms := r.forms
			if t.chinese {
				forms = slices.Concat(r.chinese, forms)
			}
			for _, form := range forms {
				switch s := t.fit(r, form(), c.with(text)); {
				case s == nil:
				case partly == nil && s.left == "", s.left == "" && !s.asks && !r.guesses:
					return s
				case s.left != "" && r.freeText:
					t.path = path
					return t.refuse(s)
				default:
					partly, t.path = cmp.Or(partly, s), path
				}
			}
		}
	}
	if partly != nil {
		return t.refuse(partly)
	}
	return nil
}

// fit returns the step of a row for a clause, or nil if the pattern does not
// match.
func (t *turn) fit(r *row, form *regexp.Regexp, c clause) *step {
	at := form.FindStringSubmatchIndex(c.text)
	if at == nil {
		return nil
	}
	m := match{c, map[string]string{}, &reading{}}
	for i, name := range form.SubexpNames() {
		if name != "" && at[2*i] < at[2*i+1] {
			m.slots[strings.TrimRight(name, "23")] = c.text[at[2*i]:at[2*i+1]]
		}
	}
	s := r.plan(t, m)
	if s == nil {
		return nil
	}
	s.row = r
	if s.asks = s.answer == "" && s.calls == nil && s.left == ""; s.asks {
		s.answer = t.ask(r, m)
	} else if s.calls != nil && s.left == "" {
		s.left = m.left(r, outside(form, at, c.text))
	}
	for _, c := range s.calls {
		t.path = cmp.Or(topic(c), t.path)
	}
	return s
}

// ask returns a question for missing information, or a text that a tool is
// missing.
func (t *turn) ask(r *row, m match) string {
	if tool := t.missing(r); tool != "" {
		return t.localize(lacksText, "`"+clip(firstLine(m.expand(m.text)), 120)+"`", tool)
	}
	return t.localize(askText, t.localize(r.example))
}

// missing returns a required tool that is not available, or "".
func (t *turn) missing(r *row) string {
	for name := range strings.FieldsSeq(r.needs) {
		if !t.tools[name] && !(name == "web_fetch" && t.tools["exec"]) { // curl can replace web_fetch
			return name
		}
	}
	return ""
}

// get returns a slot as written, without quotation marks.
func (m match) get(name string) string {
	m.read.marks += m.slots[name]
	return strings.Trim(m.expand(m.slots[name]), " \t\n,，:：;；。、")
}

// quoted returns the quoted text in a slot, or the whole slot if there is none.
func (m match) quoted(name string) string {
	if q := quoteMarks().FindString(m.slots[name]); q != "" {
		m.read.marks += q
		m.read.dropped = append(m.read.dropped, strings.Replace(m.slots[name], q, " ", 1))
		return m.expand(q)
	}
	return m.get(name)
}

// folderWords are words for the workspace and around the name of a folder.
var folderWords = lazy(`(?i)\b(?:the|in|of|inside|this|my|our|all|files?|folder|directory|dir|current|working|workspace|project|code(?:base)?|repo(?:sitory)?|` +
	`here|there|everything|it)\b|当前|这个|整个|所有|全部|的|目录|文件夹|项目|工作区|文件|代码|仓库`)

// folder returns the folder in slot p, or "" for the workspace.
func (m match) folder() string {
	p := m.slots["p"]
	if anyMark().FindString(p) == p {
		return m.get("p")
	}
	m.read.marks += p
	return strings.TrimSpace(folderWords().ReplaceAllString(m.expand(p), ""))
}

func greet(t *turn, _ match) *step { return &step{answer: t.suggestions(greetText)} }

func respond(w localized) func(*turn, match) *step {
	return func(t *turn, _ match) *step { return &step{answer: t.localize(w)} }
}

func status(*turn, match) *step { return callStep("session_status") }
func spawn(_ *turn, m match) *step {
	s := callStep("sessions_spawn", "task", m.get("task"))
	s.render = started
	return s
}

// started formats the result of sessions_spawn.
func started(t *turn, r result) string {
	var a struct{ Label string }
	if json.Unmarshal([]byte(r.text), &a) != nil || a.Label == "" {
		return t.show(r)
	}
	return t.localize(startedText, a.Label)
}

// moveWords are verbs for files, and the commands that do the same.
var moveWords = lazy(`(?i)(copy|duplicate|clone|back ?up|cp\b|复制|拷贝|备份|另存)|(delete|remove|erase|trash|删|移除)`)

// cannotMove says that there is no tool that copies, moves or deletes files, and which
// command does.
func cannotMove(t *turn, m match) *step {
	command, paths := "mv", m.all(pathMark)
	if g := moveWords().FindStringSubmatch(m.text); g != nil && g[1] != "" {
		command = "cp"
	} else if g != nil {
		command = "rm"
	}
	whole := meaning(fileWords().ReplaceAllString(anyMark().ReplaceAllString(m.text, " "), " ")) == "" &&
		!quoteMarks().MatchString(m.text)
	if partWords().MatchString(m.text) || command == "rm" && len(paths) == 1 && fromWord().MatchString(m.text) ||
		quoteMarks().MatchString(m.text) {
		return &step{answer: t.localize(cannotCutText), unable: true}
	}
	text := t.localize(cannotMoveText)
	if whole && len(paths) == 2 != (command == "rm") && t.tools["exec"] &&
		!strings.ContainsFunc(strings.Join(paths, ""), unicode.IsSpace) {
		text += t.localize(commandText, command+" "+strings.Join(paths, " "))
	}
	return &step{answer: text, unable: true}
}

var (
	// fileWords are words of a request about whole files.
	fileWords = lazy(`(?i)\b(?:copy|duplicate|clone|back ?up|cp|move|mv|rename|relocate|change|set|name|delete|remove|erase|trash|rm|as|both)\b|复制|拷贝|备份|另存|移动|移[到至入]|挪|重命名|改名|更名|删除|删[掉了]?|移除|为|成|掉`)
	// partWords are words for a part of a file.
	partWords = lazy(`(?i)\b(?:lines?|rows?|words?|text|strings?|sentences?|paragraphs?|sections?|entr(?:y|ies)|items?|characters?|letters?|occurrences?|contents?|everything|anything|all|half)\b.*\b(?:from|of|in|inside|after|before|at|to|into|with)\b|[行字词句段]|条目|内容|全部|所有|一半`)
	fromWord  = lazy(`(?i)\bfrom\b`)

	cannotMoveText = localized{"I have no tool that copies, moves, renames or deletes files, so I changed nothing.",
		"我没有复制、移动、改名或删除文件的工具，所以什么都没有改动。"}
	cannotCutText = localized{"I have no tool that removes, copies or moves a part of a file, so I changed nothing. I can replace one text by another in it.", "我没有删除、复制或移动文件中一部分的工具，所以什么都没有改动。我可以把文件里的一段文字替换成另一段。"}
	commandText   = localized{" As a command it works: run `%s`", "可以用命令：执行 `%s`"}
)

// folderList separates the folders of a list.
var folderList = lazy(`\s*(?:,|，|、|&|\band\b|和|与|及)\s*`)

// spawnEach starts a subagent for each of several folders.
func spawnEach(_ *turn, m match) *step {
	q := m.quoted("q")
	dirs := folderList().Split(m.get("dirs"), -1)
	if q == "" || len(dirs) < 2 || len(dirs) > maxFolders {
		return nil
	}
	s := &step{render: started}
	for _, dir := range dirs {
		s.calls = append(s.calls, callStep("sessions_spawn", "task", fmt.Sprintf("search for %q in %s", q, dir),
			"label", dir).calls...)
	}
	return s
}

// maxFolders is how many folders are searched at the same time.
const maxFolders = 5

func fetch(_ *turn, m match) *step {
	s := &step{}
	for _, u := range urls(m) {
		s.calls = append(s.calls, callStep("web_fetch", "url", u).calls...)
	}
	return s
}

// draw begins a picture. What becomes of it is told later.
func draw(_ *turn, m match) *step {
	s := callStep("image_generate", "prompt", m.quoted("q"))
	s.render = drawing
	return s
}

// drawing formats the result of image_generate.
func drawing(t *turn, r result) string {
	if !strings.HasPrefix(r.text, "Task ") {
		return t.show(r)
	}
	return t.localize(drawingText, subject(r))
}

// browse opens pages in the browser.
func browse(_ *turn, m match) *step {
	s := &step{}
	for _, u := range urls(m) {
		s.calls = append(s.calls, callStep("browser", "action", "open", "url", u).calls...)
	}
	return s
}

// urls returns the addresses in a request.
func urls(m match) []string {
	var out []string
	for _, u := range m.all(urlMark) {
		if !strings.Contains(u, "://") {
			u = "https://" + u
		}
		out = append(out, u)
	}
	return out
}

var (
	afterCommand = lazy(`(?i)(?:,? and (?:tell|show|give|let) me\b.*|[，,]?\s*(?:告诉我|给我看|看看).*)$`)
	noCommand    = lazy(`(?i)^(?:(?:the|an?|my|some|this|that|it|all|tests|commands?|them)(?: .*)?|\p{Han}.*)$`)
	scripts      = lazy(`^[\w/\p{Han}\-]+\.(?:(sh)|(py)|js)\b`)
)

// timesForm finds how often something is to be done, at the end of a text.
var timesForm = lazy(`(?i)\s(?:twice|thrice|(?:\d+|two|three|four|five|ten|several|many) times)$`)

// late returns when or how often a command is to be run, if its end says so, or "".
func (t *turn) late(command string) string {
	if w := timesForm().FindString(command); w != "" {
		return strings.TrimSpace(w)
	}
	list := t.finder().Find(command)
	if len(list) == 0 {
		return ""
	}
	p := list[len(list)-1]
	if p.From == 0 || command[p.From-1] != ' ' || p.To != len(command) {
		return ""
	}
	// A time that is refused is one, too, if it is in words: before 5pm.
	if p.Repeats() || p.Timed && p.Err == nil || p.Err != nil && !errors.Is(p.Err, timephrase.ErrPast) &&
		unicode.IsLetter([]rune(command[p.From:])[0]) {
		return command[p.From:]
	}
	return ""
}

func run(t *turn, m match) *step {
	m.knows(afterCommand())
	c := strings.TrimSpace(m.expand(afterCommand().ReplaceAllString(m.slots["c"], "")))
	if at := anyMark().FindStringIndex(m.slots["c"]); at != nil && at[0] == 0 {
		c = m.quoted("c")
	} else if late := t.late(c); late != "" {
		return &step{left: late}
	} else { // the quotation marks belong to the command
		m.read.marks += m.slots["c"]
	}
	if c == "" || strings.EqualFold(c, "it") || c == "它" {
		c = t.path
	}
	if g := scripts().FindStringSubmatch(c); g != nil {
		c = map[string]string{"sh": "sh ", "py": "python3 ", "": "node "}[g[1]+g[2]] + c
	} else if noCommand().MatchString(c) {
		c = ""
	}
	return callStep("exec", "command", c)
}

func edit(t *turn, m match) *step {
	if m.described("n") {
		return t.cannotWrite(m, "n", cmp.Or(m.get("p"), t.path))
	}
	return callStep("edit", "path", cmp.Or(m.get("p"), t.path), "oldText", m.quoted("o"), "newText", m.quoted("n"))
}

// content returns the text to write to a file; otherwise the step that says why there is
// none.
func (t *turn) content(m match) (string, *step) {
	switch date := t.dateText(m.slots["t"]); {
	case date != "":
		return date, nil
	case m.fromFile("t"):
		return "", t.cannotCopy(m, m.get("p"))
	case m.described("t"):
		return "", t.cannotWrite(m, "t", m.get("p"))
	}
	return m.quoted("t"), nil
}

// write creates a file with text. It requires text, because an empty file could
// replace a nonempty one.
func write(t *turn, m match) *step {
	text, cannot := t.content(m)
	if cannot != nil {
		return cannot
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	s := callStep("write", "path", m.get("p"), "content", text)
	if quoteMarks().MatchString(m.slots["t"]) { // further files before the quoted text
		before := quoteMarks().Split(m.slots["t"], 2)[0]
		for _, mark := range anyMark().FindAllString(before, -1) {
			if path := m.expand(mark); slices.Contains(m.clause.all(pathMark), path) {
				m.read.marks += mark
				s.calls = append(s.calls, callStep("write", "path", path, "content", text).calls...)
			}
		}
	}
	return s
}

func appendTo(t *turn, m match) *step {
	text, cannot := t.content(m)
	if cannot != nil {
		return cannot
	}
	return t.addLine(m.get("p"), "", text)
}

// addLine appends a line to a file by reading it and editing its end, so that
// the rest is unchanged. A missing file is created.
func (t *turn) addLine(path, bullet, line string) *step {
	if line == "" {
		return &step{}
	}
	line = bullet + line
	s := callStep("read", "path", path)
	s.allowMissing, s.hidden = true, true
	s.then = func(r result) []llm.ToolCall {
		if r.failed || strings.HasSuffix(r.text, "is empty.") {
			return callStep("write", "path", path, "content", line+"\n").calls
		}
		shown, whole := r.page()
		switch {
		case !whole: // its end is not known
			s.answer, s.unable = t.localize(noEndText, "`"+path+"`"), true
			s.render = func(*turn, result) string { return "" }
			return nil
		case strings.TrimSpace(shown) == "": // there is nothing to find its end by
			return callStep("write", "path", path, "content", shown+"\n"+line+"\n").calls
		}
		end := shown[strings.LastIndexByte(shown, '\n')+1:]
		if strings.TrimSpace(end) == "" || strings.Count(shown, end) > 1 {
			end = shown // oldText of an edit must be unique
		}
		return callStep("edit", "path", path, "oldText", end, "newText", end+"\n"+line).calls
	}
	return s
}

func read(t *turn, m match) *step {
	paths := m.all(pathMark)
	path := t.path
	if len(paths) > 0 {
		path = paths[0]
	}
	if lines, ok := m.lineRange(); ok && len(paths) < 2 && path != "" {
		return readLines(path, lines)
	}
	if what := m.beyond(); what != "" && path != "" {
		return t.cannotRead(path, what)
	}
	s := callStep("read", "path", t.path)
	for i, p := range paths {
		tool := "read"
		if strings.HasSuffix(p, "/") || strings.Trim(p, "./~") == "" {
			tool = "ls"
		}
		s.calls = append(s.calls[:min(i, len(s.calls))], callStep(tool, "path", p).calls...)
	}
	return s
}

func list(t *turn, m match) *step {
	m.slots["p"] = cmp.Or(anyMark().FindString(m.text), m.slots["p"])
	dir := m.folder()
	if fileName().MatchString(dir) || strings.Count(dir, " ") > 1 {
		return nil
	}
	s := callStep("ls", "path", cmp.Or(dir, "."))
	if howMany().MatchString(m.text) {
		s.render = counted
	} else if what := m.beyond(); what != "" {
		return t.cannotRead(cmp.Or(dir, "."), what)
	}
	return s
}

var (
	fileName = lazy(`(?i)^(?:.*/)?(?:\.*[^./]+\.[^/]*|readme|makefile|dockerfile|license|changelog)$`)
	// afterText are phrases after a text to search for.
	afterText = lazy(`\s*(?:[这那]个)?(?:单词|词|字样|字|函数|变量|关键字)?的?(?:所有)?(?:文件|行|地方|内容|位置|代码)?$`)
)

// nextRequest finds a request that follows a text to search for.
var nextRequest = lazy(`(?i)\band (?:then )?(?:replace|change|delete|remove|erase|save|store|write|copy|move|send|mail|email|tell|show|open|run|add|append|create|print)\b.*`)

func search(_ *turn, m match) *step {
	m.slots["q"] = afterText().ReplaceAllString(m.slots["q"], "")
	if w := nextRequest().FindString(m.slots["q"]); w != "" && !quoteMarks().MatchString(m.slots["q"]) {
		return &step{left: m.named(w)}
	}
	q, dir, where := m.quoted("q"), m.folder(), "?path"
	if strings.HasPrefix(q, "看") || strings.HasPrefix(q, "询") || strings.Count(dir, " ") > 2 {
		return nil
	}
	if strings.ContainsAny(dir, "*?{") {
		where = "?glob"
	}
	return callStep("grep", "pattern", q, "literal", true, where, dir, "ignoreCase", strings.ToLower(q) == q)
}

// fileKinds maps names of kinds of files to extensions.
var fileKinds = strings.Fields("go go golang go python py py py md md markdown md javascript js js js typescript ts txt txt text txt 文本 txt rust rs " +
	"java java c c cpp cpp shell sh script sh 脚本 sh html html css css json json yaml yaml csv csv pdf pdf sql sql 图片 {png,jpg} 照片 {png,jpg}")

func find(_ *turn, m match) *step {
	q, ext := m.get("q"), strings.ToLower(m.get("ext"))
	if i := slices.Index(fileKinds, ext); i >= 0 {
		q = "*." + fileKinds[i|1]
	}
	switch {
	case q == "" && ext != "" && !strings.ContainsAny(ext, ".*?"):
		return nil
	case strings.HasPrefix(q+ext, ".") && len(q+ext) < 6:
		q = "*" + q + ext
	case q != "" && !pathForm().MatchString(q) && !strings.ContainsAny(q, "*?{"):
		q = "*" + q + "*"
	}
	return callStep("find", "pattern", cmp.Or(q, ext), "?path", m.folder())
}
