package subagent

import (
	"cmp"
	_ "embed" // the prompts
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Type is a kind of subagent: what it is good for, which tools it has, and what it is
// told.
type Type struct {
	Name        string // lower case
	Description string // when to use it, in one line
	Tools       run.Tools
	ReadOnly    bool   // it changes nothing; see session.Bounds
	Model       string // provider/model; empty: the configured one
	Think       string // thinking level; empty: the configured one
	Prompt      string
	File        string // as people are told it; empty: none
	Problem     string // why its file does not define it, with the file and the line; empty: it does
	Warning     string // what its file says that has no effect, with the file; empty: nothing
}

// Warn adds something that the file of the type says and that has no effect.
func (t *Type) Warn(text string) {
	if t.Warning == "" {
		text = t.File + ": " + text
	}
	t.Warning = strings.TrimPrefix(t.Warning+"; "+text, "; ")
}

// Problems returns the problems of types, and their warnings.
func Problems(list []Type) (out []string) {
	for _, t := range list {
		if text := cmp.Or(t.Problem, t.Warning); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// AddType appends the type that a file defines, or its problem. name is the name of the
// file, as people are told it, and base without its ending. taken are the names of the
// files that defined a type so far, by its name.
func AddType(list []Type, taken map[string]string, name, base string, text []byte) []Type {
	t, err := ParseType(base, text)
	if err != nil {
		return append(list, Type{Name: strings.ToLower(base), Problem: fmt.Sprintf("%s: %v", name, err)})
	}
	if first, ok := taken[t.Name]; ok {
		return append(list, Type{Name: t.Name, Problem: fmt.Sprintf("%s: the name %s is taken by %s", name, t.Name, first)})
	}
	taken[t.Name], t.File = name, name
	if unknown := t.Warning; unknown != "" {
		t.Warning = ""
		t.Warn(unknown)
	}
	return append(list, t)
}

var (
	//go:embed explore.md
	exploreText string
	//go:embed plan.md
	planText string
)

// Builtin returns the types that always exist.
func Builtin() []Type {
	tools := run.Tools{Allow: []string{tool.Reading}}
	return []Type{
		{Name: "general", Description: "any task, with the same tools as you"},
		{Name: "explore", Description: "searches files and pages quickly and reports; changes nothing", Tools: tools,
			ReadOnly: true, Prompt: exploreText},
		{Name: "plan", Description: "reads what is there and returns a plan of steps; changes nothing", Tools: tools,
			ReadOnly: true, Prompt: planText},
	}
}

// maxDescription is the maximum length of a description, in characters.
const maxDescription = 200

// fields is the front matter of a type.
type fields struct {
	Name        string           `yaml:"name"`
	Description string           `yaml:"description"`
	Tools       frontmatter.List `yaml:"tools"`
	Disallowed  frontmatter.List `yaml:"disallowedTools"`
	ReadOnly    bool             `yaml:"readOnly"`
	Model       string           `yaml:"model"`
	Think       string           `yaml:"thinking"`
	Others      map[string]any   `yaml:",inline"`
}

// ParseType parses a type in a Markdown file with YAML front matter: name, description,
// tools (a list, or names separated by commas), readOnly, model and thinking. The rest of the
// file is the prompt. file is the name of the file without its ending, which is the
// default name.
func ParseType(file string, text []byte) (Type, error) {
	var f fields
	body, err := frontmatter.Decode(text, &f)
	if err != nil {
		return Type{}, err
	}
	if f.Name == "" {
		f.Name = file
	}
	t := Type{
		Name:        strings.ToLower(strings.TrimSpace(f.Name)),
		Description: strings.Join(strings.Fields(f.Description), " "),
		Tools:       run.Tools{Allow: f.Tools, Deny: f.Disallowed},
		ReadOnly:    f.ReadOnly,
		Model:       f.Model,
		Think:       f.Think,
		Prompt:      body,
	}
	if t.Model == "inherit" {
		t.Model = ""
	}
	if t.Think != "" {
		level, ok := llm.ParseLevel(t.Think)
		if !ok {
			return Type{}, fmt.Errorf("thinking %q: want one of %s", t.Think,
				strings.Join(llm.Model{Levels: llm.Levels[:]}.LevelNames(), ", "))
		}
		t.Think = string(level)
	}
	if r := []rune(t.Description); len(r) > maxDescription {
		t.Description = string(r[:maxDescription-1]) + "…"
	}
	if others := slices.Sorted(maps.Keys(f.Others)); len(others) > 0 {
		t.Warning = "unknown keys have no effect: " + strings.Join(others, ", ")
	}
	switch {
	case !chela.ValidAgentID(t.Name):
		return Type{}, fmt.Errorf("name %q: want lower-case letters, digits, - and _", t.Name)
	case t.Description == "":
		return Type{}, errors.New("it has no description")
	}
	return t, nil
}

// FindType returns the type with a name, in any case. An error says what is wrong with
// the type, or lists those that exist.
func FindType(list []Type, name string) (Type, error) {
	var known []string
	problem := ""
	for _, t := range list {
		switch same := strings.EqualFold(t.Name, strings.TrimSpace(name)); {
		case same && t.Problem == "":
			return t, nil
		case same:
			problem = t.Problem
		case t.Problem == "":
			known = append(known, t.Name)
		}
	}
	if problem != "" {
		return Type{}, chela.Errorf(chela.CodeInvalid, "the agent type %q cannot be used: %s", name, problem)
	}
	return Type{}, chela.Errorf(chela.CodeNotFound, "there is no agent type %q; there are %s", name,
		strings.Join(slices.Sorted(slices.Values(known)), ", "))
}

// MergeTypes returns the types of a workspace, the built-in ones that they do not
// replace, and those of plug-ins that have other names, sorted by name. Types with a
// problem follow others of their name.
func MergeTypes(own, plugins []Type) []Type {
	var list []Type
	for _, t := range slices.Concat(own, Builtin(), plugins) {
		if t.Problem != "" || !slices.ContainsFunc(list, func(other Type) bool { return other.Name == t.Name }) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return list
}
