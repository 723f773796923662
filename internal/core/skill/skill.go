package skill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// FileName is the name of the file that describes a skill.
const FileName = "SKILL.md"

const (
	maxFile        = 256 << 10 // bytes of a SKILL.md
	maxName        = 64        // characters
	maxDescription = 1024      // characters
)

// Source says where a skill is from.
type Source string

// The sources. A skill replaces those with the same name of the sources before its own.
const (
	Extra     Source = "extra"     // a folder of skills.load.extraDirs, or a plug-in
	Bundled   Source = "bundled"   // part of Chela
	Managed   Source = "managed"   // installed by the person, in the state directory
	Personal  Source = "personal"  // ~/.agents/skills
	Project   Source = "project"   // .agents/skills of the workspace
	Workspace Source = "workspace" // skills of the workspace
)

// Skill is a skill. It is not changed after it was parsed.
type Skill struct {
	Name        string
	Description string
	Source      Source
	Dir         string // its folder, which {baseDir} in its text stands for
	File        string // its SKILL.md

	Hidden    bool   // it is not in prompts
	NoCommand bool   // people cannot call it by a command
	Tool      string // that its command calls, without a model; "": a model follows the skill
	Homepage  string
	License   string
	Needs     string // the key compatibility, for people

	Metadata
}

// Metadata is metadata.openclaw.
type Metadata struct {
	Always   bool        `json:"always"` // only OS is required
	Emoji    string      `json:"emoji"`
	Homepage string      `json:"homepage"`
	Key      string      `json:"skillKey"` // of skills.entries; "": the name
	Variable string      `json:"primaryEnv"`
	OS       nameList    `json:"os"` // darwin, linux, windows; empty: all
	Requires Requires    `json:"requires"`
	Install  []Installer `json:"install"`
}

// Requires is what a skill needs.
type Requires struct {
	Bins    nameList `json:"bins,omitempty"`    // programs
	AnyBins nameList `json:"anyBins,omitempty"` // programs of which one suffices
	Env     nameList `json:"env,omitempty"`     // variables
	Config  nameList `json:"config,omitempty"`  // paths of the configuration that must be set
}

// nameList is a list that may also be a text with commas.
type nameList []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *nameList) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return json.Unmarshal(b, (*[]string)(n))
	}
	*n = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// Installer says how a person can install a program that a skill needs. Chela does not
// run it.
type Installer struct {
	ID      string   `json:"id,omitempty"`
	Kind    string   `json:"kind"` // brew, node, go, uv, download, …
	Label   string   `json:"label,omitempty"`
	Bins    nameList `json:"bins,omitempty"`
	OS      nameList `json:"os,omitempty"`
	Formula string   `json:"formula,omitempty"`
	Package string   `json:"package,omitempty"`
	Module  string   `json:"module,omitempty"`
	URL     string   `json:"url,omitempty"`
}

// Command returns what a person can type to install the program; "": it is unknown.
func (i Installer) Command() string {
	switch {
	case i.Kind == "brew" && i.Formula != "":
		return "brew install " + i.Formula
	case i.Kind == "node" && i.Package != "":
		return "npm install -g " + i.Package
	case i.Kind == "go" && i.Module != "":
		return "go install " + i.Module
	case i.Kind == "uv" && i.Package != "":
		return "uv tool install " + i.Package
	case (i.Kind == "apt" || i.Kind == "dnf" || i.Kind == "pacman") && i.Package != "":
		return i.Kind + " install " + i.Package
	case i.URL != "":
		return "download " + i.URL
	}
	return ""
}

// EntryKey is the key of the skill in skills.entries.
func (s *Skill) EntryKey() string { return cmp.Or(s.Key, s.Name) }

// head is the front matter of a SKILL.md.
type head struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Homepage    string `yaml:"homepage"`
	License     string `yaml:"license"`
	Needs       string `yaml:"compatibility"`
	Hidden      bool   `yaml:"disable-model-invocation"`
	Invocable   *bool  `yaml:"user-invocable"`
	Dispatch    string `yaml:"command-dispatch"`
	Tool        string `yaml:"command-tool"`
	ArgMode     string `yaml:"command-arg-mode"`
	Metadata    any    `yaml:"metadata"`
}

