package forget

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// elsewhere says what no removal reaches.
const elsewhere = "What was sent to providers of models and to chat apps stays there."

// Found describes what was found, and what confirms its removal; "": nothing is said about that. It does
// not repeat the topic, because the text is stored: /forget must be able to ask whether
// something is gone.
func (r Report) Found(confirm string) string {
	if len(r.Findings) == 0 {
		return "Nothing was found about that."
	}
	var b strings.Builder
	if r.Removable() > 0 {
		b.WriteString("This would be removed:\n")
		r.write(&b, func(f Finding) bool { return f.Stays == "" }, true)
	} else {
		b.WriteString("Nothing of it can be removed.\n")
	}
	if r.Removable() < len(r.Findings) {
		b.WriteString("\nThis would stay:\n")
		r.write(&b, func(f Finding) bool { return f.Stays != "" }, true)
	}
	b.WriteString("\n" + elsewhere) // a paragraph of its own, where Markdown is shown
	if r.Removable() > 0 && confirm != "" {
		b.WriteString("\n\nTo remove it for good, which cannot be undone: " + confirm)
	}
	return b.String()
}

// Removed describes what was removed. It does not say what the topic was.
func (r Report) Removed(t forget.Topic) string {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		if f := &r.Findings[i]; t.In(f.Name) {
			f.Name = ""
		}
	}
	var b strings.Builder
	if r.Removable() > 0 {
		b.WriteString("Removed:\n")
		r.write(&b, func(f Finding) bool { return f.Stays == "" }, false)
	} else {
		b.WriteString("Nothing was removed.\n")
	}
	if r.Removable() < len(r.Findings) {
		b.WriteString("\nThis stays:\n")
		r.write(&b, func(f Finding) bool { return f.Stays != "" }, false)
	}
	b.WriteString("\n" + elsewhere) // a paragraph of its own, where Markdown is shown
	return b.String()
}

// maxFindings is the number of findings in a list.
const maxFindings = 25

func (r Report) write(b *strings.Builder, in func(Finding) bool, samples bool) {
	n := 0
	for _, f := range r.Findings {
		if !in(f) {
			continue
		}
		if n++; n > maxFindings {
			continue
		}
		b.WriteString("- " + string(f.Location))
		if f.Name != "" {
			b.WriteString(" (" + short(f.Name) + ")")
		}
		if f.Location != Copies && f.Location != Unsearched {
			b.WriteString(": " + humanize.Many(f.Count, "line"))
		}
		if f.Stays != "" {
			b.WriteString("; " + f.Stays)
		}
		if samples && f.Sample != "" {
			fmt.Fprintf(b, ", for example: %s", f.Sample)
		}
		b.WriteByte('\n')
	}
	if n > maxFindings {
		fmt.Fprintf(b, "- and %d more\n", n-maxFindings)
	}
}

// short returns the last parts of a path.
func short(name string) string {
	if !filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name))
}
