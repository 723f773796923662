package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// newWhole is a conversation with an assistant that has all tools, and some files.
func newWhole(t *testing.T) *talk {
	k := newTalk(t)
	k.tools = withNotes
	k.files = map[string]string{"a.txt": "alpha\n", "list.txt": "bread\n", "notes.txt": "old apple\n"}
	return k
}

// TestRefused checks that a request is not carried out in part: one with a negation, a
// condition, an exception or other words that were not understood changes nothing, and says
// so.
func TestRefused(t *testing.T) {
	t.Parallel()
	p := New()
	for _, say := range []string{
		// negations
		"don't create b.txt with \"x\"", "please do not show notes.txt", "never run `git status`",
		"I don't want you to create b.txt with \"x\"", "stop, don't create b.txt with \"x\"",
		"please don't remind me tomorrow at 9 to call", "never wake me at 5", "tomorrow at 9 don't list the files",
		"do not start a subagent to check the links", "show notes.txt. Do not run it.",
		"不要创建 b.txt，内容是“x”", "不要把“x”写到 b.txt", "千万不要运行 git status", "别列出文件", "先别创建 b.txt", "我不想让你运行 git status", "明天不要提醒我吃药",
		"别在明天9点提醒我开会", "明天9点不要提醒我",
		// conditions
		"create b.txt with \"x\" if nobody objects", "if it rains then create b.txt with \"x\"",
		"list the files; if there is none of them, create b.txt with \"x\"",
		"append \"milk\" to list.txt unless it contains milk",
		"create b.txt with eggs unless the shop is open", "show notes.txt, but only if it is short",
		"run git status unless the folder is empty", "create b.txt with \"x\" but don't overwrite another file",
		"remind me tomorrow at 9 if it rains", "如果 notes.txt 里有“苹果”，就在 list.txt 末尾追加“香蕉”", "看看 notes.txt，如果太长就只看前三行",
		"如果明天下雨，早上8点提醒我带伞", "新建 b.txt，内容是“x”，除非我反对",
		// exceptions
		"replace \"old\" with \"new\" in notes.txt except in the first line", "list the files except a.txt",
		"write \"hi\" to a.txt but not to b.txt", "when notes.txt changes, list the files, but only on weekdays",
		"把 notes.txt 里的“old”改成“new”，第一行除外", "cancel all reminders except the one about Ann", "notes.txt 变化时告诉我，周末除外",
		// several texts
		"create b.txt with \"1\" and \"2\"", "create b.txt with \"1\", c.txt", "新建 b.txt，内容是“1”和“2”",
		"append \"x\" to list.txt and a.txt", "replace \"old\" with \"new\" in notes.txt and a.txt",
		"把 notes.txt 里的“old”改成“new”和 a.txt",
		"search for TODO in src and replace it with DONE", "search for apple and delete it",
		// when and how often
		"show notes.txt tomorrow at 9", "run git status every hour", "run git status three times",
		"run git status before 5pm", "run git status on Monday 1 December at 9",
		"run git status every 2 weeks on Monday and Thursday", "run git status an hour after noon",
		"before 5pm list the files", "show notes.txt before 5pm", "on Monday 1 December at 9 list the files",
		"create b.txt with \"x\" tomorrow", "明天9点打开 notes.txt 三次",
		// copies
		"copy a.txt to b.txt", "rename a.txt to b.txt and show it", "delete a.txt", "move a.txt into the folder docs",
		"change the name of a.txt to b.txt", "put the contents of a.txt into b.txt", "append a.txt to list.txt",
		"把 a.txt 复制到 b.txt", "把 a.txt 移动到 b.txt", "把 a.txt 改名为 b.txt", "将 a.txt 重命名为 b.txt", "把 a.txt 的内容写到 b.txt",
		"删除 a.txt", "用“a”创建 b.txt 而不是 c.txt", "show everything but notes.txt", "等到明天再创建 b.txt，内容是“x”", "复制 a.txt 到 b.txt",
		"save it as b.txt", "把结果保存到 b.txt", "新建 b.txt，内容是今天的天气", "create b.txt with today's weather",
		"delete the last line of notes.txt", "remove the word \"a\" from notes.txt", "remove apple from notes.txt",
		"delete everything after line 3 in notes.txt", "copy the first line of a.txt to b.txt", "delete a.txt in docs",
		"删除 notes.txt 的最后一行", "删除 notes.txt 里的“a”", "删除 notes.txt 中的苹果",
		// notes that are not to be in a file, or not for ever
		"remember that my PIN is 4711, but don't write it to a file", "remember my code 1234 but only for today",
		"remember my code 1234 without saving it", "remember this only if you can encrypt it: 4711",
		"记住我的密码是 1234，但不要写进文件", "记住我的密码是 1234，只在脑子里记",
	} {
		k := newWhole(t)
		k.p = p
		reply := k.say(say)
		for _, c := range k.log {
			if name, args, _ := strings.Cut(c, " "); !slices.Contains([]string{"memory_search", "memory_get"}, name) &&
				args != `{"action":"list"}` {
				t.Errorf("%q calls %s", say, c)
			}
		}
		if k.stop() != llm.StopUnable {
			t.Errorf("%q: stop %s:\n%s", say, k.stop(), reply)
		}
	}
	for say, want := range map[string]string{
		"show notes.txt tomorrow at 9":      "did not understand “tomorrow at 9”",
		"create b.txt with \"1\" and \"2\"": "“and \"2\"”",
		"don't create b.txt with \"x\"":     "because the request says “don't”",
		"不要创建 b.txt，内容是“x”":                 "请求里说了“不要”",
		"明天不要提醒我吃药":                         "请求里说了“不要”",
		"copy a.txt to b.txt":               "run `cp a.txt b.txt`",

		"把 a.txt 改名为 b.txt":                            "执行 `mv a.txt b.txt`",
		"remind me on Monday 1 December at 9 to leave": "the day is Tuesday, 1 December 2026",

		"12月1日星期五上午9点提醒我开会":                     "那天是2026年12月1日 星期二",
		"remind me on my birthday at 9 to call": "cannot keep to “on my birthday”",
		"append a.txt to list.txt":              "no tool that copies text from a file",

		"remember my code 1234 but only for today": "cannot keep to “but only for today”",
	} {
		k := newWhole(t)
		has(t, k.say(say), want)
	}
	for _, say := range []string{"delete the last line of notes.txt", "delete the first line of notes.txt",
		"remove the word \"a\" from notes.txt", "delete everything after line 3 in notes.txt", "删除 notes.txt 的最后一行",
		"删除 notes.txt 里的“a”", "copy the first line of a.txt to b.txt"} {
		k := newWhole(t)
		if reply := k.say(say); !strings.Contains(reply, "a part of a file") && !strings.Contains(reply, "文件中一部分") ||
			strings.Contains(reply, "`") {
			t.Errorf("%q: %s", say, reply)
		}
	}
}

