package offline

import (
	"fmt"
	"slices"
	"strings"
)

// words are a text in both languages; %s are what it is about, in order.
type words struct{ en, zh string }

// say returns a text in the language of the request.
func (t *turn) say(w words, args ...string) string {
	s := w.en
	if t.lang == chinese {
		s = w.zh
	}
	if len(args) == 0 {
		return s
	}
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return fmt.Sprintf(s, list...)
}

// disclosure is the first line of the assistant's first answer.
func (t *turn) disclosure() string {
	if t.told {
		return ""
	}
	return t.say(disclosureText) + "\n\n"
}

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
		"I understood what you want (%s), but I cannot do it: the tool `%s` is not offered in this session.",
		"我明白你的意思（%s），但做不到：本会话没有提供工具 `%s`。",
	}
	waitsText   = words{"%s waits for your approval (%s). Nothing has been run yet.", "%s 正在等待你的批准（%s），还没有执行。"}
	failedText  = words{"That did not work for %s: %s", "%s 没有成功：%s"}
	hereText    = words{"the workspace", "工作区"}
	listText    = words{"In %s:\n%s", "%s 里有：\n%s"}
	nothingText = words{"Nothing was found for `%s`.", "没有找到 `%s`。"}
	foundText   = words{"Found for `%s`, %s in all:\n%s", "找到 `%s`，共 %s 处：\n%s"}
	exitText    = words{"`%s` ended with exit code %s:\n%s", "`%s` 以退出码 %s 结束：\n%s"}
	quietText   = words{"`%s` succeeded and printed nothing.", "`%s` 执行成功，没有输出。"}
	ranText     = words{"`%s` printed:\n%s", "`%s` 的输出：\n%s"}
	doneText    = words{"Done: %s", "完成：%s"}
	fileText    = words{"%s:\n%s", "%s 的内容：\n%s"}
	moreText    = words{"There is more, from line %s on: say \"more\".", "后面还有内容（从第 %s 行开始）：输入“继续”。"}
	cutText     = words{"[The rest is not shown here.]", "[其余部分没有显示。]"}

	greetText  = words{"Hello! What shall I do? For example:\n" + examplesEN, "你好！需要我做什么？例如：\n" + examplesZH}
	thanksText = words{"You are welcome.", "不客气。"}
	byeText    = words{"Goodbye.", "再见。"}
	whoText    = words{
		"I am Chela's built-in assistant. I follow fixed rules and no language model is involved. With a model configured (an API key, or a local server) the same session gets one.",
		"我是 Chela 的内置助手，按固定规则工作，没有用到语言模型。配置模型（API 密钥或本机服务）之后，同一个会话就会由模型来回答。",
	}
	noYesText   = words{"Nothing is waiting for a yes. What shall I do?", "现在没有需要确认的事情。需要我做什么？"}
	noText      = words{"All right, nothing was done.", "好的，什么都没有做。"}
	noAgainText = words{"There is nothing to repeat yet.", "还没有可以重复的请求。"}
	noMoreText  = words{"There is no more to show.", "没有更多内容了。"}
	noListText  = words{"There is no list with such an entry. List or search something first.", "没有这样的列表项。请先列出或搜索一些内容。"}
	savedText   = words{"I noted it in MEMORY.md: %s", "已记在 MEMORY.md：%s"}
	recallText  = words{"This is what I have noted:\n%s", "我记得这些：\n%s"}
	blankText   = words{"I have nothing noted about that.", "关于这个，我没有记录。"}
	noSumText   = words{"I cannot summarise (that takes a language model), so here is the text itself.", "我不会总结（那需要语言模型），下面是原文。"}
	mathText    = words{"%s = %s", "%s = %s"}
	noMathText  = words{"I cannot calculate %s: %s.", "算不出 %s：%s。"}
	whenText    = words{"I understood that you want a reminder, but not when. Say for example: remind me in 20 minutes to call Ann.", "我明白你要设提醒，但没听懂时间。例如：20分钟后提醒我给小安打电话。"}
	longText    = words{"That file is too long for me to add to it safely.", "这个文件太长，我无法安全地追加。"}

	askFile    = words{"Which file?", "哪个文件？"}
	askText    = words{"What text shall I look for?", "要搜索什么内容？"}
	askName    = words{"What name shall I look for?", "要找什么名字的文件？"}
	askCommand = words{"Which command?", "执行哪条命令？"}
	askContent = words{"What shall I write, and into which file? For example: create notes.txt with \"buy milk\".", "要写什么内容，写到哪个文件？例如：新建 notes.txt，内容是“买牛奶”。"}
	askNote    = words{"What shall I remember?", "要记住什么？"}
	askURL     = words{"Which address?", "哪个网址？"}
	askTask    = words{"What shall the subagent do?", "子代理要做什么？"}
)

const (
	examplesEN = "- show notes.txt\n- list the files in src\n- search for TODO in src\n- run `git status`\n- create hello.txt with \"hi\", then show it"
	examplesZH = "- 看看 notes.txt 里写了什么\n- 把当前目录列出来\n- 在 src 里搜索 TODO\n- 执行 `git status`\n- 新建 hello.txt，内容是“你好”，然后看看它"
)

// help lists the intents with an example each.
func (t *turn) help(g *grammar) string {
	var b strings.Builder
	b.WriteString(t.say(words{"I understand requests like these:\n", "我能听懂这样的请求：\n"}))
	for _, r := range slices.Backward(g.rows) { // files first
		if example := t.say(r.example); example != "" {
			b.WriteString("- " + example + "\n")
		}
	}
	b.WriteString(t.say(words{
		"Several things can be asked at once (\"…, then …\"). I am no language model: I cannot write, translate or reason.",
		"可以一次提出几件事（“……，然后……”）。我不是语言模型：不会写作、翻译和推理。",
	}))
	return b.String()
}
