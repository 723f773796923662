package plugindir

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// limits are those of a plug-in's folder.
var limits = folder.Limits{Files: 5_000, Bytes: 128 << 20}

// Source is where a plug-in comes from.
type Source string

// The sources.
const (
	Path      Source = "path"      // plugins.load.paths
	Installed Source = "installed" // the state directory
	Workspace Source = "workspace" // the workspace of an agent
	Missing   Source = "missing"   // there is only an entry in the configuration
)

// Plugin is a plug-in: what its manifest says, and whether it is used.
type Plugin struct {
	ID          string // lower case
	Name        string
	Version     string
	Description string
	Homepage    string
	Format      Format

	ConfigSchema json.RawMessage       // JSON Schema of the configuration; nil: it takes none
	Skills       []string              // folders of skills
	Hooks        []string              // folders of folders with a HOOK.md
	Agents       []string              // folders of Markdown files of agent types
	Commands     []string              // folders of Markdown files of commands
	Servers      map[string]mcp.Server // as they are in the manifest; see [Plugin.MCPServers]
	Process      *mcp.Server           // the program that offers Tools; nil: none
	Tools        []mcp.Declared
	Channel      *Channel    // nil: none; see [Plugin.ChannelProgram]
	Permissions  Permissions // that the manifest asks for
	Unsupported  []string    // what the plug-in would have in other programs, a sentence each

	Source Source
	Dir    string // absolute, without links
	File   string // the manifest
	Agent  string // whose workspace it is in; empty: it is for all agents
	Hash   string // of the folder; empty for plug-ins of load.paths without sha256

	Entry    Entry           // its configuration
	Config   json.RawMessage // of Entry, with the defaults of the schema
	Enabled  bool            // by the configuration
	Reasons  []string        // why it cannot be used; empty: it can be
	Warnings []string

	key     secret.Value
	allowed Permissions                  // of the manifest and the configuration, with absolute paths
	seen    *atomic.Pointer[string]      // the last stamp with which the folder had Hash
	read    map[string][sha256.Size]byte // hashes of the files that were read, by path in the folder
}

// Equal reports whether two results of [Find] are equal.
func Equal(a, b []Plugin) bool {
	return slices.EqualFunc(a, b, func(x, y Plugin) bool {
		x.seen, y.seen = nil, nil
		return reflect.DeepEqual(x, y)
	})
}

// Loadable reports whether the plug-in is used.
func (p *Plugin) Loadable() bool { return p.Enabled && len(p.Reasons) == 0 }

// Changed reports whether the folder differs from the one that was found. It is false
// for plug-ins of load.paths without sha256. It is cheap if nothing was changed for some
// seconds, and safe for concurrent use.
func (p *Plugin) Changed() bool {
	if p.Hash == "" {
		return false
	}
	stamp, err := folder.Stamp(p.Dir, limits)
	if err != nil {
		return true
	}
	if last := p.seen.Load(); stamp != "" && last != nil && *last == stamp {
		return false
	}
	if sum, err := folder.Hash(p.Dir, limits); err != nil || sum != p.Hash {
		return true
	}
	p.seen.Store(&stamp)
	return false
}

// sum sets Hash, which includes the files that were read as they were then.
func (p *Plugin) sum() (err error) {
	p.seen = new(atomic.Pointer[string])
	stamp, err := folder.Stamp(p.Dir, limits)
	if err != nil {
		return err
	}
	p.seen.Store(&stamp)
	same := 0
	p.Hash, err = folder.HashFiles(p.Dir, limits, func(path string, content [sha256.Size]byte) {
		if sum, ok := p.read[path]; ok && sum == content {
			same++
		}
	})
	if err == nil && same < len(p.read) {
		err = errors.New("it was changed while it was read")
	}
	return err
}

