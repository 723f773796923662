package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/tool"
)

const (
	defaultMaxResult = 64_000
	noOutput         = "(no output)"
)

// failure is the result of a call that went wrong, in a form that models know.
func failure(name, text string) tool.Result {
	b, err := json.Marshal(struct {
		Status string `json:"status"`
		Tool   string `json:"tool"`
		Error  string `json:"error"`
	}{"error", name, text})
	if err != nil {
		b = []byte(text)
	}
	return tool.Result{Content: []llm.Part{llm.Text(string(b))}, IsError: true}
}

// clean returns r without known secrets and without the content of pictures: it
// is stored, shown and sent to a model.
func (d *Door) clean(r tool.Result) tool.Result {
	parts := slices.Clone(r.Content)
	for i := range parts {
		parts[i].Text = d.redact(parts[i].Text)
		if d.keep != nil && parts[i].Kind == llm.PartImage {
			parts[i] = d.keep(parts[i])
		}
	}
	r.Content = parts
	if r.Details != nil {
		r.Details = json.RawMessage(d.redact(string(r.Details)))
	}
	if r.Args != nil {
		r.Args = json.RawMessage(d.redact(string(r.Args)))
	}
	return r
}

// bounded returns r with content that can be sent: never empty, and with at
// most limit characters of text (0: 64,000). Of what is longer the head and the
// tail stay, since errors are often at the end.
func bounded(r tool.Result, limit int) tool.Result {
	if limit <= 0 {
		limit = defaultMaxResult
	}
	var parts []llm.Part
	for _, p := range r.Content {
		switch {
		case p.Kind == llm.PartImage && p.Size() > 0:
			parts = append(parts, p)
		case p.Kind == llm.PartText && strings.TrimSpace(p.Text) != "":
			p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
			n := utf8.RuneCountInString(p.Text)
			if n > limit {
				p.Text = middleOut(p.Text, n, limit)
			}
			limit = max(limit-n, 200)
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		parts = []llm.Part{llm.Text(noOutput)}
	}
	r.Content = parts
	if !json.Valid(r.Details) {
		r.Details = nil
	}
	return r
}

// middleOut takes the middle out of s, which has n runes, so that keep remain.
func middleOut(s string, n, keep int) string {
	head := offset(s, keep*3/4)
	tail := offset(s, n-keep/4)
	return s[:head] + fmt.Sprintf("\n[… %d of %d characters left out; ask for a part (offset, limit, a filter) to see them …]\n", n-keep, n) + s[tail:]
}

// offset returns the byte offset of the rune with number i.
func offset(s string, i int) int {
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

// clip returns at most n bytes of s, cut between runes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
