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

// Builder builds system prompts. It keeps the parts that it made last, which
// seldom differ from one prompt to the next. The zero value works; it is safe
// for concurrent use.
type Builder struct{ last atomic.Pointer[kept] }

// kept is the parts of a prompt, and what they were made of.
type kept struct {
	from             Input
	stable, volatile string
}

// Build returns the system prompt: the part that stays the same, marked for
// the cache, and the part that changes.
func (b *Builder) Build(in Input) []llm.Block {
	in.Now = local(in)
	k := b.last.Load()
	stays := k != nil && sameStable(k.from, in)
	if !stays || !sameVolatile(k.from, in) {
		fresh := &kept{from: in, volatile: volatile(in)}
		if stays {
			fresh.stable = k.stable
		} else {
			fresh.stable = stable(in)
		}
		b.last.Store(fresh)
		k = fresh
	}
	return []llm.Block{{Text: k.stable, Cache: true}, {Text: k.volatile}}
}

// Build is that of a Builder which has built nothing yet.
func Build(in Input) []llm.Block { return new(Builder).Build(in) }

// sameStable reports whether the stable parts of two prompts are the same: all
// that stable reads is compared here.
func sameStable(a, b Input) bool {
	return a.Dir == b.Dir && a.MaxFile == b.MaxFile && a.MaxFiles == b.MaxFiles && slices.Equal(a.Files, b.Files) &&
		slices.EqualFunc(a.Tools, b.Tools, func(a, b llm.ToolSpec) bool { return a.Name == b.Name && a.Description == b.Description })
}

// sameVolatile is sameStable for the parts that change.
func sameVolatile(a, b Input) bool {
	return sameDay(a.Now, b.Now) && a.Zone == b.Zone && slices.Equal(a.Notices, b.Notices) && a.Extra == b.Extra &&
		a.Agent == b.Agent && a.Host == b.Host && a.Repo == b.Repo && a.OS == b.OS && a.Arch == b.Arch &&
		a.Model == b.Model && a.Channel == b.Channel && a.Thinking == b.Thinking
}

// sameDay reports whether a prompt says the same of both times.
func sameDay(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return x == y && a.YearDay() == b.YearDay() && a.Year() == b.Year() && a.IsZero() == b.IsZero()
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

// local returns the time in the person's zone.
func local(in Input) time.Time {
	switch in.Zone {
	case "", "Local", in.Now.Location().String(): // loading a zone reads a file
		return in.Now
	}
	loc, err := time.LoadLocation(in.Zone)
	if err != nil {
		return in.Now
	}
	return in.Now.In(loc)
}

// clock says the date and the time zone. The time is left to a tool.
func clock(in Input) string {
	zone := Name(in.Zone)
	if in.Zone == "Local" { // it has no name here
		zone = in.Now.Format("UTC-07:00")
	}
	var lines []string
	if !in.Now.IsZero() {
		lines = append(lines, "Today is "+in.Now.Format("Monday, 2 January 2006")+". For the time of day ask a tool.")
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