// Read reads the plug-in in a folder, without its configuration. With an error, which
// names the plug-in, it returns what is known; without a File if the folder has no
// manifest.
func Read(dir string) (Plugin, error) {
	dir = pathpolicy.Real(dir)
	p := Plugin{ID: slug(filepath.Base(dir)), Dir: dir, read: map[string][sha256.Size]byte{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p, err
	}
	defer root.Close()
	r := reader{Plugin: &p, root: root}
	err = r.manifest()
	if err != nil && p.File != "" {
		err = fmt.Errorf("plug-in %s: %s: %w", p.ID,
			filepath.ToSlash(strings.TrimPrefix(p.File, dir+string(filepath.Separator))), err)
	}
	return p, err
}

// reader reads the folder of a plug-in.
type reader struct {
	*Plugin
	root *os.Root
}

func (r *reader) manifest() error {
	for _, m := range manifests {
		text, err := r.file(m.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r.Format, r.File = m.format, filepath.Join(r.Dir, filepath.FromSlash(m.file))
		if err != nil {
			return err
		}
		content, err := parse(m.format, text)
		if content.id != "" {
			r.ID = content.id
		}
		r.Name, r.Version, r.Description, r.Homepage = content.name, content.version, content.description, content.homepage
		r.Unsupported, r.Warnings = content.unsupported, content.warnings
		if err != nil {
			return err
		}
		return r.parts(&content)
	}
	return fmt.Errorf("%s has no manifest (chela.plugin.json, openclaw.plugin.json, or plugin.json of another program)",
		r.Dir)
}

// file returns the content of a file.
func (r *reader) file(name string) ([]byte, error) {
	info, err := r.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = fmt.Errorf("%s has more than %d bytes", name, maxManifest)
	}
	r.read[filepath.ToSlash(filepath.Clean(name))] = sha256.Sum256(text)
	return text, err
}

// parts resolves what the manifest names, and looks for what has a usual place.
func (r *reader) parts(m *manifest) error {
	r.ConfigSchema, r.Process, r.Tools, r.Channel, r.Permissions = m.schema, m.process, m.tools, m.channel, m.permissions
	if err := checkSchema(m.schema); err != nil {
		return err
	}
	bundle := r.Format != OpenClaw
	for _, part := range [...]struct {
		key, usual string
		named      []string
		to         *[]string
		ok         bool // the usual place counts
	}{
		{"skills", "skills", m.skills, &r.Skills, bundle},
		{"hooks", "hooks", m.hooks, &r.Hooks, r.Format != Agent && (bundle || m.hooks == nil)},
		{"agents", "agents", m.agents, &r.Agents, r.Format == Claude},
		{"commands", "commands", m.commands, &r.Commands, r.Format == Claude},
	} {
		if err := r.folders(part.key, part.named, part.to); err != nil {
			return err
		}
		if dir := filepath.Join(r.Dir, part.usual); part.ok && !slices.Contains(*part.to, dir) && r.isFolder(part.usual) {
			*part.to = append(*part.to, dir)
		}
	}
	r.servers(m)
	r.unsupportedFiles()
	if r.Channel != nil {
		if err := r.checkProgram(r.Channel.Process); err != nil {
			return fmt.Errorf("channel.process: %w", err)
		}
	}
	if r.Process == nil {
		if r.Channel == nil && len(r.Skills)+len(r.Hooks)+len(r.Agents)+len(r.Commands)+len(r.Servers) == 0 {
			r.Unsupported = append(r.Unsupported, "It adds nothing that Chela uses.")
		}
		return nil
	}
	if err := r.checkProgram(*r.Process); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	if len(r.Tools) == 0 {
		r.Warnings = append(r.Warnings, "its program offers no tools, because contracts.tools names none")
	}
	return nil
}

// checkProgram returns what is wrong with a program of the plug-in.
func (r *reader) checkProgram(s mcp.Server) error {
	if _, err := r.resolve(s, unknownData(r.Dir)); err != nil {
		return err
	}
	if s.Kind() != mcp.Stdio {
		return errors.New("want command")
	}
	return nil
}

func (r *reader) isFolder(name string) bool {
	info, err := r.root.Stat(name)
	return err == nil && info.IsDir()
}

// folders adds the folders that a key of the manifest names.
func (r *reader) folders(key string, named []string, to *[]string) error {
	for _, name := range named {
		at, err := r.local(name)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if strings.HasSuffix(at, ".json") && key == "hooks" {
			r.Unsupported = append(r.Unsupported, unsupportedHooks)
			continue
		}
		switch info, err := r.root.Stat(at); {
		case errors.Is(err, fs.ErrNotExist):
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: there is no %s", key, at))
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		case !info.IsDir():
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s is not a folder", key, at))
		case !slices.Contains(*to, filepath.Join(r.Dir, at)):
			*to = append(*to, filepath.Join(r.Dir, at))
		}
	}
	return nil
}

// local returns a path in the folder without what means the folder.
func (r *reader) local(name string) (string, error) {
	at := filepath.FromSlash(path.Clean(strings.TrimPrefix(strings.TrimPrefix(name, "${CLAUDE_PLUGIN_ROOT}/"),
		"${PLUGIN_ROOT}/")))
	if !filepath.IsLocal(at) {
		return "", fmt.Errorf("%.100q is not in the plug-in's folder", name)
	}
	return at, nil
}

// servers collects the servers of the manifest and of files.
func (r *reader) servers(m *manifest) {
	r.Servers = map[string]mcp.Server{}
	r.addServers(m.servers)
	files := m.serverFiles
	switch r.Format {
	case Agent:
		files = []string{"mcp.json"}
	case Claude, Codex:
		files = append(slices.Clone(files), ".mcp.json")
	}
	for i, name := range files {
		servers, err := r.serverFile(name)
		if errors.Is(err, fs.ErrNotExist) && i == len(files)-1 {
			continue // its usual place
		}
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the servers of %s are ignored: %v", plainText(name, 100), err))
		}
		r.addServers(servers)
	}
}

