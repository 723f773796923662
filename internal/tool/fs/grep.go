package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
)

const (
	defaultMatches = 100
	maxMatches     = 1000
	maxContext     = 20
	maxGrepText    = 60_000
	maxGrepLine    = 500 // bytes of a line that are shown
	maxGrepTime    = 20 * time.Second
	searchedLine   = 256 << 10 // bytes of a line that are searched
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignoreCase"`
	Context    int    `json:"context"`
	Limit      int    `json:"limit"`
}

func (a grepArgs) paths() []string { return []string{a.Path} }

func newGrep(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:     "grep",
		Label:    "Search in files",
		Effect:   tool.Reads,
		Parallel: true,
		Aliases: map[string]string{
			"query": "pattern", "regex": "pattern", "include": "glob",
			"case_insensitive": "ignoreCase", "max_results": "limit",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"pattern":{"type":"string","minLength":1,"description":"regular expression, or text with literal"},
			"path":{"type":"string","description":"file or folder to search (default: the workspace)"},
			"glob":{"type":"string","description":"only files that match, e.g. *.go"},
			"literal":{"type":"boolean","description":"the pattern is plain text"},
			"ignoreCase":{"type":"boolean"},
			"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines before and after a match"},
			"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"most matches (default 100)"}},
			"required":["pattern"],"additionalProperties":false}`),
	}, grep)
}

func grep(ctx context.Context, w *workspace, a grepArgs) (tool.Result, error) {
	w, start, err := w.at(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	s, err := newSearch(w, a)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, maxGrepTime)
	defer cancel()
	err = w.walk(limited, a.Path, start, func(name, rel string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !s.wants(rel) {
			return nil
		}
		return s.file(limited, name)
	})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		s.stopped = fmt.Sprintf("The search was stopped after %v; narrow it with path or glob.", maxGrepTime)
	case err != nil && !errors.Is(err, errEnough):
		return tool.Result{}, err
	}
	return s.result(), nil
}

// search is one grep over files.
type search struct {
	w       *workspace
	re      *regexp.Regexp
	wants   func(rel string) bool
	around  int
	limit   int
	text    strings.Builder
	found   int
	skipped int // files with more than one name
	stopped string
}

func newSearch(w *workspace, a grepArgs) (*search, error) {
	s := &search{w: w, around: min(max(a.Context, 0), maxContext), limit: a.Limit}
	if s.limit <= 0 {
		s.limit = defaultMatches
	}
	s.limit = min(s.limit, maxMatches)
	expr := a.Pattern
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	var err error
	if s.re, err = regexp.Compile(expr); err != nil {
		return nil, fmt.Errorf("%w; set literal to search for plain text", err)
	}
	s.wants = func(string) bool { return true }
	if a.Glob != "" {
		if s.wants, err = glob(a.Glob); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// file searches one file; what cannot be read is passed over.
func (s *search) file(ctx context.Context, name string) error {
	f, info, err := s.w.OpenFile(name, name)
	if err != nil {
		if info, e := s.w.Root.Stat(name); e == nil && reach.Links(info) > 1 {
			s.skipped++
		}
		return nil
	}
	defer f.Close()
	head, rest, err := beginning(f, info.Size())
	if err != nil || len(head) == 0 || binary(head) {
		return nil
	}
	l := newLines(head, rest)
	l.max = searchedLine
	return s.scan(ctx, name, l)
}

func (s *search) scan(ctx context.Context, name string, l *lines) error {
	var m *masker
	if reach.Secret(name) {
		m = &masker{}
	}
	var before []string // up to s.around lines that were not shown
	after := 0          // lines that are still to be shown
	last := 0           // line that was shown
	for i := 1; ; i++ {
		ln, err := l.next(ctx)
		if err != nil {
			return onlyContext(err)
		}
		text := strings.TrimSuffix(ln.text, "\r")
		if m != nil {
			text, _ = m.line(text)
		}
		switch {
		case s.re.MatchString(text):
			if s.found == s.limit || s.text.Len() > maxGrepText {
				s.stopped = fmt.Sprintf("Stopped after %d matches; there are more. Narrow the search.", s.found)
				return errEnough
			}
			s.found++
			if s.around > 0 && last > 0 && i-len(before) > last+1 {
				s.text.WriteString("--\n")
			}
			for j, b := range before {
				s.show(name, i-len(before)+j, "-", b)
			}
			s.show(name, i, ":", text)
			before, after, last = before[:0], s.around, i
		case after > 0:
			s.show(name, i, "-", text)
			after--
			last = i
		case s.around > 0:
			if len(before) == s.around {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, brief(text))
		}
		if ln.endless {
			return nil
		}
	}
}

// onlyContext drops what ends the search of a file but not the search.
func onlyContext(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (s *search) show(name string, line int, mark, text string) {
	fmt.Fprintf(&s.text, "%s%s%d%s %s\n", s.w.Shown(name), mark, line, mark, printable(brief(text)))
}

func brief(text string) string {
	if len(text) <= maxGrepLine {
		return text
	}
	return string(whole([]byte(text[:maxGrepLine]))) + " … [line cut]"
}

func (s *search) result() tool.Result {
	var notes []string
	if s.found == 0 {
		notes = append(notes, "No match.")
	}
	if s.stopped != "" {
		notes = append(notes, s.stopped)
	}
	if s.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d files with hard links were not searched; use exec for them.", s.skipped))
	}
	text := strings.TrimSuffix(s.text.String(), "\n")
	if len(notes) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += strings.Join(notes, " ")
	}
	return tool.Text(text + s.w.passed())
}
