package prompt

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Default limits of the workspace files in a prompt, in characters.
const (
	DefaultMaxFile  = 20_000
	DefaultMaxFiles = 150_000
	maxUser         = 4_000 // of USER.md
)

// Mode is how much a prompt contains.
type Mode string

// The modes.
const (
	Full    Mode = "full"    // everything; also ""
	Minimal Mode = "minimal" // for subagents: nothing about the person, messages and heartbeats
	None    Mode = "none"    // one line
)

// ParseMode returns the mode with a name. It reports false for an unknown one.
func ParseMode(s string) (Mode, bool) {
	m := Mode(s)
	return m, m == "" || m == Full || m == Minimal || m == None
}

// Truncation is whether a prompt mentions that workspace files were truncated. The
// omitted part is marked in each case.
type Truncation string

// The values of [Truncation].
const (
	WarnOnce   Truncation = "once"   // in one line for all files; also ""
	WarnAlways Truncation = "always" // also before each truncated file
	WarnOff    Truncation = "off"
)

// Input is everything that a prompt depends on. A field that is zero omits its
// part.
type Input struct {
	Mode Mode

	Tools   []llm.ToolSpec       // tools that the policy allows
	Roles   map[tool.Role]string // names of tools, which need not be among Tools
	Types   []string             // types of subagents: "name: description"
	Skills  string               // see skill.Prompt
	Docs    string               // path of the documentation for the tool that reads files
	Aliases []string             // of models: "alias: provider/model"
	Owners  []string             // ids of the persons who own the assistant

	Dir      string // the workspace
	Sandbox  string // what the tools cannot do because the session is sandboxed
	Files    []File // see Workspace.Files
	MaxFile  int    // characters of one file; 0: DefaultMaxFile
	MaxFiles int    // characters of all files; 0: DefaultMaxFiles
	Warn     Truncation

	Now       time.Time      // only the date is used, in Zone
	Zone      *time.Location // the person's time zone; nil: that of Now, which is not named
	Hints     []string       // about the channel
	Heartbeat bool           // the agent has periodic checks
	Group     bool           // the conversation is a group's
	Title     string         // of the group; "": unknown
	Extra     string         // context of a group or a subagent's task
	Agent     string
	Host      string
	Repo      string
	OS        string // with version, for example "linux 6.12"
	Arch      string
	Model     string // provider/model
	Channel   string
	Thinking  llm.Level // empty: off
	Reasoning string    // whether the person sees the thinking; empty: off
}

// Builder builds system prompts. It caches the parts of the last prompts: sessions
// differ in little from each other, and from one run to the next. The zero value is
// ready to use. It is safe for concurrent use.
type Builder struct {
	mu   sync.Mutex
	last []*built // the most recently used one first
}

// maxBuilt is the number of prompts in the cache.
const maxBuilt = 8

// built is the parts of a prompt and the input that they were built from.
type built struct {
	from             Input
	stable, volatile string
}

// Build returns the system prompt: the stable part, marked for caching, and the
// volatile part.
func (b *Builder) Build(in Input) []llm.Block {
	if in.Mode == None {
		return []llm.Block{{Text: identityLine, Cache: true}}
	}
	if in.Zone != nil {
		in.Now = in.Now.In(in.Zone)
	}
	k := b.find(in)
	return []llm.Block{{Text: k.stable, Cache: true}, {Text: k.volatile}}
}

// find returns the parts of a prompt, as far as possible from the cache.
func (b *Builder) find(in Input) *built {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := &built{from: in}
	for i, k := range b.last {
		same := sameStable(k.from, in)
		if same && sameVolatile(k.from, in) {
			copy(b.last[1:], b.last[:i])
			b.last[0] = k
			return k
		}
		if same && fresh.stable == "" {
			fresh.stable = k.stable
		}
	}
	if fresh.stable == "" {
		fresh.stable = stable(in)
	}
	fresh.volatile = volatile(in)
	b.last = slices.Insert(b.last, 0, fresh)
	if len(b.last) > maxBuilt {
		b.last = slices.Delete(b.last, maxBuilt, len(b.last))
	}
	return fresh
}

// sameStable reports whether the stable parts of two prompts are equal. It compares
// every field that stable reads.
func sameStable(a, b Input) bool {
	return a.Mode == b.Mode && a.Dir == b.Dir && a.Sandbox == b.Sandbox && a.MaxFile == b.MaxFile &&
		a.MaxFiles == b.MaxFiles && a.Warn == b.Warn &&
		a.Docs == b.Docs && a.Skills == b.Skills && slices.Equal(a.Files, b.Files) && slices.Equal(a.Types, b.Types) &&
		slices.Equal(a.Aliases, b.Aliases) && slices.Equal(a.Owners, b.Owners) && maps.Equal(a.Roles, b.Roles) &&
		slices.EqualFunc(a.Tools, b.Tools,
			func(a, b llm.ToolSpec) bool { return a.Name == b.Name && a.Description == b.Description })
}

// sameVolatile reports whether the volatile parts of two prompts are equal. It
// compares every field that volatile reads.
func sameVolatile(a, b Input) bool {
	return maps.Equal(a.Roles, b.Roles) && sameDay(a.Now, b.Now) && zoneName(a) == zoneName(b) && a.Extra == b.Extra &&
		a.Group == b.Group && a.Title == b.Title && a.Heartbeat == b.Heartbeat &&
		a.Agent == b.Agent && a.Host == b.Host && a.Repo == b.Repo && a.OS == b.OS && a.Arch == b.Arch &&
		a.Model == b.Model && a.Channel == b.Channel && a.Thinking == b.Thinking && a.Reasoning == b.Reasoning &&
		slices.Equal(a.Hints, b.Hints)
}

// sameDay reports whether both times give the same text in a prompt.
func sameDay(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return x == y && a.YearDay() == b.YearDay() && a.Year() == b.Year() && a.IsZero() == b.IsZero()
}
