package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/tool"
)

// Names in lists that stand for tools of plug-ins: those of the servers at
// mcp.servers, and those of all plug-ins.
const (
	MCP        = "bundle-mcp"
	allPlugins = "group:plugins"
)

// The groups of files and of commands.
const (
	files    = "group:fs"
	Commands = "group:runtime"
)

// knownGroups are the groups that always exist, even if no tool of the build belongs to them.
const knownGroups = "fs runtime web memory sessions ui automation messaging nodes agents media reading"

// profiles maps a profile to the groups that it allows. It also allows the tools that name
// it in their specs. "full" and "" allow everything.
var profiles = map[string][]string{
	"minimal":   nil,
	"coding":    {files, Commands, "group:web", "group:sessions", "group:memory", "group:agents", MCP},
	"messaging": {"group:messaging", MCP},
}

// Profiles returns the names of the profiles.
func Profiles() []string { return []string{"minimal", "coding", "messaging", "full"} }

// Catalog is the tools that rules know: those of a set, also if the configuration does not
// offer them, and those of OpenClaw that this build does not have. What rules have to
// know about a tool is in its spec. The zero Catalog knows no tools. A Catalog is immutable.
type Catalog struct {
	tools  []tool.Spec
	known  map[string]bool     // names of the tools
	names  map[string]string   // other names to names
	groups map[string][]string // names of the tools
}

// NewCatalog returns the Catalog of a set.
func NewCatalog(set tool.Set) Catalog {
	k := Catalog{tools: slices.Clone(set.Known()), known: map[string]bool{}, names: map[string]string{},
		groups: map[string][]string{}}
	for _, a := range absent {
		if !slices.ContainsFunc(k.tools, func(t tool.Spec) bool { return t.Name == a.Name }) {
			k.tools = append(k.tools, a)
		}
	}
	for g := range strings.FieldsSeq(knownGroups) {
		k.groups["group:"+g] = []string{}
	}
	for i := range k.tools {
		t := &k.tools[i]
		k.known[t.Name] = true
		for _, n := range t.Names {
			k.names[n] = t.Name
		}
		for _, g := range t.Groups {
			k.groups[g] = append(k.groups[g], t.Name)
		}
	}
	own := k.where(func(t *tool.Spec) bool {
		return t.Plugin == "" && !t.In(tool.Extra) && len(t.Groups) > 0 && !t.In(files) && !t.In(Commands)
	})
	k.groups["group:openclaw"], k.groups["group:chela"] = own, own
	return k
}

// where returns the names of the tools for which f reports true.
func (k Catalog) where(f func(*tool.Spec) bool) (names []string) {
	for i := range k.tools {
		if f(&k.tools[i]) {
			names = append(names, k.tools[i].Name)
		}
	}
	return names
}

// Writers returns the names of the tools that change files.
func (k Catalog) Writers() []string {
	return k.where(func(t *tool.Spec) bool { return t.In(files) && t.Effect != tool.Reads })
}

// Having returns the names of the tools that have the role.
func (k Catalog) Having(r tool.Role) []string {
	return k.where(func(t *tool.Spec) bool { return t.Has(r) })
}

// profile returns the tools of a profile; nil: it removes none.
func (k Catalog) profile(name string) []string {
	groups, limited := profiles[name]
	if !limited {
		return nil
	}
	return append(append([]string{}, k.Expand(groups)...),
		k.where(func(t *tool.Spec) bool { return slices.Contains(t.Profiles, name) })...)
}

// ProfilesOf returns the names of the profiles that include the tool.
func (k Catalog) ProfilesOf(t *tool.Spec) []string {
	return slices.DeleteFunc(Profiles(), func(p string) bool {
		allow := k.profile(p)
		return allow != nil && matching(allow, t) == ""
	})
}

// fold returns a name as lists are compared.
func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Name returns the name of the tool with the name, which may be one of its other names, in
// lower case.
func (k Catalog) Name(name string) string {
	name = fold(name)
	if real, ok := k.names[name]; ok {
		return real
	}
	return name
}

// Expand replaces groups by their tools, and other names of tools by their names.
func (k Catalog) Expand(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		p = k.Name(p)
		switch {
		case p == "":
		case k.groups[p] != nil:
			out = append(slices.Grow(out, 1), k.groups[p]...) // not nil, even if the group is empty
		default:
			out = append(out, p)
		}
	}
	return out
}

// match returns the first pattern that matches the name, or "".
func match(patterns []string, name string) string {
	for _, p := range patterns {
		if p == name {
			return p
		}
		if !strings.ContainsAny(p, `*?[`) {
			continue
		}
		if ok, err := path.Match(p, name); ok && err == nil {
			return p
		}
	}
	return ""
}

// Match reports whether one of the patterns matches the name of a tool. There are neither
// groups nor other names of tools among them: see [Catalog.Expand].
func Match(patterns []string, name string) bool { return match(patterns, fold(name)) != "" }

// Match reports whether one of the patterns, which may be groups, matches the
// tool.
func (k Catalog) Match(patterns []string, name string) bool {
	return match(k.Expand(patterns), k.Name(name)) != ""
}

// Unknown returns the names and patterns of a list that match no tool of the catalog, except
// those that may match tools of plug-ins, which need not exist yet.
func (k Catalog) Unknown(list []string) []string { return k.unknown(k.Expand(list)) }

// unknown is Unknown of an expanded list.
func (k Catalog) unknown(patterns []string) []string {
	var out []string
	for i, p := range patterns {
		if !k.known[p] && p != MCP && p != allPlugins && !strings.Contains(p, "__") &&
			len(k.where(func(t *tool.Spec) bool { return match(patterns[i:i+1], t.Name) != "" })) == 0 {
			out = append(out, p)
		}
	}
	return out
}
