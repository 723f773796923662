package offline

import (
	"fmt"
	"slices"
	"strings"
)

var (
	numbered = lazy(`(?m)^ *\d+\t|^MEMORY\.md:\d+: `)
	troubled = lazy(`\[(?:exit code|timed out|ended by)[^\]]*\]$`)
	noteLine = lazy(`(?m)^[-*] .*$`)
)

// reply says what a step gave.
func (t *turn) reply(s *step) string {
	var parts []string
	for i, r := range s.done {
		switch {
		case r.waits():
			parts = append(parts, t.say(waitsText, subject(r), strings.Trim(strings.TrimPrefix(r.text, waiting), " .")))
		case r.bad && !(s.absent && r.absent()):
			parts = append(parts, t.say(failedText, subject(r), clip(firstLine(r.text), 300)))
		case i+1 < len(s.done) && s.absent, s.lacks != "": // looked at on the way
		case s.render != nil:
			parts = append(parts, s.render(t, r))
		default:
			parts = append(parts, t.show(r))
		}
	}
	if s.lacks != "" {
		parts = append(parts, t.say(lacksText, subject(result{call: s.calls[0]}), s.lacks))
	}
	return strings.TrimSpace(strings.Join(append(parts, s.answer), "\n\n"))
}

// subject names what a call was about.
func subject(r result) string {
	for _, name := range []string{"command", "pattern", "path", "url", "task", "text"} {
		if v := r.arg(name); v != "" {
			return "`" + clip(firstLine(v), 120) + "`"
		}
	}
	return "`" + r.call.Name + "`"
}

// show says what a call gave.
func (t *turn) show(r result) string {
	about, text := subject(r), r.text
	switch w, ok := shownTexts[r.call.Name]; {
	case r.trouble() != "":
		return t.say(endedText, about, r.trouble(), t.fence(text))
	case strings.HasPrefix(text, "No match"), strings.HasPrefix(text, "Nothing matches"):
		return t.say(nothingText, about)
	case r.call.Name == "read" && numbered().MatchString(text):
		return t.say(w, about, t.fence(numbered().ReplaceAllString(text, "")))
	case r.call.Name == "read", !ok: // what is empty, binary or an image says so
		return t.say(doneText, firstLine(text))
	default:
		return t.say(w, about, t.fence(unmarked(text)))
	}
}

// unmarked takes the mark off text from the web, which is for models.
func unmarked(s string) string {
	head, rest, ok := strings.Cut(s, "\n<untrusted-content ")
	if !ok {
		return s
	}
	_, rest, _ = strings.Cut(rest, "\n---\n")
	rest, _, _ = strings.Cut(rest, "\n</untrusted-content ")
	return head + "\n\n" + rest
}

