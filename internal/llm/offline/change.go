package offline

import (
	"slices"
	"strings"
)

// shell runs a command of the assistant's own making.
func shell(about, command string) *step {
	return &step{about: about, calls: []call{{"exec", map[string]any{"command": command}}}}
}

// runCommand runs the person's command.
func runCommand(t *turn, m match) *step {
	c := strings.TrimSpace(m.get("c"))
	first, rest, _ := strings.Cut(strings.ToLower(c), " ")
	switch {
	case c == "", slices.Contains([]string{"the", "a", "an", "my", "some", "this", "that", "it", "all", "in", "tests", "command", "commands"}, first) && !strings.HasPrefix(m.groups["c"], "\ue300"):
		return &step{ask: "command", answer: t.say(askCommand)}
	case langOf(first) == chinese, strings.HasPrefix(rest, "is ") || strings.HasPrefix(rest, "are "):
		return nil
	case strings.HasSuffix(first, ".sh"):
		c = "sh " + c
	case strings.HasSuffix(first, ".py"):
		c = "python3 " + c
	}
	args := map[string]any{"command": c}
	if m.has("d") {
		if d := place(m.get("d")); d != "" {
			args["workdir"] = d
		}
	}
	return &step{about: "`" + c + "`", calls: []call{{"exec", args}}}
}

// fetch gets a page.
func fetch(t *turn, m match) *step {
	urls := m.all(urlMark)
	if m.has("site") {
		site := m.get("site")
		host, _, _ := strings.Cut(strings.ToLower(site), "/")
		if !slices.Contains(strings.Fields("com org net io dev ai cn de uk fr jp edu gov info co me app xyz eu ru"), host[strings.LastIndexByte(host, '.')+1:]) {
			return nil
		}
		urls = []string{"https://" + site}
	}
	if len(urls) == 0 {
		return &step{ask: "url", answer: t.say(askURL)}
	}
	s := &step{about: t.say(words{"fetch ", "抓取 "}) + strings.Join(urls, ", ")}
	for _, u := range urls {
		if strings.HasPrefix(strings.ToLower(u), "www.") {
			u = "https://" + u
		}
		if t.tools["web_fetch"] || !t.tools["exec"] {
			s.calls = append(s.calls, call{"web_fetch", map[string]any{"url": u}})
			continue
		}
		s.calls = append(s.calls, call{"exec", map[string]any{"command": "curl -sSL --max-time 20 -- " + quoteShell(u)}})
	}
	return s
}

func webSearch(t *turn, m match) *step {
	return &step{about: t.say(words{"search the web for ", "上网搜索 "}) + m.get("q"), calls: []call{{"web_search", map[string]any{"query": m.get("q")}}}}
}

// replace changes a text in a file.
func replace(t *turn, m match) *step {
	p, o, n := m.one(), m.get("o"), m.get("n")
	if p == "" {
		return &step{ask: "file", answer: t.say(askFile)}
	}
	if o == "" {
		return nil
	}
	return &step{
		about: t.say(words{"replace text in ", "替换文字："}) + p,
		calls: []call{{"edit", map[string]any{"path": p, "oldText": o, "newText": n}}},
	}
}

// write makes a file.
func write(t *turn, m match) *step {
	p := m.one()
	if p == "" || len(m.groups) == 0 {
		return &step{ask: "content", answer: t.say(askContent)}
	}
	text := m.get("t")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return &step{about: t.say(words{"write ", "写入 "}) + p, calls: []call{{"write", map[string]any{"path": p, "content": text}}}}
}

// appendTo adds a line to the end of a file.
func appendTo(t *turn, m match) *step {
	p, text := m.one(), m.get("t")
	if p == "" {
		return &step{ask: "file", answer: t.say(askFile)}
	}
	if text == "" {
		return &step{ask: "content", answer: t.say(askContent)}
	}
	return addLine(t.say(words{"add to ", "追加到 "})+p, p, "", text)
}

// addLine reads a file and adds a line with an edit of its last lines, so that
// nothing else in it changes; a file that is not there is written with head
// before the line.
func addLine(about, path, head, line string) *step {
	s := &step{about: about, calls: []call{{"read", map[string]any{"path": path}}}, missing: absent}
	s.then = func(done []result) []call {
		if len(done) == 0 {
			return nil
		}
		r := done[0]
		body, next := page(r)
		empty := !forms().numbered.MatchString(r.text)
		switch {
		case r.bad, empty && strings.HasSuffix(firstLine(r.text), "is empty."):
			return []call{{"write", map[string]any{"path": path, "content": head + line + "\n"}}}
		case empty:
			return nil
		case next > 0 || strings.Contains(r.text, "[line cut]") || strings.Contains(r.text, "Values are masked"):
			return []call{{"exec", map[string]any{"command": "printf '%s\\n' " + quoteShell(line) + " >> " + quoteShell(path)}}}
		}
		end := ending(body)
		return []call{{"edit", map[string]any{"path": path, "oldText": end, "newText": end + "\n" + line}}}
	}
	s.render = func(t *turn, s *step) string {
		if n := len(s.done); n > 1 {
			return t.show(s.done[n-1])
		}
		return t.say(failedText, "`"+path+"`", clip(firstLine(s.done[0].text), 300))
	}
	return s
}

// ending returns the shortest run of last lines that occurs once in a file, as
// the read tool shows it.
func ending(shown string) string {
	var rows []string
	for row := range strings.Lines(shown) {
		if loc := forms().numbered.FindStringIndex(row); loc != nil {
			rows = append(rows, strings.TrimRight(row[loc[1]:], "\n"))
		}
	}
	whole := strings.Join(rows, "\n")
	for i := len(rows) - 1; i > 0; i-- {
		if end := strings.Join(rows[i:], "\n"); strings.TrimSpace(end) != "" && strings.Count(whole, end) == 1 {
			return end
		}
	}
	return whole
}

// absent says that a file is not there, which is no failure for adding to it.
func absent(r result) bool {
	text := strings.ToLower(r.text)
	return r.bad && r.call.Name == "read" &&
		(strings.Contains(text, "does not exist") || strings.Contains(text, "no such file") || strings.Contains(text, "not found") || strings.Contains(text, "enoent"))
}

func mkdir(t *turn, m match) *step {
	return shell(t.say(words{"create a folder", "新建文件夹"}), "mkdir -p -- "+quoteShell(m.get("p")))
}

// copyMove copies or renames a file and overwrites none.
func copyMove(t *turn, m match) *step {
	program := "mv -n"
	if v := strings.ToLower(m.get("v")); v == "copy" || v == "cp" || v == "duplicate" || v == "复制" || v == "拷贝" {
		program = "cp -rn"
	}
	m.at.path = m.get("d")
	return shell(m.get("v"), program+" -- "+quoteShell(m.get("p"))+" "+quoteShell(m.get("d")))
}

func remove(t *turn, m match) *step {
	ps := m.paths()
	if len(ps) == 0 {
		return &step{ask: "file", answer: t.say(askFile)}
	}
	return shell(t.say(words{"delete", "删除"}), "rm -- "+quoteAll(ps))
}
