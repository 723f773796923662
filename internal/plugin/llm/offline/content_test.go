package offline

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// stop returns why the last reply ended.
func (k *talk) stop() llm.StopReason { return k.messages[len(k.messages)-1].Stop }

// TestMadeUp checks that a text that would have to be made up is not replaced by its
// description.
func TestMadeUp(t *testing.T) {
	t.Parallel()
	for _, say := range []string{
		"create todo.md with a list of three tasks", "create todo.md with three tasks", "write a poem about rain to poem.txt",
		"create poem.txt with a poem about the sea",
		"write a summary of notes.txt to out.txt", "save the summary in out.txt",
		"create report.md containing an overview of the project", "make a file plan.md with some ideas",
		"add three tasks to notes.txt", "append a summary to notes.txt", "create list.md with the names of all files",
		"create a.py with a function that adds two numbers",
		"replace \"milk\" with a better word in notes.txt", "write 5 jokes to jokes.txt",
		"创建 todo.md，包含三个任务的列表", "写一首关于雨的诗到 poem.txt", "把总结写到 out.txt", "新建 plan.md，包含几个想法", "创建 诗.txt，内容是一首关于秋天的诗",
		"新建 a.txt，内容为两个笑话", "在 notes.txt 末尾追加一段总结",
	} {
		k := newTalk(t)
		k.files["notes.txt"] = "milk\n"
		reply := k.say(say)
		if len(k.log) > 0 || k.stop() != llm.StopUnable {
			t.Errorf("%q: calls %q, stop %s:\n%s", say, k.log, k.stop(), reply)
		}
		has(t, reply, "“")
		if !strings.Contains(reply, "not a language model:") && !strings.Contains(reply, "不是语言模型") {
			t.Errorf("%q: the reply does not say why:\n%s", say, reply)
		}
	}
	for say, want := range map[string]string{
		"create a.txt with the text three tasks":      "three tasks\n",
		"create a.txt with \"a list of three tasks\"": "a list of three tasks\n",
		"create a.txt that says a list of three":      "a list of three\n",
		"create a.txt with: a list of three tasks":    "a list of three tasks\n",
		"create a.txt with milk and eggs":             "milk and eggs\n",
		"新建 a.txt，内容是 三个任务的列表":                        "三个任务的列表\n",
	} {
		k := newTalk(t)
		reply := k.say(say)
		if k.files["a.txt"] != want || k.stop() != llm.StopEnd {
			t.Errorf("%q: the file is %q, want %q, stop %s:\n%s", say, k.files["a.txt"], want, k.stop(), reply)
		}
	}
}

// TestSeveralFiles checks that a text is written to each of the files that are named.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	for _, say := range []string{"create a.txt and b.txt with \"hi\"", "新建 a.txt 和 b.txt，内容是“hi”"} {
		k := newTalk(t)
		reply := k.say(say)
		if k.files["a.txt"] != "hi\n" || k.files["b.txt"] != "hi\n" || k.stop() != llm.StopEnd {
			t.Errorf("%q: the files are %q, stop %s:\n%s", say, k.files, k.stop(), reply)
		}
	}
}

// TestSomeLines checks requests for some lines of a file.
func TestSomeLines(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"show the first 3 lines of a.txt":     "1 2 3",
		"first three lines of a.txt":          "1 2 3",
		"show me the first line of a.txt":     "1",
		"what are the last 2 lines of a.txt?": "5 6",
		"show lines 2-4 of a.txt":             "2 3 4",
		"show lines 2 to 3 of a.txt":          "2 3",
		"show line 5 of a.txt":                "5",

		"show the 2nd line of a.txt":       "2",
		"show me the top 2 lines of a.txt": "1 2",
		"看看 a.txt 的前三行":                    "1 2 3",
		"显示 a.txt 的最后两行":                   "5 6",
		"看看 a.txt 的第2到4行":                  "2 3 4",
		"看看a.txt第三行":                       "3",

		"show a.txt": "1 2 3 4 5 6",
	} {
		k := newTalk(t)
		k.files["a.txt"] = "L1\nL2\nL3\nL4\nL5\nL6\n"
		reply := k.say(say)
		_, body, _ := strings.Cut(reply, "```\n")
		body, _, _ = strings.Cut(body, "\n```")
		if got := strings.ReplaceAll(strings.Join(strings.Fields(body), " "), "L", ""); got != want ||
			k.stop() != llm.StopEnd {
			t.Errorf("%q shows %q, want %q, stop %s:\n%s", say, got, want, k.stop(), reply)
		}
	}
}

// TestBeyond checks that a question about a file that showing it does not answer is not
// answered by showing it.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, say := range []string{
		"show a summary of a.txt", "what is wrong with a.txt", "what changed in a.txt?", "show a.txt in upper case",
		"show a.txt sorted", "what does a.txt mean?", "show the longest line of a.txt",
		"show every second line of a.txt", "what is the main point of a.txt?", "show me a.txt translated into French",
		"list the three largest files", "list the files sorted by size",
		"show the newest files", "总结一下 a.txt 的内容", "把 a.txt 的内容翻译成英文给我看", "a.txt 的内容是什么意思？", "列出最大的文件",
	} {
		k := newTalk(t)
		k.files["a.txt"] = "alpha\n"
		if reply := k.say(say); k.stop() != llm.StopUnable || strings.Contains(reply, "alpha") ||
			strings.Contains(reply, "b.txt") {
			t.Errorf("%q: stop %s, calls %q:\n%s", say, k.stop(), k.log, reply)
		}
	}
	has(t, newTalk(t).say("how many files are in this folder?"), "2 files and 1 folders")
}