// TestPartsRefused checks that no part of a request is done if another one cannot be.
func TestPartsRefused(t *testing.T) {
	t.Parallel()
	for _, say := range []string{
		"rename notes.txt to n.md and show it", "delete notes.txt and then create c.txt with \"x\"",
		"create c.txt with \"x\", then delete notes.txt", "create c.txt with \"x\", then bake me a cake",
		"create c.txt with \"x\", then append to list.txt",
		"show a.txt, then delete it", "删除 notes.txt，然后新建 c.txt，内容是“x”", "新建 c.txt，内容是“x”，然后删除 notes.txt",
	} {
		k := newWhole(t)
		k.say("create b.txt with \"b\"")
		if reply := k.say(say); len(k.log) > 0 || k.stop() != llm.StopUnable {
			t.Errorf("%q: calls %q, stop %s:\n%s", say, k.log, k.stop(), reply)
		}
	}
}

// TestNotRefused checks that words that belong to a text do not limit a request.
func TestNotRefused(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"create b.txt with \"eggs unless it rains\"":     "write ",
		"remember that I drink tea but do not use sugar": "read ",
		"记住我喜欢茶，不喜欢咖啡":                                   "read ",
		"remember that the pool is only for members":     "read ",
		"search for \"if not\" in notes.txt":             "grep ",
		"is there a file called notes.txt?":              "find ",

		"could you check if there is a file named notes.txt": "find ",
		"don't forget that my car is blue":                   "read ",
		"create b.txt with the following content: hello":     `write {"content":"hello\n"`,

		"search for \"TODO\" in all files in src": `grep {"ignoreCase":false,"literal":true,"path":"src"`,
		"麻烦运行一下 `ls -la` 这个命令":                    "exec ",
		"if possible, show notes.txt":             "read ",
		"show notes.txt, if possible":             "read ",
		"如果可以的话，请列出文件":                            "ls ",

		"有空的话，帮我看看 notes.txt":                                "read ",
		"what is written in notes.txt?":                      "read ",
		"I'd like to see the contents of a.txt and list.txt": "read ",

		"please run `ls -l` for me and show me the output": "exec ",
		"tell me the current time please":                  "session_status ",
		"请把 a.txt 和 list.txt 的内容都显示出来":                     "read ",
		"帮我跑一下 `go test`，然后告诉我结果":                          "exec ",
		"有没有叫 notes.txt 的文件":                               "find ",

		"run echo do not panic":           "exec ",
		"run echo 3/4":                    "exec ",
		"run git log --since yesterday":   "exec ",
		"add \"don't panic\" to list.txt": "read ",
	} {
		k := newWhole(t)
		reply := k.say(say)
		if len(k.log) == 0 || !strings.HasPrefix(k.log[0], want) || k.stop() != llm.StopEnd {
			t.Errorf("%q: calls %q, want %s, stop %s:\n%s", say, k.log, want, k.stop(), reply)
		}
	}
}

