package offline

import (
	"slices"
	"strconv"
	"strings"
)

// paths returns the files that a clause names, with "it" resolved.
func (m match) paths() []string {
	ps := m.all(pathMark)
	if len(ps) == 0 && m.at.path != "" {
		return []string{m.at.path}
	}
	return ps
}

// one returns the file of the group p, or the one that was spoken of last.
func (m match) one() string {
	p := m.get("p")
	switch strings.ToLower(p) {
	case "", "it", "that file", "the file", "file":
		return m.at.path
	}
	m.at.path = p
	return p
}

// read shows files.
func read(t *turn, m match) *step {
	named := m.all(pathMark)
	if len(named) > 0 && folderish(m, named) {
		return nil
	}
	ps := m.paths()
	if len(ps) == 0 {
		return &step{ask: "file", answer: t.say(askFile)}
	}
	if slices.ContainsFunc(ps, func(p string) bool { return strings.HasSuffix(p, "/") }) {
		return listing(ps[0])
	}
	s := &step{about: t.say(words{"read ", "读取 "}) + strings.Join(ps, ", ")}
	for i, p := range ps {
		if strings.EqualFold(p, "readme") {
			p = "README.md"
			ps[i] = p
		}
		s.calls = append(s.calls, call{"read", map[string]any{"path": p}})
		s.command += quoteShell(p) + " "
	}
	s.command = "cat -n -- " + strings.TrimSpace(s.command)
	if len(ps) > 1 {
		s.command = ""
	}
	if m.has("sum") {
		s.render = func(t *turn, s *step) string { return t.say(noSumText) + "\n\n" + plain(t, s) }
	}
	m.at.path = ps[len(ps)-1]
	return s
}

// plain shows results one below the other.
func plain(t *turn, s *step) string {
	var parts []string
	for _, r := range s.good() {
		parts = append(parts, t.show(r))
	}
	return strings.Join(parts, "\n\n")
}

// folderish reports whether what is named is a folder rather than a file.
func folderish(m match, ps []string) bool {
	words := strings.ToLower(m.text)
	if strings.Contains(words, "content") && !strings.HasPrefix(words, "list") && !strings.Contains(words, "folder") && !strings.Contains(words, "director") {
		return false
	}
	folder := strings.Contains(words, "folder") || strings.Contains(words, "director") || strings.Contains(words, "files") ||
		strings.Contains(words, "文件夹") || strings.Contains(words, "目录") || strings.Contains(words, "哪些文件") || strings.Contains(words, "什么文件")
	for _, p := range ps {
		last := p[strings.LastIndexByte(p, '/')+1:]
		if strings.Contains(last, ".") && strings.Trim(last, ".") != "" || forms().wordPaths.MatchString(last) {
			return false
		}
		folder = folder || strings.HasSuffix(p, "/") || strings.Trim(p, "./~") == ""
	}
	return folder || langOf(m.text) == chinese && strings.Contains(m.text, "有") || strings.HasPrefix(words, "what") || strings.HasPrefix(words, "list")
}

// place returns a folder as the tools take it, "" for the workspace.
func place(s string) string {
	s = strings.TrimSpace(s)
	for _, form := range []string{"the ", "this ", "my ", "our ", "all ", "folder ", "directory ", "dir "} {
		if rest, ok := strings.CutPrefix(strings.ToLower(s), form); ok {
			s = s[len(s)-len(rest):]
		}
	}
	for _, form := range []string{" folder", " directory", " dir", " files", " file", " project", " module", " package", "文件夹", "目录", "里面", "里", "下"} {
		if cut, ok := strings.CutSuffix(s, form); ok {
			s = strings.TrimSpace(cut)
		}
	}
	switch strings.ToLower(s) {
	case "", "current", "current working", "working", "here", "this", "it", "there", "workspace", "the workspace", "folder", "directory", "dir", "project", "files", "file",
		"everything", "repo", "repository", "code", "codebase", "present", "root", "disk", "当前", "这里", "这个", "本", "工作区", "项目", "整个项目", "这个项目", "所有文件", "所有", "文件", "代码", "仓库", "整个", ".", "./":
		return ""
	case "home", "home folder":
		return "~"
	case "parent", "parent folder", "上级", "上一级":
		return ".."
	}
	return clean(s)
}

