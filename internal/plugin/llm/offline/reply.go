package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

var (
	numbered    = lazy(`(?m)^ *\d+\t|^MEMORY\.md:\d+: `)
	exitFailure = lazy(`\[(?:exit code \d+|timed out after [^;\]]+|ended by [^;\]]+)[^\]]*\]$`)
	noteLines   = lazy(`(?m)^[-*] .*$`)
)

// reply returns the text about the results of a step.
func (t *turn) reply(s *step) string {
	var parts []string
	for i, r := range s.done {
		switch {
		case r.needsApproval():
			parts = append(parts,
				t.localize(waitsText, subject(r), strings.Trim(strings.TrimPrefix(r.text, llm.WaitingPrefix), " .")))
		case r.failed && !(s.allowMissing && r.isMissing()):
			parts = append(parts, t.localize(failedText, subject(r), clip(t.tell(tool.Reason(r.text)), 300))+t.looked(r))
		case i+1 < len(s.done) && s.hidden, s.missingTool != "": // an intermediate result
		case s.render != nil:
			parts = append(parts, s.render(t, r))
		default:
			parts = append(parts, t.show(r))
		}
	}
	if s.missingTool != "" {
		parts = append(parts, t.localize(lacksText, subject(result{call: s.calls[0]}), s.missingTool))
	}
	return strings.TrimSpace(strings.Join(append(parts, s.answer), "\n\n"))
}

// subject names the object of a call.
func subject(r result) string {
	if text := r.job().Payload.Content(); r.call.Name == "cron" && text != "" {
		return "`" + clip(firstLine(text), 120) + "`"
	}
	for _, name := range []string{"command", "pattern", "path", "url", "task", "prompt", "text", "query"} {
		if v := r.arg(name); v != "" {
			return "`" + clip(firstLine(v), 120) + "`"
		}
	}
	return "`" + r.call.Name + "`"
}

// show returns the text about the result of a call.
func (t *turn) show(r result) string {
	about, text := subject(r), r.text
	switch w, ok := shownTexts[r.call.Name]; {
	case r.commandError() != "":
		out := withoutNotes(text)
		if strings.TrimSpace(out) == "" {
			return t.localize(mutelyText, about, t.tell(r.commandError())) + t.notes(text)
		}
		return t.localize(endedText, about, t.tell(r.commandError()), t.fence(out)) + t.notes(text)
	case strings.HasPrefix(text, "No match"), strings.HasPrefix(text, "Nothing matches"):
		return t.localize(nothingText, about)
	case r.call.Name == "read" && numbered().MatchString(text):
		text, note := splitPage(text)
		shown := t.localize(w, about, t.fence(numbered().ReplaceAllString(text, "")))
		if strings.Contains(note, "More lines follow") && r.number("limit") == 0 {
			shown += "\n\n" + t.localize(moreLinesText)
		}
		return shown
	case r.call.Name == "read": // the tool's text says so if the file is empty, binary or an image
		return t.tell(firstLine(text))
	case !ok:
		return t.localize(doneText, t.tell(firstLine(text)))
	case r.call.Name == "exec":
		notes := t.notes(text)
		running := strings.Contains(lastNotes().FindString(text), "[still running in the background")
		switch text = withoutNotes(text); {
		case text == "" && running:
			return t.localize(runningText, about) + notes
		case text == "":
			return t.localize(silentText, about) + notes
		}
		return t.localize(w, about, t.fence(text)) + notes
	default:
		return t.localize(w, about, t.fence(stripUntrustedMark(text)))
	}
}

// stripUntrustedMark removes the marks around text from the web, which are for
// models.
func stripUntrustedMark(s string) string {
	head, rest, ok := strings.Cut(s, "\n<untrusted-content ")
	if !ok {
		return s
	}
	_, rest, _ = strings.Cut(rest, "\n---\n")
	rest, _, _ = strings.Cut(rest, "\n</untrusted-content ")
	return head + "\n\n" + rest
}

