package prompt

import (
	_ "embed" // the texts
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/llm"
)

// The texts of the prompt.
var (
	//go:embed text/tooling.md
	toolingText string
	//go:embed text/waiting.md
	waitingText string
	//go:embed text/spawning.md
	spawningText string
	//go:embed text/style.md
	styleText string
	//go:embed text/safety.md
	safetyText string
	//go:embed text/persona.md
	personaText string
)

// Limits of the workspace files in a prompt, in characters.
const (
	DefaultMaxFile  = 20_000
	DefaultMaxFiles = 150_000
)

// Input is all that a prompt is made of. The zero value of a field leaves its
// part out.
type Input struct {
	Tools []llm.ToolSpec // what the model may call, after policy

	Dir      string // the workspace
	Files    []File // see Workspace.Files
	MaxFile  int    // characters of one file; 0: DefaultMaxFile
	MaxFiles int    // characters of all files; 0: DefaultMaxFiles

	Now      time.Time // only its date is told, in Zone
	Zone     string    // the person's time zone, for example Europe/Berlin
	Notices  []string  // lines for this session: what changed, what to mind
	Extra    string    // context of a group or of a subagent's task
	Agent    string
	Host     string
	Repo     string
	OS       string // with version, for example "linux 6.12"
	Arch     string
	Model    string // provider/model
	Channel  string
	Thinking llm.Level // empty: off
}

// Builder builds system prompts. It keeps the part that stays the same from one
// to the next, which is most of a prompt and most of the work. The zero value
// works; it is safe for concurrent use.
type Builder struct{ last atomic.Pointer[kept] }

// kept is the stable part of a prompt, and what it was made of.
type kept struct {
	from Input
	text string
}

// Build returns the system prompt: the part that stays the same, marked for
// the cache, and the part that changes.
func (b *Builder) Build(in Input) []llm.Block {
	k := b.last.Load()
	if k == nil || !sameStable(k.from, in) {
		k = &kept{in, stable(in)}
		b.last.Store(k)
	}
	return []llm.Block{{Text: k.text, Cache: true}, {Text: volatile(in)}}
}

// Build is that of a Builder which has built nothing yet.
func Build(in Input) []llm.Block { return new(Builder).Build(in) }

// sameStable reports whether the stable parts of two prompts are the same: all
// that stable reads is compared here.
func sameStable(a, b Input) bool {
	return a.Dir == b.Dir && a.MaxFile == b.MaxFile && a.MaxFiles == b.MaxFiles && slices.Equal(a.Files, b.Files) &&
		slices.EqualFunc(a.Tools, b.Tools, func(a, b llm.ToolSpec) bool { return a.Name == b.Name && a.Description == b.Description })
}

func stable(in Input) string {
	var b strings.Builder
	b.WriteString("You are a personal assistant running inside Chela.\n")
	if len(in.Tools) > 0 {
		section(&b, "Tooling", tooling(in.Tools))
		section(&b, "Tool call style", styleText)
	}
	section(&b, "Safety", safetyText)
	if in.Dir != "" {
		section(&b, "Workspace", "Your working directory is: "+Name(in.Dir)+
			"\nTreat it as the place for all files unless told otherwise.")
	}
	section(&b, "Workspace files", files(in))
	return b.String()
}

func volatile(in Input) string {
	var b strings.Builder
	if zone := clock(in); zone != "" {
		section(&b, "Date and time", zone)
	}
	if len(in.Notices) > 0 {
		section(&b, "Notices", "- "+strings.Join(in.Notices, "\n- "))
	}
	section(&b, "Context", in.Extra)
	section(&b, "Runtime", runtimeLine(in))
	return strings.TrimLeft(b.String(), "\n")
}

// section writes a section, nothing when it is empty.
func section(b *strings.Builder, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "\n## %s\n\n%s\n", title, text)
	}
}

// tooling lists the tools, sorted, one line each.
func tooling(tools []llm.ToolSpec) string {
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b llm.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	tools = slices.CompactFunc(tools, func(a, b llm.ToolSpec) bool { return a.Name == b.Name })
	var b strings.Builder
	b.WriteString(toolingText)
	for _, t := range tools {
		fmt.Fprintf(&b, "- %s: %s\n", t.Name, summary(t.Description))
	}
	b.WriteString(waitingText)
	if slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Name == "sessions_spawn" }) {
		b.WriteString(spawningText)
	}
	return b.String()
}

// maxSummary bounds a tool's line, in characters.
const maxSummary = 160

// summary returns the first sentence of a tool's description in one line.
func summary(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	if r := []rune(s); len(r) > maxSummary {
		s = string(r[:maxSummary-1]) + "…"
	}
	return s
}

// clock says the date and the time zone. The time is left to a tool.
func clock(in Input) string {
	now, zone := in.Now, Name(in.Zone)
	switch in.Zone {
	case "Local": // it has no name here
		zone = now.Format("UTC-07:00")
	case "", now.Location().String(): // loading a zone reads a file
	default:
		if loc, err := time.LoadLocation(in.Zone); err == nil {
			now = now.In(loc)
		}
	}
	var lines []string
	if !now.IsZero() {
		lines = append(lines, "Today is "+now.Format("Monday, 2 January 2006")+". For the time of day ask a tool.")
	}
	if zone != "" {
		lines = append(lines, "Time zone: "+zone)
	}
	return strings.Join(lines, "\n")
}

// runtimeLine tells the facts of this run in one line, without empty parts.
func runtimeLine(in Input) string {
	system := Name(in.OS)
	if system != "" && in.Arch != "" {
		system += " (" + Name(in.Arch) + ")"
	}
	thinking := in.Thinking
	if thinking == "" {
		thinking = llm.Off
	}
	var parts []string
	for _, p := range [][2]string{
		{"agent", Name(in.Agent)}, {"host", Name(in.Host)}, {"repo", Name(in.Repo)}, {"os", system},
		{"model", Name(in.Model)}, {"channel", Name(in.Channel)}, {"thinking", string(thinking)},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	return "Runtime: " + strings.Join(parts, " | ")
}