// list lists a folder.
func list(t *turn, m match) *step {
	p := m.get("p")
	if p == "" {
		if ps := m.all(pathMark); len(ps) > 0 {
			p = ps[0]
		} else if f := folderWord.get().FindStringSubmatch(m.text); f != nil {
			p = f[1]
		}
	}
	dir := place(p)
	if len(strings.Fields(dir)) > 3 {
		return nil
	}
	m.at.path = dir
	return listing(dir)
}

// folderWord finds the name in "the src folder".
var folderWord = lazy(`(?i)\b(?:the|of|in) ([\w.\-/]+) (?:folder|directory|dir)\b`)

func listing(dir string) *step {
	args := map[string]any{}
	if dir != "" {
		args["path"] = dir
	}
	target := dir
	if target == "" {
		target = "."
	}
	return &step{about: "ls " + target, calls: []call{{"ls", args}}, command: "ls -la -- " + quoteShell(target)}
}

// grep searches the contents of files.
func grep(t *turn, m match) *step {
	q := strings.TrimSpace(m.get("q"))
	p := ""
	if m.has("p") {
		p = place(m.get("p"))
	}
	if q == "" {
		return &step{ask: "text", answer: t.say(askText)}
	}
	if len(strings.Fields(p)) > 3 || strings.HasPrefix(q, "看") || strings.HasPrefix(q, "询") {
		return nil
	}
	args := map[string]any{"pattern": q, "literal": true}
	if strings.ToLower(q) == q {
		args["ignoreCase"] = true
	}
	target := "."
	if p != "" {
		args["path"], target = p, p
		if strings.ContainsAny(p, "*?{") {
			delete(args, "path")
			args["glob"], target = p, "."
		}
	}
	return &step{
		about: t.say(words{"search for ", "搜索 "}) + q, calls: []call{{"grep", args}},
		command: "grep -rnF -- " + quoteShell(q) + " " + quoteShell(target),
	}
}

// kinds are files by what people call them.
var kinds = strings.Fields(`go:go golang:go python:py py:py markdown:md md:md javascript:js js:js typescript:ts ts:ts text:txt txt:txt 文本:txt
	rust:rs java:java c:c cpp:cpp c++:cpp html:html css:css json:json yaml:{yml,yaml} yml:yml toml:toml xml:xml csv:csv log:log logs:log pdf:pdf pdfs:pdf
	shell:sh bash:sh sh:sh script:sh scripts:sh 脚本:sh image:{png,jpg,jpeg,gif,webp} images:{png,jpg,jpeg,gif,webp} pictures:{png,jpg,jpeg,gif,webp}
	photos:{png,jpg,jpeg,gif,webp} 图片:{png,jpg,jpeg,gif,webp} 照片:{png,jpg,jpeg,gif,webp} sql:sql ruby:rb php:php swift:swift kotlin:kt config:{conf,cfg,ini,toml,yml,yaml,json}
	spreadsheets:{csv,xlsx} doc:{doc,docx} word:{doc,docx} zip:zip`)

// glob returns the pattern for what was asked.
func glob(q string) string {
	switch {
	case strings.ContainsAny(q, "*?{"):
		return q
	case strings.HasPrefix(q, ".") && strings.Count(q, ".") == 1 && !slices.Contains([]string{".env", ".gitignore", ".bashrc"}, q):
		return "*" + q
	case strings.Contains(q, ".") || forms().wordPaths.MatchString(q):
		return q
	}
	return "*" + q + "*"
}

// find finds files by name.
func find(t *turn, m match) *step {
	q := ""
	switch {
	case m.has("ext"):
		ext := strings.TrimSpace(m.get("ext"))
		for _, k := range kinds {
			if name, e, _ := strings.Cut(k, ":"); strings.EqualFold(name, ext) {
				q = "*." + e
			}
		}
		if q == "" && strings.HasPrefix(ext, ".") || strings.ContainsAny(ext, "*?") {
			q = glob(ext)
		}
		if q == "" {
			return nil
		}
	case m.has("q"):
		q = glob(strings.TrimSuffix(strings.TrimSpace(m.get("q")), " file"))
	default:
		return &step{ask: "name", answer: t.say(askName)}
	}
	args := map[string]any{"pattern": q}
	target := "."
	if m.has("p") {
		if p := place(m.get("p")); p != "" {
			args["path"], target = p, p
		}
	}
	return &step{
		about: t.say(words{"find files ", "查找文件 "}) + q, calls: []call{{"find", args}},
		command: "find " + quoteShell(target) + " -name " + quoteShell(q),
	}
}