// TestIfMissing checks requests to create a file only if it does not exist.
func TestIfMissing(t *testing.T) {
	t.Parallel()
	for _, say := range []string{
		"create a.txt with \"new\" unless it exists", "create a.txt with \"new\" only if it does not exist",
		"create a.txt with \"new\" if it doesn't exist yet", "if a.txt is missing, create a.txt with \"new\"",
		"if there is no a.txt then create a.txt with \"new\"",
		"please create a.txt with \"new\", but only if the file does not exist", "如果 a.txt 不存在，就新建 a.txt，内容是“new”",
		"要是没有 a.txt，就创建 a.txt，写入 new",
		"除非 a.txt 已经存在，否则新建 a.txt，内容是“new”", "新建 a.txt，内容是“new”，如果它不存在的话",
	} {
		k := newWhole(t)
		reply := k.say(say)
		if k.files["a.txt"] != "alpha\n" || k.stop() != llm.StopEnd || !strings.Contains(reply, "exists already") &&
			!strings.Contains(reply, "已经存在") {
			t.Errorf("%q: the file is %q, stop %s:\n%s", say, k.files["a.txt"], k.stop(), reply)
		}
		k = newWhole(t)
		delete(k.files, "a.txt")
		if reply = k.say(say); k.files["a.txt"] != "new\n" || k.stop() != llm.StopEnd {
			t.Errorf("%q without the file: it is %q, stop %s:\n%s", say, k.files["a.txt"], k.stop(), reply)
		}
	}
	for _, say := range []string{"if b.txt is missing, create a.txt with \"new\"", "如果没有 b.txt，就在 a.txt 末尾追加“new”",
		"if a.txt is missing, run `touch a.txt`"} {
		k := newWhole(t)
		if reply := k.say(say); len(k.log) > 0 || k.stop() != llm.StopUnable {
			t.Errorf("%q: calls %q, stop %s:\n%s", say, k.log, k.stop(), reply)
		}
	}
}

// TestSeveralTexts checks that a verb that is said once holds for several files.
func TestSeveralTexts(t *testing.T) {
	t.Parallel()
	for _, say := range []string{
		"create p.txt with \"1\" and q.txt with \"2\"", "write \"1\" to p.txt and \"2\" to q.txt",
		"新建 p.txt 内容是“1”，q.txt 内容是“2”", "把“1”写到 p.txt，把“2”写到 q.txt", "create p.txt with \"1\", and create q.txt with \"2\"",
	} {
		k := newWhole(t)
		reply := k.say(say)
		if k.files["p.txt"] != "1\n" || k.files["q.txt"] != "2\n" || k.stop() != llm.StopEnd {
			t.Errorf("%q: the files are %q, stop %s:\n%s", say, k.files, k.stop(), reply)
		}
	}
}
