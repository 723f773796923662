package profile

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

// promptInput returns the system prompt of an agent, as far as the configuration
// determines it.
func (g *Generation) promptInput(id chela.AgentID, dir string, box *sandbox.Session) prompt.Input {
	return prompt.Input{
		Roles:   g.roles[id],
		MaxFile: g.Settings.Agent.FileChars, MaxFiles: g.Settings.Agent.TotalChars, Warn: g.Settings.Agent.Truncation,
		Zone: g.zone, Host: g.host, OS: runtime.GOOS, Arch: runtime.GOARCH, Sandbox: note(box), Docs: fs.DocsPath,
		Aliases: g.facts.aliases, Owners: g.facts.owners, Heartbeat: g.facts.beats[id], Repo: g.facts.repos[id],
	}
}

// hints returns what models are told about a channel.
func (g *Generation) hints(name string) []string {
	var out []string
	if c := g.channel(name); c != nil {
		out = c.Hints
	}
	if g.Settings.Speech.Auto == speech.Tagged {
		out = append(slices.Clip(out), "To have your answer also said aloud, put [[tts]] into it. What the voice says instead of the text goes between [[tts:text]] and [[/tts:text]].")
	}
	return out
}

// facts are parts of prompts that a configuration determines.
type facts struct {
	aliases []string
	owners  []string
	beats   map[chela.AgentID]bool   // agents with periodic checks that need no HEARTBEAT.md
	repos   map[chela.AgentID]string // repositories of the workspaces
}

// findFacts returns the facts for prompts.
func (g *Generation) findFacts() facts {
	f := facts{beats: map[chela.AgentID]bool{}, repos: map[chela.AgentID]string{}}
	for ref, m := range g.Settings.Agent.Models {
		if m.Alias != "" {
			f.aliases = append(f.aliases, m.Alias+": "+ref)
		}
	}
	for name, ids := range g.Settings.Senders() {
		for _, id := range ids {
			if id != "*" {
				f.owners = append(f.owners, name+":"+id)
			}
		}
	}
	slices.Sort(f.aliases)
	slices.Sort(f.owners)
	for _, s := range g.Settings.Heartbeats(g.zone) {
		f.beats[s.Agent] = s.Every > 0 && !s.NeedsFile
	}
	for _, id := range g.Settings.Roster() {
		dir := g.Workspace(id)
		repo := g.expand(g.Settings.Agent.RepoRoot)
		if repo == "" {
			repo = repository(dir)
		}
		if repo != dir { // the prompt names the workspace anyway
			f.repos[id] = repo
		}
	}
	return f
}

// expand returns an absolute path: ~ is the person's home, and a relative path is below
// the state directory. "" stays.
func (g *Generation) expand(path string) string {
	switch {
	case path == "":
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		return filepath.Join(g.home, path[1:])
	case !filepath.IsAbs(path):
		return filepath.Join(g.o.State, path)
	}
	return filepath.Clean(path)
}
