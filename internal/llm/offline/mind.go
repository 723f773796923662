package offline

import (
	"runtime"
	"strconv"
	"strings"
	"unicode"
)

// status tells the session's state.
func status(t *turn, _ match) *step {
	return &step{
		about: t.say(words{"the state of the session", "会话状态"}), calls: []call{{"session_status", map[string]any{}}},
		render: func(t *turn, s *step) string { return fence(s.done[0].text) },
	}
}

// clock tells the time: the session's, or the machine's.
func clock(t *turn, m match) *step {
	if !t.tools["session_status"] && t.tools["exec"] {
		return shell(t.say(words{"the time", "时间"}), "date")
	}
	s := status(t, m)
	s.render = func(t *turn, s *step) string {
		for line := range strings.Lines(s.done[0].text) {
			if when, ok := strings.CutPrefix(line, "Time: "); ok {
				return t.say(words{"It is %s.", "现在是 %s。"}, strings.TrimSpace(when))
			}
		}
		return fence(s.done[0].text)
	}
	return s
}

// command returns a make that runs a fixed command.
func command(about words, line string) func(*turn, match) *step {
	return func(t *turn, _ match) *step { return shell(t.say(about), line) }
}

// freeCommand shows the memory on this system.
func freeCommand() string {
	if runtime.GOOS == "darwin" {
		return "vm_stat"
	}
	return "free -h"
}

// machine looks at the system.
func machine(t *turn, m match) *step {
	for _, c := range [][2]string{{"ps", "ps aux"}, {"uname", "uname -a"}, {"who", "whoami"}, {"pwd", "pwd"}, {"ip", "hostname -I"}} {
		if m.has(c[0]) {
			return shell(c[1], c[1])
		}
	}
	return shell("uptime", "uptime")
}

// git looks at the repository.
func git(t *turn, m match) *step {
	switch {
	case m.has("cmd"):
		return shell("git", m.get("cmd"))
	case m.has("log"):
		n := 10
		for f := range strings.FieldsFuncSeq(m.text, func(r rune) bool { return !unicode.IsDigit(r) }) {
			if v, err := strconv.Atoi(f); err == nil && v > 0 && v <= 500 {
				n = v
			}
		}
		for f := range strings.FieldsSeq(m.text) {
			if v := numeral(f); v > 1 && v <= 500 {
				n = v
			}
		}
		return shell("git log", "git log --oneline -n "+strconv.Itoa(n))
	case m.has("diff"):
		return shell("git diff", "git diff")
	case m.has("branch"):
		return shell("git branch", "git branch")
	}
	return shell("git status", "git status")
}

// sum calculates.
func sum(t *turn, m match) *step {
	x := strings.TrimSpace(m.get("x"))
	if !strings.ContainsAny(x, "+-*/^%×÷") && !strings.ContainsFunc(x, unicode.IsLetter) {
		return nil
	}
	v, err := calculate(strings.ToLower(x))
	if err != nil {
		return &step{answer: t.say(noMathText, x, err.Error())}
	}
	return &step{answer: t.say(mathText, x, v)}
}

// memoryFile is where notes are kept.
const memoryFile = "MEMORY.md"

// remember adds a line to the memory.
func remember(t *turn, m match) *step {
	text := strings.Join(strings.Fields(m.get("t")), " ")
	if text == "" {
		return &step{ask: "note", answer: t.say(askNote)}
	}
	s := addLine(t.say(words{"remember: ", "记住："})+text, memoryFile, "# Memory\n\n", "- "+text)
	s.render = func(t *turn, _ *step) string { return t.say(savedText, text) }
	return s
}

// fillers are words that tell nothing of what is asked for.
var fillers = strings.Fields("the my mine your our about that this what when where which who whom whose was were are is did does have has had say said told tell you know anything everything favorite favourite for with and 什么 哪里 哪些 多少 我的 关于 告诉 时候 的事 事情 一下 最喜 喜欢")

// recall shows the notes that are about something, all when it is about
// nothing. The search is by words: what it does not find may still be there,
// so with no match everything is shown when it is little.
func recall(t *turn, m match) *step {
	q := strings.TrimSpace(m.get("q"))
	s := &step{about: t.say(words{"recall ", "回忆 "}) + q, calls: []call{{"read", map[string]any{"path": memoryFile}}}, missing: absent}
	s.render = func(t *turn, s *step) string {
		var notes []string
		for row := range strings.Lines(s.done[0].text) {
			row = strings.TrimSpace(forms().numbered.ReplaceAllString(row, ""))
			if row != "" && row[0] != '#' && row[0] != '[' && !s.done[0].bad && about(row, q) {
				notes = append(notes, row)
			}
		}
		if len(notes) == 0 {
			return t.say(blankText)
		}
		return t.say(recallText, t.cap(strings.Join(notes, "\n")))
	}
	return s
}

// about reports whether a note has a word of the question.
func about(note, question string) bool {
	keys := keywords(question)
	note = strings.ToLower(note)
	for _, k := range keys {
		if strings.Contains(note, k) {
			return true
		}
	}
	return len(keys) == 0
}

// keywords returns the telling words of a question: words of three letters and
// more without their endings, and pairs of Chinese characters.
func keywords(q string) []string {
	skip := map[string]bool{}
	for _, w := range fillers {
		skip[w] = true
	}
	var keys []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(q), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if langOf(w) == chinese {
			rs := []rune(w)
			if len(rs) == 1 {
				keys = append(keys, w)
			}
			for i := 0; i+1 < len(rs); i++ {
				if pair := string(rs[i : i+2]); !skip[pair] {
					keys = append(keys, pair)
				}
			}
			continue
		}
		if len(w) > 2 && !skip[w] {
			keys = append(keys, strings.TrimSuffix(w, "s"))
		}
	}
	return keys
}

// spawn starts a subagent.
func spawn(t *turn, m match) *step {
	task := strings.TrimSpace(m.get("task"))
	if task == "" {
		return &step{ask: "task", answer: t.say(askTask)}
	}
	return &step{about: t.say(words{"start a subagent: ", "启动子代理："}) + clip(task, 100), calls: []call{{"sessions_spawn", map[string]any{"task": task}}}}
}