// count counts the lines, words or bytes of files.
func count(t *turn, m match) *step {
	flag := "-l"
	switch w := strings.ToLower(m.get("w")); {
	case w == "words":
		flag = "-w"
	case strings.HasPrefix(w, "char"), strings.Contains(w, "字") && w != "字节":
		flag = "-m"
	case w == "bytes", w == "字节", w == "big", w == "large", w == "多大", w == "大小":
		flag = "-c"
	}
	ps := m.paths()
	m.at.path = ps[len(ps)-1]
	return shell(t.say(words{"count", "统计"}), "wc "+flag+" -- "+quoteAll(ps))
}

// lines shows a part of a file.
func lines(t *turn, m match) *step {
	ps := m.paths()
	p := ps[len(ps)-1]
	m.at.path = p
	if m.has("a") {
		a, _ := strconv.Atoi(m.get("a"))
		b, err := strconv.Atoi(m.get("b"))
		if err != nil || b < a {
			b = a
		}
		return &step{about: p, calls: []call{{"read", map[string]any{"path": p, "offset": max(a, 1), "limit": b - max(a, 1) + 1}}}}
	}
	n := numeral(m.get("n"))
	switch {
	case n == 0 && m.has("n") && !strings.Contains("few lines several couple", strings.ToLower(m.get("n"))):
		return nil
	case n == 0:
		n = 10
	}
	if m.has("last") {
		return shell(p, "tail -n "+strconv.Itoa(n)+" -- "+quoteShell(p))
	}
	return &step{about: p, calls: []call{{"read", map[string]any{"path": p, "limit": n}}}, command: "head -n " + strconv.Itoa(n) + " -- " + quoteShell(p)}
}

// numeral reads a number in digits or in words, 0 when it is none.
func numeral(s string) int {
	s = strings.ToLower(strings.TrimSpace(s))
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 1_000_000 {
		return n
	}
	for i, w := range strings.Fields("one/a/an/first/一 two/second/二/两 three/third/三 four/fourth/四 five/fifth/五 six/sixth/六 seven/seventh/七 eight/eighth/八 nine/ninth/九 ten/tenth/十") {
		if slices.Contains(strings.Split(w, "/"), s) {
			return i + 1
		}
	}
	for i, w := range []string{"twenty/二十", "thirty/三十", "forty/四十", "fifty/五十"} {
		if slices.Contains(strings.Split(w, "/"), s) {
			return (i + 2) * 10
		}
	}
	if s == "fifteen" || s == "十五" {
		return 15
	}
	return 0
}

// more goes on with the file that was read last.
func (t *turn) more() *step {
	r, ok := t.last(func(r result) bool { return r.call.Name == "read" })
	if !ok {
		return &step{answer: t.say(noMoreText)}
	}
	_, next := page(r)
	if next == 0 {
		return &step{answer: t.say(noMoreText)}
	}
	return &step{about: r.arg("path"), calls: []call{{"read", map[string]any{"path": r.arg("path"), "offset": next}}}}
}

// nth opens an entry of the list that was shown last.
func (t *turn) nth(groups []string) *step {
	n := 0
	for _, g := range groups {
		switch {
		case g == "":
		case g == "last" || g == "最后":
			n = -1
		default:
			n = numeral(g)
		}
	}
	r, ok := t.last(func(r result) bool { return len(entries(r)) > 0 })
	if ok && n < 0 {
		n = len(entries(r))
	}
	if !ok || n == 0 || n > len(entries(r)) {
		return &step{answer: t.say(noListText)}
	}
	p := entries(r)[n-1]
	if strings.HasSuffix(p, "/") {
		return listing(p)
	}
	return &step{about: p, calls: []call{{"read", map[string]any{"path": p}}}}
}

// quoteShell quotes a word for the shell.
func quoteShell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@,") == "" && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func quoteAll(ps []string) string {
	var out []string
	for _, p := range ps {
		out = append(out, quoteShell(p))
	}
	return strings.Join(out, " ")
}