// serverFile returns the servers of a file: those of mcpServers, or of the file itself.
func (r *reader) serverFile(name string) (map[string]json.RawMessage, error) {
	at, err := r.local(name)
	if err != nil {
		return nil, err
	}
	text, err := r.file(at)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	if o["mcpServers"] == nil && r.Format != Agent {
		return o, nil
	}
	var servers map[string]json.RawMessage
	return servers, o.read("mcpServers", &servers, "an object of servers")
}

// addServers adds servers, or warnings about invalid ones. The first with a name counts.
func (r *reader) addServers(servers map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if _, ok := r.Servers[name]; ok {
			continue
		}
		var s mcp.Server
		err := json.Unmarshal(servers[name], &s)
		switch {
		case err != nil:
			err = errors.New("want an object with command or url")
		case name == "" || plainText(name, 100) != name:
			err = errors.New("its name is invalid")
		case len(r.Servers) >= maxServers:
			err = fmt.Errorf("there are more than %d servers", maxServers)
		default:
			_, err = r.resolve(s, unknownData(r.Dir))
		}
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the server %s is ignored: %v", plainText(name, 100), err))
			continue
		}
		r.Servers[name] = s
	}
}

// unsupportedFiles notes the files that ask for something in vain.
func (r *reader) unsupportedFiles() {
	exists := func(name string) bool {
		_, err := r.root.Stat(name)
		return err == nil
	}
	add := func(text string) {
		if !slices.Contains(r.Unsupported, text) {
			r.Unsupported = append(r.Unsupported, text)
		}
	}
	switch r.Format {
	case OpenClaw:
		if r.hasCode() && r.Process == nil {
			add("Its JavaScript code (package.json) is not run: it runs only in OpenClaw.")
		}
	case Claude, Codex:
		if exists("hooks/hooks.json") {
			add(unsupportedHooks)
		}
		if exists(".lsp.json") {
			add(unsupportedLSP)
		}
		if exists("output-styles") {
			add(unsupportedStyle)
		}
		if exists("settings.json") {
			add("Its settings (settings.json) are not used.")
		}
		if exists(".app.json") {
			add(unsupportedApps)
		}
	}
}

// hasCode reports whether a package.json names code for OpenClaw.
func (r *reader) hasCode() bool {
	text, err := r.file("package.json")
	if err != nil {
		return false
	}
	o, err := parseObject(text)
	if err != nil {
		return false
	}
	var own object
	_ = json.Unmarshal(o["openclaw"], &own) // another value means no code
	return own.has("extensions") || o.has("main")
}