// TestUnable checks which replies say that something was not done.
func TestUnable(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]llm.StopReason{
		"show a.txt":                         llm.StopEnd,
		"show gone.txt":                      llm.StopUnable,
		"bake me a cake":                     llm.StopUnable,
		"read a.txt then bake me a cake":     llm.StopUnable,
		"help":                               llm.StopEnd,
		"hi":                                 llm.StopEnd,
		"run false":                          llm.StopUnable,
		"run true":                           llm.StopEnd,
		"remind me in 5 minutes to stand up": llm.StopUnable,

		"what do you remember about my car?": llm.StopEnd,
		"create a.txt":                       llm.StopUnable,
		"what time is it?":                   llm.StopEnd,
		"把这段话翻译成法语":                          llm.StopUnable,
	} {
		k := newTalk(t)
		k.files["a.txt"] = "alpha\n"
		k.exec = func(c string) (string, bool) {
			if c == "false" {
				return "[exit code 1; no output; it ran in the sandbox; host gateway asks the person to run it outside]", true
			}
			return "[succeeded, no output]", true
		}
		if reply := k.say(say); k.stop() != want {
			t.Errorf("%q: stop %s, want %s:\n%s", say, k.stop(), want, reply)
		} else if strings.Contains(reply, "host gateway") {
			t.Errorf("%q: text for models in the reply:\n%s", say, reply)
		}
	}
}

// TestWhole checks that lists stand apart from the text around them, and that Chinese
// replies contain no English but names and outputs.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, say := range []string{"bake me a cake", "help", "hi", "给我讲个笑话吧", "帮助", "你好"} {
		reply := newTalk(t).say(say)
		lines := strings.Split(reply, "\n")
		for i, l := range lines[1:] {
			if before := lines[i]; strings.HasPrefix(l, "- ") != strings.HasPrefix(before, "- ") && l != "" && before != "" {
				t.Errorf("%q: %q follows %q directly", say, l, before)
			}
		}
	}
	for say, want := range map[string]string{
		"新建 a.txt，内容是 你好": "完成：已创建 `a.txt`（7 字节）。",
		"看看 gone.txt":     "`gone.txt` 没有成功：`gone.txt` 不存在",
		"现在几点了":           "现在是 2026年3月4日 12:00 星期三。",
		"执行 `false`":      "`false` 没有正常结束（退出码 3）",
		"看看 empty.txt":    "`empty.txt` 是空的。",
	} {
		k := newTalk(t)
		k.files["empty.txt"] = ""
		k.exec = func(string) (string, bool) { return "[exit code 3; no output]", true }
		has(t, k.say(say), want)
	}
	for result, want := range map[string]string{
		"not run: it needs an approval, and nobody could be asked. Do not try to achieve it in another way":                                                        "没有执行：无人可以批准",
		"not run: denied by owner. Do not try to achieve it in another way; call the tool again only if the person asks for it":                                    "没有执行：已被拒绝",
		"not run: the approval request expired without an answer. Ask the person whether the call is still wanted, then call the tool again to make a new request": "没有执行：没有人回答批准请求",
	} {
		k := newTalk(t)
		k.exec = func(string) (string, bool) { return result, false }
		has(t, k.say("执行 `touch a`"), want)
	}
}

// TestAppend adds lines to files of which read says more than their text.
func TestAppend(t *testing.T) {
	t.Parallel()
	const car = "remember that my car is blue"
	for _, tc := range []struct{ path, text, say, want string }{
		{"c.txt", "bread\r\n", "add \"eggs\" to the end of c.txt", "bread\r\neggs\r\n"},
		{"c.txt", "a\r\n\r\nbread", "append \"eggs\" to c.txt", "a\r\n\r\nbread\r\neggs"},
		{"c.txt", "a\r\nb\r\na\r\n", "在 c.txt 末尾追加“蛋”", "a\r\nb\r\na\r\n蛋\r\n"},
		{"c.txt", "\n", "add \"eggs\" to the end of c.txt", "\neggs\n"},
		{memoryFile, "# Notes\r\n- tea\r\n", car, "# Notes\r\n- tea\r\n- my car is blue\r\n"},
		{memoryFile, "- a\n\n[b]\n", car, "- a\n\n[b]\n- my car is blue\n"},
	} {
		k := newWhole(t)
		k.files[tc.path] = tc.text
		if reply := k.say(tc.say); k.files[tc.path] != tc.want || k.stop() != llm.StopEnd {
			t.Errorf("%q to %q: it is %q, stop %s:\n%s", tc.say, tc.text, k.files[tc.path], k.stop(), reply)
		}
	}
	for _, path := range []string{"c.txt", memoryFile} {
		k := newWhole(t)
		k.files[path] = strings.Repeat("x\n", 300)
		say := map[string]string{"c.txt": "append \"eggs\" to c.txt", memoryFile: car}[path]
		if reply := k.say(say); !strings.Contains(reply, "cannot read its end") ||
			k.stop() != llm.StopUnable || len(k.log) != 1 {
			t.Errorf("%q: %q\n%s", say, k.log, reply)
		}
	}
	k := newWhole(t)
	k.files[memoryFile] = "- my car is blue\r\n- tea\r\n"
	k.say("forget my car")
	if got := k.say("yes"); k.files[memoryFile] != "- tea\r\n" {
		t.Errorf("%s\n%q", got, k.files[memoryFile])
	}
}
