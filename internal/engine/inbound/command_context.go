package inbound

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// fill says how full the window of the session is, and what set its size.
func (k *call) fill() string {
	w := k.g.o.Window(k.meta)
	return fmt.Sprintf("%s of %s (%d%%) · window: %s", humanize.Count(k.meta.Context), humanize.Count(int64(w.Tokens)),
		int(100*w.Fill(int(k.meta.Context))), sourceName(w))
}

// sourceName says what set the size of a window.
func sourceName(w window.Size) string {
	if w.Assumed() {
		return "assumed"
	}
	return string(w.Source)
}

// showContext is /context.
func showContext(ctx context.Context, k *call) (string, error) {
	form := strings.ToLower(k.args)
	if !slices.Contains([]string{"", "list", "detail", "json"}, form) {
		return "", refuse{"Usage: /context [list | detail | json]"}
	}
	r, err := k.g.o.Inspect(ctx, k.who, k.key, k.in.Address)
	if err != nil {
		return "", err
	}
	switch form {
	case "list":
		return picture(&r) + "\n" + contextList(&r), nil
	case "detail":
		return picture(&r) + "\n" + contextDetail(&r), nil
	case "json":
		b, err := json.MarshalIndent(r, "", "  ")
		return string(b), err
	}
	return picture(&r) + "\n/context list shows the files, tools and skills, /context detail the size of each, /context json all of it for programs.", nil
}

// barWidth is the width of the picture, in characters.
const barWidth = 40

// shades are the characters of the parts in the picture.
var shades = [...]string{"█", "▓", "▒", "░", "▚", "▞", "▤"}

// picture shows the parts of a request as a bar, and their sizes below it.
func picture(r *window.Report) string {
	var bar, lines strings.Builder
	used := 0
	whole := max(r.Window.Tokens, r.Total, 1)
	sum := 0
	for i, p := range r.Parts {
		shade := shades[i%len(shades)]
		sum += p.Tokens
		n := max((sum*barWidth+whole/2)/whole-used, 0) // rounded at the ends, so that the sum is right
		if n == 0 && p.Tokens*barWidth*4 > whole && used < barWidth {
			n = 1
		}
		used += n
		bar.WriteString(strings.Repeat(shade, n))
		lines.WriteString(partLine(shade, p.Name, p.Tokens, r.Window.Tokens, countOf(&p)))
	}
	bar.WriteString(strings.Repeat("·", max(barWidth-used, 0)))
	lines.WriteString(partLine("·", "Free", r.Free(), r.Window.Tokens, ""))
	head := fmt.Sprintf("Context: about %s of %s tokens (%d%%) · %s · window: %s",
		humanize.Count(int64(r.Total)), humanize.Count(int64(r.Window.Tokens)), int(100*r.Window.Fill(r.Total)),
		r.Model, sourceName(r.Window))
	return head + "\n\n```\n[" + bar.String() + "]\n" + lines.String() + "```\n\n" + costLine(r)
}

// partLine describes a part.
func partLine(shade, name string, tokens, window int, note string) string {
	line := fmt.Sprintf("%s %-16s %6s  %4.1f%%", shade, name, humanize.Count(int64(tokens)),
		100*float64(tokens)/float64(max(window, 1)))
	if note != "" {
		line += "  " + note
	}
	return line + "\n"
}

// countOf says of how many elements a part consists.
func countOf(p *window.Part) string {
	nouns := map[string]string{
		window.PartFiles: "file", window.PartSkills: "skill", window.PartTools: "tool",
		window.PartHistory: "message", window.PartResults: "result", window.PartImages: "image",
	}
	if noun := nouns[p.Name]; noun != "" && p.Count > 0 {
		return humanize.Many(p.Count, noun)
	}
	return ""
}

