package offline

import (
	"fmt"
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

// help lists the intents with an example each.
func (t *turn) help() string {
	text := t.say(helpText) + "\n"
	for _, r := range t.rows {
		if r.example.en != "" {
			text += "- " + t.say(r.example) + "\n"
		}
	}
	return text + t.say(limitsText)
}

const (
	examplesEN = "- show notes.txt\n- list the files in src\n- search for TODO in src\n- run `git status`\n- create hello.txt with \"hi\", then show it"
	examplesZH = "- 看看 notes.txt 里写了什么\n- 把当前目录列出来\n- 在 src 里搜索 TODO\n- 执行 `git status`\n- 新建 hello.txt，内容是“你好”，然后看看它"
)

var (
	disclosureText = words{
		"I am Chela's built-in offline assistant, not a language model: I understand a fixed set of plain requests and carry them out with tools.",
		"我是 Chela 内置的离线助手，不是语言模型：我只能听懂一些简单的请求，并用工具完成。",
	}
	unknownText = words{
		"I did not understand that. I take plain requests such as:\n" + examplesEN + "\nSay \"help\" for everything I can do.",
		"这句话我没听懂。我能处理简单的请求，例如：\n" + examplesZH + "\n输入“帮助”可以看到全部功能。",
	}
	partText  = words{"I did not understand this part: “%s”.", "这一部分我没听懂：“%s”。"}
	restText  = words{"The rest was not done, because it builds on that.", "后面的步骤依赖它，所以没有执行。"}
	lacksText = words{
		"I understood what you want (%s), but this build lacks it: the tool `%s` is not offered here.",
		"我明白你的意思（%s），但做不到：这里没有提供工具 `%s`。",
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
	doneText   = words{"Done: %s", "完成：%s"}
	cutText    = words{"[The rest is not shown here.]", "[其余部分没有显示。]"}
	helpText   = words{"I understand requests like these:", "我能听懂这样的请求："}
	limitsText = words{
		"Several things can be asked at once (\"…, then …\"). I follow fixed rules and no language model is involved:\n" +
			"I cannot write, translate or reason. With a model configured (an API key, or a local server) the same session gets one.",
		"可以一次提出几件事（“……，然后……”）。我按固定规则工作，没有用到语言模型：不会写作、翻译和推理。\n" +
			"配置模型（API 密钥或本机服务）之后，同一个会话就会由模型来回答。",
	}
	greetText  = words{"Hello! What shall I do? For example:\n" + examplesEN, "你好！需要我做什么？例如：\n" + examplesZH}
	thanksText = words{"You are welcome.", "不客气。"}
	savedText  = words{"I noted it in MEMORY.md: %s", "已记在 MEMORY.md：%s"}
	recallText = words{"This is what I have noted:\n%s", "我记得这些：\n%s"}
	blankText  = words{"I have nothing noted about that.", "关于这个，我没有记录。"}
	timeText   = words{"It is %s.", "现在是 %s。"}
	askText    = words{"I need more for that. For example: %s", "还缺少一些信息。例如：%s"}
)
