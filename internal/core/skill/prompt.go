package skill

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of [Config.Prompt].
const (
	defaultMaxChars = 18_000
	defaultMaxCount = 150
)

// Prompt returns the list of skills for a system prompt; "": there are none. Skills in
// the workspace are located relative to it. If the list is longer than the limits of the
// configuration, descriptions are shortened, then the last skills are listed by their
// names only.
func (c Config) Prompt(skills []*Skill, workspace string) string {
	var all []Skill // copies
	for _, p := range skills {
		if p.Hidden {
			continue
		}
		s := *p
		if rel, err := filepath.Rel(workspace, s.File); workspace != "" && err == nil && filepath.IsLocal(rel) {
			s.File = filepath.ToSlash(rel)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return ""
	}
	budget := positive(c.Limits.MaxChars, defaultMaxChars)
	whole := min(len(all), positive(c.Limits.MaxCount, defaultMaxCount))
	n := maxDescription
	for ; n > 0 && size(all, whole, n) > budget; n -= 1 + n/8 {
	}
	n = max(n, 0)
	for sum := size(all, whole, n); whole > 0 && sum > budget; {
		whole--
		sum -= utf8.RuneCountInString(block(all[whole], n)) - named(all[whole])
	}
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, s := range all[:whole] {
		b.WriteString(block(s, n))
	}
	b.WriteString("</available_skills>\n")
	if whole == len(all) {
		return b.String()
	}
	rest, left := names(all[whole:]), budget-size(all, whole, n)+size(all, whole, 0)-size(all[:whole], whole, 0)
	b.WriteString(
		"More skills, by name only, because the list would be too long (`chela skills info NAME` describes one): ")
	for i, name := range rest {
		if left -= utf8.RuneCountInString(name); left < 0 {
			fmt.Fprintf(&b, "and %d more", len(rest)-i)
			break
		}
		b.WriteString(name)
	}
	b.WriteString("\n")
	return b.String()
}

// names returns the names of skills with what separates them.
func names(skills []Skill) []string {
	out := make([]string, len(skills))
	for i, s := range skills {
		out[i] = escape(s.Name) + ", "
	}
	out[len(out)-1] = escape(skills[len(skills)-1].Name) + "."
	return out
}

func positive(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// frame is the number of characters of the list around the skills.
const frame = 240

// size returns the number of characters of a list, in which the first skills are described
// with n characters each, and the others are only named.
func size(all []Skill, whole, n int) int {
	sum := frame
	for i, s := range all {
		if i < whole {
			sum += utf8.RuneCountInString(block(s, n))
		} else {
			sum += named(s)
		}
	}
	return sum
}

// named returns the number of characters of a skill that is only named.
func named(s Skill) int { return utf8.RuneCountInString(escape(s.Name)) + 2 }

// block describes a skill, with n characters of its description at most.
func block(s Skill, n int) string {
	d := s.Description
	if utf8.RuneCountInString(d) > n {
		d = ""
		if n > 1 {
			d = humanize.Truncate(s.Description, n)
		}
	}
	return "<skill><name>" + escape(s.Name) + "</name><description>" + escape(d) + "</description><location>" +
		escape(OneLine(s.File, 4096)) + "</location></skill>\n"
}

// escape returns a text for XML.
func escape(s string) string { return escaper().Replace(s) }

var escaper = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
})