// fence puts text between marks that do not occur in it.
func (t *turn) fence(s string) string {
	if short := clip(s, 12_000); short != s {
		s = short + "\n" + t.say(cutText)
	}
	mark := "```"
	for strings.Contains(s, mark) {
		mark += "`"
	}
	return mark + "\n" + strings.TrimRight(s, "\n") + "\n" + mark
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// clip returns at most n characters of s.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// words are a text in both languages; %s are what it is about, in order.
type words struct{ en, zh string }

// say returns a text in the language of the request.
func (t *turn) say(w words, args ...any) string {
	s := w.en
	if t.chinese {
		s = w.zh
	}
	return fmt.Sprintf(s, args...)
}

// help lists the intents that can be served here with an example each.
func (t *turn) help() string {
	list := t.examples(t.rows)
	if list == "" {
		return t.say(toollessText)
	}
	return t.say(helpText) + "\n" + list + "\n" + t.say(limitsText)
}

// few gives some examples behind a text that leads to them, and says that
// there are none when no tool is offered.
func (t *turn) few(w words) string {
	var rows []row
	for _, intent := range [...]string{"read", "list", "search", "run", "write"} {
		rows = append(rows, t.rows[slices.IndexFunc(t.rows, func(r row) bool { return r.intent == intent })])
	}
	list := t.examples(rows)
	if list == "" {
		return t.say(toollessText)
	}
	return t.say(w, list)
}

// examples lists those of the rows that can be served with the tools that are
// offered.
func (t *turn) examples(rows []row) string {
	var lines []string
	for i := range rows {
		if r := &rows[i]; r.example.en != "" && t.missing(r) == "" {
			lines = append(lines, "- "+t.say(r.example))
		}
	}
	return strings.Join(lines, "\n")
}

var (
	disclosureText = words{
		"I am Chela's built-in offline assistant, not a language model: I understand a fixed set of plain requests and carry them out with tools.",
		"我是 Chela 内置的离线助手，不是语言模型：我只能听懂一些简单的请求，并用工具完成。",
	}
	unknownText = words{
		"I did not understand that. I take plain requests such as:\n%s\nSay \"help\" for everything I can do.",
		"这句话我没听懂。我能处理简单的请求，例如：\n%s\n输入“帮助”可以看到全部功能。",
	}
	partText  = words{"I did not understand this part: “%s”.", "这一部分我没听懂：“%s”。"}
	restText  = words{"The rest was not done, because it builds on that.", "后面的步骤依赖它，所以没有执行。"}
	lacksText = words{
		"I understood what you want (%s), but I cannot do that here: there is no tool `%s`.",
		"我明白你的意思（%s），但在这里做不到：没有工具 `%s`。",
	}
	waitsText   = words{"%s waits for your approval (%s). Nothing has been run yet.", "%s 正在等待你的批准（%s），还没有执行。"}
	failedText  = words{"That did not work for %s: %s", "%s 没有成功：%s"}
	nothingText = words{"Nothing was found for %s.", "没有找到 %s。"}
	endedText   = words{"%s did not end well (%s):\n%s", "%s 没有正常结束（%s）：\n%s"}
	shownTexts  = map[string]words{
		"read": {"%s:\n%s", "%s 的内容：\n%s"}, "ls": {"In %s:\n%s", "%s 里有：\n%s"}, "exec": {"%s printed:\n%s", "%s 的输出：\n%s"},
		"find": {"Found for %s:\n%s", "找到 %s：\n%s"}, "grep": {"Found for %s:\n%s", "找到 %s：\n%s"},
		"web_fetch": {"%s:\n%s", "%s：\n%s"}, "session_status": {"%s:\n%s", "%s：\n%s"},
	}
	doneText     = words{"Done: %s", "完成：%s"}
	cutText      = words{"[The rest is not shown here.]", "[其余部分没有显示。]"}
	toollessText = words{
		"I work through tools, and none that I know is offered here, so that I can do nothing but say so.",
		"我通过工具工作，但这里没有提供我会用的工具，所以什么也做不了。",
	}
	helpText   = words{"I understand requests like these:", "我能听懂这样的请求："}
	limitsText = words{
		"Several things can be asked at once (\"…, then …\"). I follow fixed rules and no language model is involved:\n" +
			"I cannot write, translate or reason. With a model configured (an API key, or a local server) the same session gets one.",
		"可以一次提出几件事（“……，然后……”）。我按固定规则工作，没有用到语言模型：不会写作、翻译和推理。\n" +
			"配置模型（API 密钥或本机服务）之后，同一个会话就会由模型来回答。",
	}
	greetText  = words{"Hello! What shall I do? For example:\n%s", "你好！需要我做什么？例如：\n%s"}
	thanksText = words{"You are welcome.", "不客气。"}
	savedText  = words{"I noted it in MEMORY.md: %s", "已记在 MEMORY.md：%s"}
	recallText = words{"This is what I have noted:\n%s", "我记得这些：\n%s"}
	blankText  = words{"I have nothing noted about that.", "关于这个，我没有记录。"}
	timeText   = words{"It is %s.", "现在是 %s。"}
	askText    = words{"I need more for that. For example: %s", "还缺少一些信息。例如：%s"}
)
