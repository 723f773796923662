package offline

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// allTools are the tools of the corpus.
var allTools = []string{"browser", "cron", "edit", "exec", "find", "grep", "image_generate", "ls", "read",
	"session_status", "sessions_spawn", "web_fetch", "write"}

// withNotes are the tools of an assistant with a memory.
var withNotes = slices.Sorted(slices.Values(append([]string{"memory_get", "memory_search"}, allTools...)))

// testNow is Wednesday, 25 November 2026, 10:30 in Europe/Berlin, the zone of request.
var testNow = time.Date(2026, 11, 25, 9, 30, 0, 0, time.UTC)

func request(tools []string, messages ...*llm.Message) *llm.Request {
	r := &llm.Request{
		Model: "assistant", Messages: messages,
		System: []llm.Block{{Text: "Be nice.\n", Cache: true},
			{Text: "## Date and time\n\nToday is Wednesday.\nTime zone: Europe/Berlin\n\n## Runtime\n\nagent=main\n"}},
	}
	for _, n := range tools {
		r.Tools = append(r.Tools, llm.ToolSpec{Name: n, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return r
}

// TestCorpus checks the first calls for each request.
func TestCorpus(t *testing.T) {
	t.Parallel()
	p := New()
	for _, tc := range corpus {
		text, calls, _ := p.answer(request(allTools, llm.User(tc.say)), testNow)
		var got []string
		for _, c := range calls {
			got = append(got, c.Name+" "+string(c.Args))
		}
		if len(got) == 0 {
			got = []string{intentOf(p, tc.say, allTools)}
		}
		if len(got) != len(tc.want) {
			t.Errorf("%q: got %q (%.60q), want %q", tc.say, got, text, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%q: got %s, want %s", tc.say, got[i], tc.want[i])
			}
		}
	}
}

// intentOf returns the intent of the first step of a request.
func intentOf(p *Provider, text string, tools []string) string {
	tn := newTurn(p.rows, request(tools, llm.User(text)), testNow)
	if s := tn.plan(text)[0][0]; s.row != nil {
		return s.row.intent
	}
	return "unknown"
}

var corpus = []struct {
	say  string
	want []string
}{
	// reading
	{"show notes.txt", []string{`read {"path":"notes.txt"}`}},
	{"Could you please open README.md?", []string{`read {"path":"README.md"}`}},
	{"what does config.json say", []string{`read {"path":"config.json"}`}},
	{"what's in notes.txt", []string{`read {"path":"notes.txt"}`}},
	{"cat src/main.go", []string{`read {"path":"src/main.go"}`}},
	{"read a.txt and b.txt", []string{`read {"path":"a.txt"}`, `read {"path":"b.txt"}`}},
	{"Can you read the file 'my notes.txt' for me", []string{`read {"path":"my notes.txt"}`}},
	{"let me see the contents of Makefile", []string{`read {"path":"Makefile"}`}},
	{"notes.txt", []string{`read {"path":"notes.txt"}`}},
	{"take a look at docs/guide.md please", []string{`read {"path":"docs/guide.md"}`}},
	{"看看 notes.txt 里写了什么", []string{`read {"path":"notes.txt"}`}},
	{"看看notes.txt里写了什么", []string{`read {"path":"notes.txt"}`}},
	{"请帮我打开 README.md", []string{`read {"path":"README.md"}`}},
	{"把 a.txt 读给我看", []string{`read {"path":"a.txt"}`}},
	{"读取计划.md", []string{`read {"path":"计划.md"}`}},
	{"读一下 a.txt 和 b.txt", []string{`read {"path":"a.txt"}`, `read {"path":"b.txt"}`}},
	{"notes.txt 的内容是什么？", []string{`read {"path":"notes.txt"}`}},
	{"麻烦显示一下config.yaml的内容", []string{`read {"path":"config.yaml"}`}},
	// folders
	{"list files", []string{`ls {"path":"."}`}},
	{"ls", []string{`ls {"path":"."}`}},
	{"ls src", []string{`ls {"path":"src"}`}},
	{"list the files in src", []string{`ls {"path":"src"}`}},
	{"What files are in this folder?", []string{`ls {"path":"."}`}},
	{"show me what's in the src directory", []string{`ls {"path":"src"}`}},
	{"what is in the docs folder", []string{`ls {"path":"docs"}`}},
	{"show the src folder", []string{`ls {"path":"src"}`}},
	{"what do I have here", []string{`ls {"path":"."}`}},
	{"list everything in internal/llm", []string{`ls {"path":"internal/llm"}`}},
	{"show me the files in src/", []string{`ls {"path":"src/"}`}},
	{"把当前目录列出来", []string{`ls {"path":"."}`}},
	{"列出 src 目录下的文件", []string{`ls {"path":"src"}`}},
	{"看看当前目录有哪些文件", []string{`ls {"path":"."}`}},
	{"src 文件夹里有什么", []string{`ls {"path":"src"}`}},
	{"这里有什么文件", []string{`ls {"path":"."}`}},
	{"列出文件", []string{`ls {"path":"."}`}},
	{"列出这里的文件", []string{`ls {"path":"."}`}},
	{"显示一下这儿的所有文件", []string{`ls {"path":"."}`}},
	{"工作区里都有哪些文件？", []string{`ls {"path":"."}`}},
	{"查看docs目录", []string{`ls {"path":"docs"}`}},
	// search
	{"search for TODO in src", []string{`grep {"ignoreCase":false,"literal":true,"path":"src","pattern":"TODO"}`}},
	{"grep \"func main\" in cmd", []string{`grep {"ignoreCase":true,"literal":true,"path":"cmd","pattern":"func main"}`}},
	{"find all occurrences of FooBar", []string{`grep {"ignoreCase":false,"literal":true,"pattern":"FooBar"}`}},
	{"which files contain the word deadline?", []string{`grep {"ignoreCase":true,"literal":true,"pattern":"deadline"}`}},
	{"search src for TODO", []string{`grep {"ignoreCase":false,"literal":true,"path":"src","pattern":"TODO"}`}},
	{"look for \"apple pie\" in notes.txt",
		[]string{`grep {"ignoreCase":true,"literal":true,"path":"notes.txt","pattern":"apple pie"}`}},
	{"find the text 'hello' in the docs folder",
		[]string{`grep {"ignoreCase":true,"literal":true,"path":"docs","pattern":"hello"}`}},
	{"where is ParseRef used?", []string{`grep {"ignoreCase":false,"literal":true,"pattern":"ParseRef"}`}},
	{"在 src 里搜索 TODO", []string{`grep {"ignoreCase":false,"literal":true,"path":"src","pattern":"TODO"}`}},
	{"在src里搜索TODO", []string{`grep {"ignoreCase":false,"literal":true,"path":"src","pattern":"TODO"}`}},
	{"搜索一下“截止日期”", []string{`grep {"ignoreCase":true,"literal":true,"pattern":"截止日期"}`}},
	{"哪些文件包含 deadline", []string{`grep {"ignoreCase":true,"literal":true,"pattern":"deadline"}`}},
	{"帮我在 notes.txt 中查找 苹果", []string{`grep {"ignoreCase":true,"literal":true,"path":"notes.txt","pattern":"苹果"}`}},
	// names
	{"find all .go files", []string{`find {"pattern":"*.go"}`}},
	{"find *.md in docs", []string{`find {"path":"docs","pattern":"*.md"}`}},
	{"list all python files", []string{`find {"pattern":"*.py"}`}},
	{"find files named config.json", []string{`find {"pattern":"config.json"}`}},
	{"where is main.go?", []string{`find {"pattern":"main.go"}`}},
	{"are there any markdown files in docs?", []string{`find {"path":"docs","pattern":"*.md"}`}},
	{"find the file called report", []string{`find {"pattern":"*report*"}`}},
	{"找出所有 .go 文件", []string{`find {"pattern":"*.go"}`}},
	{"查找名为 config.json 的文件", []string{`find {"pattern":"config.json"}`}},
	{"main.go 在哪里", []string{`find {"pattern":"main.go"}`}},
	{"有哪些 markdown 文件", []string{`find {"pattern":"*.md"}`}},
	// commands
	{"run `git status`", []string{`exec {"command":"git status"}`}},
	{"run ls -la", []string{`exec {"command":"ls -la"}`}},
	{"please execute the command \"echo hi\"", []string{`exec {"command":"echo hi"}`}},
	{"$ uname -a", []string{`exec {"command":"uname -a"}`}},
	{"执行 `git status`", []string{`exec {"command":"git status"}`}},
	{"运行命令 echo hi", []string{`exec {"command":"echo hi"}`}},
	{"运行一下 go version", []string{`exec {"command":"go version"}`}},
	{"git log", []string{`exec {"command":"git log"}`}},
	{"what time is it?", []string{`session_status {}`}},
	{"现在几点了", []string{`session_status {}`}},
	{"今天星期几？", []string{`session_status {}`}},
	{"what's the date today", []string{`session_status {}`}},
	{"status", []string{`session_status {}`}},
	{"how many tokens have I used?", []string{`session_status {}`}},
	{"which model are you using?", []string{`session_status {}`}},
	{"你用的是什么模型", []string{`session_status {}`}},
	// writing
	{"create hello.txt with 'hi'", []string{`write {"content":"hi\n","path":"hello.txt"}`}},
	{"create a file called todo.md with the content \"buy milk\"",
		[]string{`write {"content":"buy milk\n","path":"todo.md"}`}},
	{"make a new note named ideas.txt that says build a boat",
		[]string{`write {"content":"build a boat\n","path":"ideas.txt"}`}},
	{"write \"hello world\" to out.txt", []string{`write {"content":"hello world\n","path":"out.txt"}`}},
	{"save 'x = 1' as conf.ini", []string{`write {"content":"x = 1\n","path":"conf.ini"}`}},
	{"新建 hello.txt，内容是“你好”", []string{`write {"content":"你好\n","path":"hello.txt"}`}},
	{"创建一个文件 a.txt，写入 hello", []string{`write {"content":"hello\n","path":"a.txt"}`}},
	{"把“买牛奶”写到 todo.txt", []string{`write {"content":"买牛奶\n","path":"todo.txt"}`}},
	{"帮我新建一个叫 todo.md 的文件，内容为 买菜", []string{`write {"content":"买菜\n","path":"todo.md"}`}},
	{"append \"eggs\" to list.txt", []string{`read {"path":"list.txt"}`}},
	{"add a line saying done to log.txt", []string{`read {"path":"log.txt"}`}},
	{"在 list.txt 末尾追加“鸡蛋”", []string{`read {"path":"list.txt"}`}},
	{"replace \"old\" with \"new\" in notes.txt", []string{`edit {"newText":"new","oldText":"old","path":"notes.txt"}`}},
	{"in notes.txt change foo to bar", []string{`edit {"newText":"bar","oldText":"foo","path":"notes.txt"}`}},
	{"把 notes.txt 里的“旧”改成“新”", []string{`edit {"newText":"新","oldText":"旧","path":"notes.txt"}`}},
	{"将config.ini中的debug替换为info", []string{`edit {"newText":"info","oldText":"debug","path":"config.ini"}`}},
	// memory
	{"remember that my car is blue", []string{`read {"path":"MEMORY.md"}`}},
	{"记住我的车是蓝色的", []string{`read {"path":"MEMORY.md"}`}},
	{"what do you remember about my car?", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"car"}`}},
	{"你还记得我的车吗", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"车"}`}},
	{"what did I say about Ann?", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"Ann"}`}},
	{"what color is my car?", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"color|car"}`}},
	{"what's my favorite color?", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"color"}`}},
	// web and reminders
	{"fetch https://example.com/a?b=c", []string{`web_fetch {"url":"https://example.com/a?b=c"}`}},
	{"open example.com", []string{`web_fetch {"url":"https://example.com"}`}},
	{"打开 https://example.com 看看", []string{`web_fetch {"url":"https://example.com"}`}},
	{"open https://example.com in the browser and show it",
		[]string{`browser {"action":"open","url":"https://example.com"}`}},
	{"show me example.com in the browser", []string{`browser {"action":"open","url":"https://example.com"}`}},
	{"draw a lighthouse at night", []string{`image_generate {"prompt":"a lighthouse at night"}`}},
	{"please paint me a picture of two cats, one black and one white",
		[]string{`image_generate {"prompt":"two cats, one black and one white"}`}},
	{"make a picture of our garden", []string{`image_generate {"prompt":"our garden"}`}},
	{"画一座灯塔", []string{`image_generate {"prompt":"一座灯塔"}`}},
	{"帮我画一张夜里的灯塔", []string{`image_generate {"prompt":"夜里的灯塔"}`}},
	{"生成一张猫的图片", []string{`image_generate {"prompt":"猫"}`}},
	{"用浏览器打开 https://example.com", []string{`browser {"action":"open","url":"https://example.com"}`}},
	{"look through docs and src at the same time and tell me where the word budget occurs", []string{
		`sessions_spawn {"label":"docs","task":"search for \"budget\" in docs"}`,
		`sessions_spawn {"label":"src","task":"search for \"budget\" in src"}`}},
	{"search docs, src & cmd in parallel for TODO", []string{
		`sessions_spawn {"label":"docs","task":"search for \"TODO\" in docs"}`,
		`sessions_spawn {"label":"src","task":"search for \"TODO\" in src"}`,
		`sessions_spawn {"label":"cmd","task":"search for \"TODO\" in cmd"}`}},
	{"同时在 docs 和 src 里搜索 TODO", []string{
		`sessions_spawn {"label":"docs","task":"search for \"TODO\" in docs"}`,
		`sessions_spawn {"label":"src","task":"search for \"TODO\" in src"}`}},
	{"start a subagent to check the links", []string{`sessions_spawn {"task":"check the links"}`}},
	{"启动一个子代理去检查链接", []string{`sessions_spawn {"task":"检查链接"}`}},
	{"remind me in 20 minutes to call Ann", []string{`cron {"action":"add","job":{"deleteAfterRun":true,"name":"call Ann","payload":{"kind":"systemEvent","text":"call Ann"},` +
		`"schedule":{"at":"2026-11-25T10:50:00+01:00","kind":"at"},"sessionTarget":"main","wakeMode":"now"}}`}},
	{"每天早上8点提醒我吃药", []string{`cron {"action":"add","job":{"name":"吃药","payload":{"kind":"systemEvent","text":"吃药"},` +
		`"schedule":{"expr":"0 8 * * *","kind":"cron","staggerMs":0,"tz":"Europe/Berlin"},"sessionTarget":"main","wakeMode":"now"}}`}},
	// conversation
	{"hi", []string{"greet"}}, {"你好", []string{"greet"}}, {"hello there!", []string{"greet"}}, {"早上好", []string{"greet"}},
	{"help", []string{"help"}}, {"what can you do?", []string{"help"}}, {"你能做什么？", []string{"help"}},
	{"帮助", []string{"help"}},
	{"thanks!", []string{"thanks"}}, {"thank you so much", []string{"thanks"}}, {"谢谢你", []string{"thanks"}},
	{"who are you?", []string{"help"}}, {"你是谁", []string{"help"}}, {"are you a language model?", []string{"help"}},
	{"undo", []string{"undo"}}, {"undo that!", []string{"undo"}}, {"please undo the last change", []string{"undo"}},
	{"put it back", []string{"undo"}}, {"撤销", []string{"undo"}}, {"撤销刚才的修改", []string{"undo"}},
	{"write me a poem about the sea", []string{"unknown"}}, {"translate this into French", []string{"unknown"}},
	{"为什么天是蓝的", []string{"unknown"}},
	// from other people
	{"show files", []string{`ls {"path":"."}`}},
	{"list contents of ./src", []string{`ls {"path":"./src"}`}},
	{"hey, could you look in the logs folder and tell me what's there", []string{`ls {"path":"logs"}`}},
	{"pull up the README.md file", []string{`read {"path":"README.md"}`}},
	{"is the word banana in notes.txt?",
		[]string{`grep {"ignoreCase":true,"literal":true,"path":"notes.txt","pattern":"banana"}`}},
	{"look for files with \"report\" in the name", []string{`find {"pattern":"*report*"}`}},
	{"find \"TODO\" in *.go", []string{`grep {"glob":"*.go","ignoreCase":false,"literal":true,"pattern":"TODO"}`}},
	{"please run: echo \"hello world\"", []string{`exec {"command":"echo \"hello world\""}`}},
	{"run git commit -m \"fix it\"", []string{`exec {"command":"git commit -m \"fix it\""}`}},
	{"run this in the background: count files", []string{`sessions_spawn {"task":"count files"}`}},
	{"write the following to a.txt: one two three", []string{`write {"content":"one two three\n","path":"a.txt"}`}},
	{"append a line to c.txt: third", []string{`read {"path":"c.txt"}`}},
	{"what am I allergic to?", []string{`grep {"ignoreCase":true,"path":"MEMORY.md","pattern":"allergic"}`}},
	{"把下面的话写进 diary.txt：今天很开心", []string{`write {"content":"今天很开心\n","path":"diary.txt"}`}},
	{"看看有哪些文件", []string{`ls {"path":"."}`}},
	{"全局搜索 foo", []string{`grep {"ignoreCase":true,"literal":true,"pattern":"foo"}`}},
	{"找名字里有 report 的文件", []string{`find {"pattern":"*report*"}`}},
	{"有没有叫 notes.txt 的文件", []string{`find {"pattern":"notes.txt"}`}},
	{"跑一下 go test ./...", []string{`exec {"command":"go test ./..."}`}},
	{"先列出文件，再打开 README.md", []string{`ls {"path":"."}`}},
	{"Show everything in the folder \"my docs\"", []string{`ls {"path":"my docs"}`}},
	{"Run the following command: ls | wc -l", []string{`exec {"command":"ls | wc -l"}`}},
	{"execute the script build.sh", []string{`exec {"command":"sh build.sh"}`}},
	{"insert \"header\" into a.csv", []string{`read {"path":"a.csv"}`}},
	{"are there any TODOs in the code?", []string{`grep {"ignoreCase":false,"literal":true,"pattern":"TODO"}`}},
	{"my name is Bob, remember that", []string{`read {"path":"MEMORY.md"}`}},
	{"let a subagent write the report", []string{`sessions_spawn {"task":"write the report"}`}},
	{"文件夹 images 下有什么", []string{`ls {"path":"images"}`}},
	// several requests
	{"list files and show notes.txt", []string{`ls {"path":"."}`, `read {"path":"notes.txt"}`}},
	{"create hello.txt with 'hi' then show it", []string{`write {"content":"hi\n","path":"hello.txt"}`}},
	{"新建 a.txt，内容是 hi，然后看看它", []string{`write {"content":"hi\n","path":"a.txt"}`}},
	{"remember that I like tea and cake", []string{`read {"path":"MEMORY.md"}`}},
}
