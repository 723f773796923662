package heartbeat

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// FileName is the checklist of an agent, in its workspace.
const FileName = "HEARTBEAT.md"

// Limits of the file.
const (
	maxTasks     = 50
	maxName      = 100  // characters
	maxPrompt    = 4000 // characters of the prompt of a task
	maxChecklist = 8000 // characters of the rest
)

// File is the content of HEARTBEAT.md.
type File struct {
	// Text is the file without its tasks and comments; empty: it contains no instructions.
	Text  string
	Tasks []Task
	// Problems are the tasks that were left out, one line each.
	Problems []string
}

// Empty reports whether there is nothing to do.
func (f File) Empty() bool { return f.Text == "" && len(f.Tasks) == 0 }

// Task is a task with an interval of its own.
type Task struct {
	Name   string
	Every  time.Duration
	Prompt string
}

// ParseFile reads HEARTBEAT.md. Blank lines, headings, fences, empty list items and HTML
// comments are no instructions. Tasks follow a line "tasks:", each as a list item with
// name, interval and prompt. The list ends with the first other line that is not indented.
func ParseFile(text string) File {
	var f File
	var rest []string
	var tasks tasksReader
	instructions := false
	for line := range strings.SplitSeq(withoutComments(strings.ReplaceAll(text, "\r\n", "\n")), "\n") {
		if tasks.open && tasks.line(line) {
			continue
		}
		tasks.open = false
		if strings.TrimRight(line, " \t") == "tasks:" && !tasks.seen {
			tasks.open, tasks.seen = true, true
			continue
		}
		rest = append(rest, line)
		instructions = instructions || !blank().MatchString(strings.TrimSpace(line))
	}
	if instructions {
		f.Text = humanize.Truncate(strings.TrimSpace(strings.Join(rest, "\n")), maxChecklist)
	}
	for i, t := range tasks.list {
		t.prompt = strings.TrimSpace(t.prompt)
		every, err := humanize.ParseDuration(t.interval)
		what := fmt.Sprintf("task %d", i+1)
		if t.name != "" {
			what = fmt.Sprintf("task %q", humanize.Truncate(t.name, maxName))
		}
		switch {
		case len(f.Tasks) == maxTasks:
			f.Problems = append(f.Problems, fmt.Sprintf("there are more than %d tasks", maxTasks))
			return f
		case t.name == "" || t.prompt == "":
			f.Problems = append(f.Problems, what+": name and prompt are required")
		case len([]rune(t.name)) > maxName || len([]rune(t.prompt)) > maxPrompt:
			f.Problems = append(f.Problems, fmt.Sprintf("%s: the name has more than %d or the prompt more than %d characters",
				what, maxName, maxPrompt))
		case err != nil || every <= 0:
			f.Problems = append(f.Problems,
				fmt.Sprintf("%s: %q is not an interval such as 30m", what, humanize.Truncate(t.interval, 40)))
		case slices.ContainsFunc(f.Tasks, func(o Task) bool { return o.Name == t.name }):
			f.Problems = append(f.Problems, what+": the name is used twice")
		default:
			f.Tasks = append(f.Tasks, Task{Name: t.name, Every: every, Prompt: t.prompt})
		}
	}
	return f
}

// blank matches lines without instructions.
var blank = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^(|#+(\\s.*)?|[-*+](\\s*\\[[ xX]?\\])?|```.*|~~~.*|---+)$")
})

// withoutComments returns the text without HTML comments.
func withoutComments(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "<!--")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "-->")
	}
}

// tasksReader reads the lines after "tasks:".
type tasksReader struct {
	seen, open bool
	list       []rawTask
	field      *string // that continues on further lines; nil: none
}

type rawTask struct{ name, interval, prompt string }

// line reads a line, and reports whether it belongs to the tasks.
func (r *tasksReader) line(s string) bool {
	text := strings.TrimSpace(s)
	if text == "" {
		return true
	}
	indented := s[0] == ' ' || s[0] == '\t'
	item, isItem := strings.CutPrefix(text, "- ")
	key, value, ok := strings.Cut(item, ":")
	known := ok && slices.Contains([]string{"name", "interval", "prompt"}, key)
	switch {
	case isItem && known:
		if len(r.list) <= maxTasks {
			r.list = append(r.list, rawTask{})
		}
	case !indented || len(r.list) == 0:
		return false
	case isItem || !known:
		if r.field != nil {
			*r.field += "\n" + text
		}
		return true
	}
	t := &r.list[len(r.list)-1]
	r.field = map[string]*string{"name": &t.name, "interval": &t.interval, "prompt": &t.prompt}[key]
	*r.field = unquote(strings.TrimSpace(value))
	if key != "prompt" {
		r.field = nil
	}
	return true
}

// unquote removes quotation marks around a value, and the sign of a block of lines.
func unquote(s string) string {
	if s == "|" || s == ">" {
		return ""
	}
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// Due returns the tasks that are due at the tick. done is when they were last done. A task
// that is not in done counts from base, the tick before.
func (f File) Due(done map[string]time.Time, base, tick time.Time) (due []Task) {
	for _, t := range f.Tasks {
		last, ok := done[t.Name]
		if !ok || last.After(tick) { // the clock was set back
			last = base
		}
		if tick.Sub(last) >= t.Every {
			due = append(due, t)
		}
	}
	return due
}

// Remember returns the times of the tasks of the file. A task that was not seen before
// gets base.
func (f File) Remember(done map[string]time.Time, base time.Time) map[string]time.Time {
	if len(f.Tasks) == 0 {
		return nil
	}
	out := map[string]time.Time{}
	for _, t := range f.Tasks {
		last, ok := done[t.Name]
		if !ok {
			last = base
		}
		out[t.Name] = last
	}
	return out
}
