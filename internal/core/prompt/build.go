package prompt

import (
	"cmp"
	_ "embed" // the texts
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Texts of the prompt.
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

// Default limits of the workspace files in a prompt, in characters.
const (
	DefaultMaxFile  = 20_000
	DefaultMaxFiles = 150_000
)

// Input is everything that a prompt depends on. A field that is zero omits its
// part.
type Input struct {
	Tools []llm.ToolSpec // tools that the policy allows
	Types []string       // agent types of sessions_spawn: "name: description"

	Dir      string // the workspace
	Sandbox  string // what the tools cannot do because the session is sandboxed
	Files    []File // see Workspace.Files
	MaxFile  int    // characters of one file; 0: DefaultMaxFile
	MaxFiles int    // characters of all files; 0: DefaultMaxFiles

	Now      time.Time      // only the date is used, in Zone
	Zone     *time.Location // the person's time zone; nil: that of Now, which is not named
	Extra    string         // context of a group or a subagent's task
	Agent    string
	Host     string
	Repo     string
	OS       string // with version, for example "linux 6.12"
	Arch     string
	Model    string // provider/model
	Channel  string
	Thinking llm.Level // empty: off

	// What is open in the session. It changes more often than everything above.
	Plan     string // see plan.Plan.Prompt
	Children string // see subagent.Prompt
}

// Builder builds system prompts. It caches the parts of the last prompt, which
// rarely differ from those of the next one. The zero value is ready to use. It is
// safe for concurrent use.
type Builder struct{ last atomic.Pointer[built] }

// built is the parts of a prompt and the input that they were built from.
type built struct {
	from             Input
	stable, volatile string
}

// Build returns the system prompt: the stable part, marked for caching, and the
// volatile part.
func (b *Builder) Build(in Input) []llm.Block {
	if in.Zone != nil {
		in.Now = in.Now.In(in.Zone)
	}
	k := b.last.Load()
	reuse := k != nil && sameStable(k.from, in)
	if !reuse || !sameVolatile(k.from, in) {
		fresh := &built{from: in, volatile: volatile(in)}
		if reuse {
			fresh.stable = k.stable
		} else {
			fresh.stable = stable(in)
		}
		b.last.Store(fresh)
		k = fresh
	}
	return []llm.Block{{Text: k.stable, Cache: true}, {Text: k.volatile}}
}

// sameStable reports whether the stable parts of two prompts are equal. It compares
// every field that stable reads.
func sameStable(a, b Input) bool {
	return a.Dir == b.Dir && a.Sandbox == b.Sandbox && a.MaxFile == b.MaxFile && a.MaxFiles == b.MaxFiles && slices.Equal(a.Files, b.Files) && slices.Equal(a.Types, b.Types) &&
		slices.EqualFunc(a.Tools, b.Tools, func(a, b llm.ToolSpec) bool { return a.Name == b.Name && a.Description == b.Description })
}

// sameVolatile reports whether the volatile parts of two prompts are equal. It
// compares every field that volatile reads.
func sameVolatile(a, b Input) bool {
	return sameDay(a.Now, b.Now) && zoneName(a) == zoneName(b) && a.Extra == b.Extra &&
		a.Agent == b.Agent && a.Host == b.Host && a.Repo == b.Repo && a.OS == b.OS && a.Arch == b.Arch &&
		a.Model == b.Model && a.Channel == b.Channel && a.Thinking == b.Thinking && a.Plan == b.Plan && a.Children == b.Children
}

// sameDay reports whether both times give the same text in a prompt.
func sameDay(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return x == y && a.YearDay() == b.YearDay() && a.Year() == b.Year() && a.IsZero() == b.IsZero()
}

func stable(in Input) string {
	var b strings.Builder
	b.WriteString("You are a personal assistant running inside Chela.\n")
	if len(in.Tools) > 0 {
		section(&b, "Tooling", tooling(in.Tools, in.Types))
		section(&b, "Tool call style", styleText)
	}
	section(&b, "Safety", safetyText)
	if in.Dir != "" {
		section(&b, "Workspace", "Your working directory is: "+Name(in.Dir)+
			"\nUse it for all files unless instructed otherwise.")
	}
	section(&b, "Sandbox", in.Sandbox)
	section(&b, "Workspace files", files(in))
	return b.String()
}

func volatile(in Input) string {
	var b strings.Builder
	if zone := clock(in); zone != "" {
		section(&b, "Date and time", zone)
	}
	section(&b, "Context", in.Extra)
	section(&b, "Runtime", runtimeLine(in))
	section(&b, "Plan", in.Plan)
	section(&b, "Subagents", in.Children)
	return strings.TrimLeft(b.String(), "\n")
}

// section writes a section unless it is empty.
func section(b *strings.Builder, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "\n## %s\n\n%s\n", title, text)
	}
}

// tooling lists the tools, sorted by name, one line each.
func tooling(tools []llm.ToolSpec, types []string) string {
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b llm.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	tools = slices.CompactFunc(tools, func(a, b llm.ToolSpec) bool { return a.Name == b.Name })
	var b strings.Builder
	b.WriteString(toolingText)
	for _, t := range tools {
		fmt.Fprintf(&b, "- %s: %s\n", t.Name, humanize.Sentence(t.Description, maxSummary))
	}
	b.WriteString(waitingText)
	if slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Name == "sessions_spawn" }) {
		b.WriteString(spawningText)
		for _, t := range types {
			b.WriteString("- agentType " + t + "\n")
		}
	}
	return b.String()
}

// maxSummary is the maximum length of a tool's summary, in characters.
const maxSummary = 160

// zoneName returns the name of the person's time zone, or its offset if it has none.
func zoneName(in Input) string {
	if in.Zone == nil {
		return ""
	}
	if name := in.Zone.String(); name != "" && name != "Local" {
		return Name(name)
	}
	return in.Now.Format("UTC-07:00")
}

// clock returns the lines with the date and the time zone. The time of day is
// omitted because it would change the prompt every minute.
func clock(in Input) string {
	var lines []string
	if !in.Now.IsZero() {
		lines = append(lines, "Today is "+in.Now.Format("Monday, 2 January 2006")+". Use a tool to get the time of day.")
	}
	if zone := zoneName(in); zone != "" {
		lines = append(lines, "Time zone: "+zone)
	}
	return strings.Join(lines, "\n")
}

// runtimeLine returns the facts about this run as one line, without empty parts.
func runtimeLine(in Input) string {
	system := Name(in.OS)
	if system != "" && in.Arch != "" {
		system += " (" + Name(in.Arch) + ")"
	}
	thinking := cmp.Or(in.Thinking, llm.Off)
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