// costLine says what sending the request costs, and how good the estimate is.
func costLine(r *window.Report) string {
	var b strings.Builder
	if r.NanoUSD != nil && *r.NanoUSD > 0 {
		b.WriteString("- One request: " + usage.USD(*r.NanoUSD))
		if r.Cached != nil {
			b.WriteString(", or " + usage.USD(*r.Cached) + " if all of it is cached")
		}
		b.WriteString(" (without the answer)\n")
	}
	if r.Measured > 0 {
		b.WriteString("- Last request: " + humanize.Count(r.Measured) + " tokens, as the provider counted them\n")
	}
	if r.Ratio > 0 {
		fmt.Fprintf(&b, "- Estimates are multiplied by %.2f, as the provider counted so far\n", r.Ratio)
	}
	return b.String()
}

// contextList lists the files, the tools and the skills.
func contextList(r *window.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "System prompt: %s characters, %s of them files\n", humanize.Count(int64(r.System.Chars)),
		humanize.Count(int64(r.System.Files)))
	b.WriteString("\nWorkspace files:\n")
	for i := range r.Files {
		b.WriteString("- " + fileLine(&r.Files[i]) + "\n")
	}
	if len(r.Files) == 0 {
		b.WriteString("- none\n")
	}
	names := make([]string, 0, len(r.Skills))
	for _, s := range r.Skills {
		names = append(names, s.Name)
	}
	b.WriteString("\nSkills: " + listed(names) + "\n\n")
	names = names[:0]
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	b.WriteString("Tools: " + listed(names))
	return b.String()
}

// listed joins names.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}

// fileLine describes a workspace file.
func fileLine(f *window.FileSize) string {
	switch {
	case f.Missing:
		return f.Name + ": missing"
	case f.Problem != "":
		return f.Name + ": omitted, " + f.Problem
	case f.Raw == 0:
		return f.Name + ": empty"
	case f.Truncated:
		return fmt.Sprintf("%s: raw %d characters, injected %d (about %s tokens), truncated", f.Name, f.Raw, f.Injected,
			humanize.Count(int64(f.Tokens)))
	}
	return fmt.Sprintf("%s: raw %d characters, injected %d (about %s tokens)", f.Name, f.Raw, f.Injected,
		humanize.Count(int64(f.Tokens)))
}

// contextDetail lists the size of each file, tool and skill, and the history by kind.
func contextDetail(r *window.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "System prompt: %d characters, %d without the files\n", r.System.Chars, r.System.NotFiles)
	b.WriteString("\nWorkspace files:\n")
	for i := range r.Files {
		b.WriteString("- " + fileLine(&r.Files[i]) + "\n")
	}
	b.WriteString("\nSkills, characters and tokens:\n")
	for _, s := range r.Skills {
		fmt.Fprintf(&b, "- %s: %d, %d\n", s.Name, s.Chars, s.Tokens)
	}
	if len(r.Skills) == 0 {
		b.WriteString("- none\n")
	}
	tools, _ := r.Largest(len(r.Tools))
	b.WriteString("\nTools, characters of the description and of the schema, and tokens:\n\n```\n")
	width := 0
	for _, t := range tools {
		width = max(width, utf8.RuneCountInString(t.Name))
	}
	for _, t := range tools {
		fmt.Fprintf(&b, "%-*s %6d %6d %6d\n", width, t.Name, t.Description, t.Schema, t.Tokens)
	}
	b.WriteString("```\n\nHistory:\n")
	for _, p := range r.History {
		fmt.Fprintf(&b, "- %s: %d, %d characters, %d tokens\n", p.Name, p.Count, p.Chars, p.Tokens)
	}
	if len(r.History) == 0 {
		b.WriteString("- none\n")
	}
	fmt.Fprintf(&b, "\nShortened so far: %s trimmed, %s cleared, %s without images; the beginning was left out %s.",
		humanize.Many(r.Pruned.Trimmed, "result"), humanize.Many(r.Pruned.Cleared, "result"),
		humanize.Many(r.Pruned.Images, "message"), times(r.Cuts))
	fmt.Fprintf(&b, "\nTotal: %d tokens, the sum of the parts. Estimates count four bytes per token, two in results, and %d for an image.", r.Total, estimate.ImageTokens)
	return b.String()
}

// times returns "never", "once" or "n times".
func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