// Parse parses a SKILL.md. folder is the default name. The warning says what of the
// front matter is not used.
func Parse(folder string, text []byte) (s *Skill, warning string, err error) {
	var h head
	if len(text) > maxFile {
		return nil, "", fmt.Errorf("it has %d bytes, at most %d", len(text), maxFile)
	}
	if _, err := frontmatter.Decode(text, &h); err != nil {
		return nil, "", err
	}
	s = &Skill{
		Name:        OneLine(cmp.Or(h.Name, folder), maxName),
		Description: OneLine(h.Description, maxDescription),
		Hidden:      h.Hidden,
		NoCommand:   h.Invocable != nil && !*h.Invocable,
		License:     OneLine(h.License, maxDescription),
		Needs:       OneLine(h.Needs, maxDescription),
	}
	switch {
	case s.Name == "":
		return nil, "", errors.New("it has no name")
	case s.Description == "":
		return nil, "", errors.New("it has no description")
	}
	if s.Metadata, err = h.metadata(); err != nil { // without what it needs, it might not work
		warning = strings.TrimPrefix(warning+"; "+err.Error(), "; ")
	}
	s.Homepage = OneLine(cmp.Or(h.Homepage, s.Metadata.Homepage), maxDescription)
	switch {
	case h.Dispatch == "":
	case h.Dispatch != "tool" || h.Tool == "":
		warning = strings.TrimPrefix(warning+"; command-dispatch is not used: want tool, with command-tool", "; ")
	case h.ArgMode != "" && h.ArgMode != "raw":
		warning = strings.TrimPrefix(warning+"; command-dispatch is not used: command-arg-mode is not raw", "; ")
	default:
		s.Tool = OneLine(h.Tool, maxName)
	}
	return s, warning, nil
}

// metadata returns metadata.openclaw. The metadata is YAML, or JSON5 in a text.
func (h *head) metadata() (m Metadata, err error) {
	var all struct {
		Openclaw, Clawdbot, Chela json.RawMessage
	}
	raw, err := json.Marshal(h.Metadata)
	if text, ok := h.Metadata.(string); ok && err == nil {
		raw, err = json5.ToJSON([]byte(text))
	}
	if err == nil && len(raw) > 0 && raw[0] == '{' { // others are not for Chela
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return Metadata{}, fmt.Errorf("metadata: %w", err)
	}
	for _, own := range []json.RawMessage{all.Chela, all.Openclaw, all.Clawdbot} {
		if len(own) == 0 {
			continue
		}
		var text string
		if json.Unmarshal(own, &text) == nil {
			if own, err = json5.ToJSON([]byte(text)); err != nil {
				return m, fmt.Errorf("metadata: %w", err)
			}
		}
		if err := json.Unmarshal(own, &m); err != nil {
			return Metadata{}, fmt.Errorf("metadata: %w", err)
		}
		return m.bounded(), nil
	}
	return m, nil
}

// maxList is the number of names in a list of the metadata.
const maxList = 50

// bounded returns the metadata without texts that are too long or not on one line.
func (m Metadata) bounded() Metadata {
	m.Emoji, m.Key, m.Variable, m.Homepage = OneLine(m.Emoji, 8), OneLine(m.Key, maxName), OneLine(m.Variable, maxName),
		OneLine(m.Homepage, maxDescription)
	list := func(in []string) (out []string) {
		for _, v := range in[:min(len(in), maxList)] {
			if v = OneLine(v, 2*maxName); v != "" {
				out = append(out, v)
			}
		}
		return out
	}
	m.OS = list(m.OS)
	m.Requires = Requires{list(m.Requires.Bins), list(m.Requires.AnyBins), list(m.Requires.Env), list(m.Requires.Config)}
	m.Install = slices.Clone(m.Install[:min(len(m.Install), maxList)])
	for k := range m.Install {
		i := &m.Install[k]
		for _, v := range []*string{&i.ID, &i.Kind, &i.Label, &i.Formula, &i.Package, &i.Module, &i.URL} {
			*v = OneLine(*v, 4*maxName)
		}
		i.Bins, i.OS = list(i.Bins), list(i.OS)
	}
	return m
}

// OneLine returns a text on one line, without characters that are not shown, and with n
// characters at most.
func OneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r >= '\u200b' && r <= '\u200f' {
			return -1
		}
		return r
	}, s)
	return humanize.Truncate(humanize.OneLine(s), n)
}