// fence puts s in a code fence that does not occur in it.
func (t *turn) fence(s string) string {
	if short := clip(s, 12_000); short != s {
		s = short + "\n" + t.localize(cutText)
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

// clip truncates s to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// localized is a text in both languages. Its arguments are formatted with
// %s, in order.
type localized struct{ en, zh string }

// pick returns a text in the language of the request.
func (t *turn) pick(w localized) string {
	if t.chinese {
		return w.zh
	}
	return w.en
}

// localize returns a text with arguments in the language of the request.
func (t *turn) localize(w localized, args ...any) string { return fmt.Sprintf(t.pick(w), args...) }

// help lists the available intents with an example each.
func (t *turn) help() string {
	list := t.examples(t.rows)
	if list == "" {
		return t.localize(toollessText)
	}
	return t.localize(helpText) + "\n\n" + list + "\n\n" + t.localize(limitsText)
}

// suggestions formats w with some examples, or returns that no tool is
// available.
func (t *turn) suggestions(w localized) string {
	var rows []row
	for _, intent := range [...]string{"read", "list", "search", "run", "write"} {
		rows = append(rows, t.rows[slices.IndexFunc(t.rows, func(r row) bool { return r.intent == intent })])
	}
	list := t.examples(rows)
	if list == "" {
		t.unable = true
		return t.localize(toollessText)
	}
	return t.localize(w, list)
}

// examples returns the examples of the rows whose tools are available.
func (t *turn) examples(rows []row) string {
	var lines []string
	for i := range rows {
		if r := &rows[i]; r.example.en != "" && t.missing(r) == "" {
			lines = append(lines, "- "+t.localize(r.example))
		}
	}
	return strings.Join(lines, "\n")
}

var (
	disclosureText = localized{
		"I am Chela's built-in offline assistant, not a language model: I understand a fixed set of plain requests and carry them out with tools.",
		"我是 Chela 内置的离线助手，不是语言模型：我只能听懂一些简单的请求，并用工具完成。",
	}
	unknownText = localized{
		"I did not understand that. I handle plain requests such as:\n\n%s\n\nSay \"help\" to see everything I can do.",
		"这句话我没听懂。我能处理简单的请求，例如：\n\n%s\n\n输入“帮助”可以看到全部功能。",
	}
	partText  = localized{"I did not understand this part: “%s”.", "这一部分我没听懂：“%s”。"}
	wholeText = localized{"I did nothing of the rest, because I do a request only as a whole.", "其余部分也没有做，因为一个请求我只会整个执行。"}
	restText  = localized{"I skipped the rest, because it depends on that.", "后面的步骤依赖它，所以没有执行。"}
	lacksText = localized{
		"I understood your request (%s), but I cannot do it here: the tool `%s` is not available.",
		"我明白你的意思（%s），但在这里做不到：没有工具 `%s`。",
	}
	startedText = localized{"Started the subagent %q. Its result will appear here.", "已启动子代理 %q，结果会出现在这里。"}
	drawingText = localized{"A picture is being drawn (%s). It will appear here.", "正在画（%s），画好后会出现在这里。"}
	reportText  = localized{"The subagent %q has finished:\n\n%s", "子代理 %q 已完成：\n\n%s"}

	reportFailedText = localized{"The subagent %q ended with the status %s:\n\n%s", "子代理 %q 已结束（%s）：\n\n%s"}

	waitsText   = localized{"%s is waiting for your approval (%s). Nothing has been run yet.", "%s 正在等待你的批准（%s），还没有执行。"}
	failedText  = localized{"%s failed: %s", "%s 没有成功：%s"}
	nothingText = localized{"Nothing was found for %s.", "没有找到 %s。"}
	endedText   = localized{"%s failed (%s):\n%s", "%s 没有正常结束（%s）：\n%s"}
	mutelyText  = localized{"%s failed (%s) without output.", "%s 没有正常结束（%s），没有输出。"}
	shownTexts  = map[string]localized{
		"read": {"%s:\n%s", "%s 的内容：\n%s"}, "ls": {"In %s:\n%s", "%s 里有：\n%s"}, "exec": {"%s printed:\n%s", "%s 的输出：\n%s"},
		"find": {"Found for %s:\n%s", "找到 %s：\n%s"}, "grep": {"Found for %s:\n%s", "找到 %s：\n%s"},
		"web_fetch": {"%s:\n%s", "%s：\n%s"}, "browser": {"%s:\n%s", "%s：\n%s"}, "session_status": {"%s:\n%s", "%s：\n%s"},
	}
	hintText      = localized{"Note: %s.", "注意：%s。"}
	runningText   = localized{"%s has started.", "%s 已启动。"}
	silentText    = localized{"%s succeeded without output.", "%s 已成功执行，没有输出。"}
	moreLinesText = localized{"The file has more lines, which are not shown.", "文件还有更多行，没有显示。"}
	doneText      = localized{"Done: %s", "完成：%s"}
	cutText       = localized{"[Output truncated.]", "[其余部分没有显示。]"}
	toollessText  = localized{
		"I work through tools, and none of the tools that I know is available here, so I cannot do anything.",
		"我通过工具工作，但这里没有提供我会用的工具，所以什么也做不了。",
	}
	helpText   = localized{"I understand requests like these:", "我能听懂这样的请求："}
	limitsText = localized{
		"You can ask for several things at once (\"…, then …\"). I follow fixed rules; no language model is involved:\n" +
			"I cannot write, translate or reason. If you configure a model (an API key, or a local server), the same session will use it.",
		"可以一次提出几件事（“……，然后……”）。我按固定规则工作，没有用到语言模型：不会写作、翻译和推理。\n" +
			"配置模型（API 密钥或本机服务）之后，同一个会话就会由模型来回答。",
	}
	greetText    = localized{"Hello! What shall I do? For example:\n\n%s", "你好！需要我做什么？例如：\n\n%s"}
	thanksText   = localized{"You are welcome.", "不客气。"}
	savedText    = localized{"I saved it in MEMORY.md: %s", "已记在 MEMORY.md：%s"}
	recallText   = localized{"These are my notes:\n%s", "我记得这些：\n%s"}
	sourceText   = localized{"I know it from these lines of my notes:\n%s", "我是从这些记录里知道的：\n%s"}
	noSourceText = localized{"I have not looked anything up in my notes before.", "我之前没有查过我的记录。"}
	forgetText   = localized{"These lines of my notes would be removed. Say “yes” to remove them:\n%s",
		"将从我的记录里删除这些行。回复“是”就删除：\n%s"}
	keptText = localized{"Nothing was removed.", "什么都没有删除。"}

	forgottenText = localized{
		"I removed %s from my notes. What was said in conversations is still in their transcripts; /forget removes it there, too.",
		"已从我的记录里删除%s。之前的对话里仍然保留着；用 /forget 可以一并删除。",
	}
	oneLineText = localized{"1 line", " 1 行"}
	linesText   = localized{"%s lines", " %s 行"}
	undoText    = localized{
		"I cannot take anything back myself. The command /undo shows what can be taken back, and /undo yes does it.",
		"我自己不能撤销。命令 /undo 会列出可以撤销的改动，/undo yes 就会撤销。",
	}
	stayText  = localized{"Those lines were changed meanwhile, so I removed nothing.", "这些行已经变了，所以什么都没有删除。"}
	blankText = localized{"I have no notes about that.", "关于这个，我没有记录。"}
	timeText  = localized{"It is %s.", "现在是 %s。"}
	askText   = localized{"I need more information for that. For example: %s", "还缺少一些信息。例如：%s"}
)
