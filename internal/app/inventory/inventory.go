// Package inventory says what on a machine belongs to an installation, and what each part
// of it is: for commands that copy, reset or remove an installation as a whole.
package inventory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Kind is what a part of an installation is.
type Kind string

// The kinds. What belongs to no kind is of somebody else.
const (
	Foreign     Kind = ""
	Config      Kind = "configuration"
	Credentials Kind = "credentials" // keys, tokens, the identities of this gateway and this machine
	Database    Kind = "database"
	Sessions    Kind = "sessions" // what belongs to conversations besides the database
	Workspace   Kind = "workspace"
	Additions   Kind = "additions" // plug-ins, skills and hooks
	Browser     Kind = "browser"   // profiles of the assistant's browser
	Cache       Kind = "cache"     // what is made again
	Logs        Kind = "logs"
	Backups     Kind = "backups"
	Running     Kind = "running" // lock and socket of a process
	Leftover    Kind = "leftover"
)

// Temporary begins the names of folders in which copies are prepared.
const Temporary = ".chela-backup-"

// kinds is the kinds of the entries of a state directory. Files of a database are those
// that begin with its name.
var kinds = map[string]Kind{
	"chela.json":       Config,
	"credentials":      Credentials,
	"node":             Credentials,
	media.Dir:          Sessions,
	config.HistoryFile: Sessions,
	allowlist.FileName: Config,
	"channels":         Sessions,
	"proposals":        Sessions,
	"migrations":       Sessions,
	"trash":            Sessions,
	"workspace":        Workspace,
	"plugins":          Additions,
	"plugin-data":      Additions,

	settings.SkillsDir: Additions,
	"hooks":            Additions,
	"browser":          Browser,
	"cache":            Cache,
	"sandboxes":        Cache,
	"sandbox":          Cache,
	"logs":             Logs,
	"backups":          Backups,
	"chela.lock":       Running,
	"chela.sock":       Running,
}

// Of returns the kind of an entry of a state directory with the database of that name.
func Of(name, database string) Kind {
	if k, ok := kinds[name]; ok {
		return k
	}
	switch rest, config := strings.CutPrefix(name, "chela.json."); {
	case config && (rest == "bak" || strings.HasPrefix(rest, "bak.") || strings.HasPrefix(rest, "last-good")):
		return Config
	case database != "" &&
		(name == database || strings.HasPrefix(name, database+".") || strings.HasPrefix(name, database+"-")):
		return Database
	case strings.HasPrefix(name, "workspace-"):
		return Workspace
	case atomicfile.IsTemp(name), strings.HasPrefix(name, ".space-"), strings.HasPrefix(name, Temporary):
		return Leftover
	}
	return Foreign
}

// Holds reports whether a folder is a state directory, or lies in one of its parts other than
// workspaces: tools use nothing that is there.
func Holds(state, dir string) bool {
	rel, err := filepath.Rel(state, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	kind := Of(first, "")
	return rel == "." || kind != Workspace && kind != Foreign
}

// Part is a file or a folder of an installation.
type Part struct {
	Kind Kind
	Path string // absolute
	Key  string // setting that names it; "": it has its usual place
}

// Installation is what belongs to one.
type Installation struct {
	State    string
	Database string // name of the database in the state directory; "": it is elsewhere
	Shared   bool   // the state directory is the home folder or the root: most names there may be those of others
	Inside   []Part // the entries of the state directory
	Outside  []Part // what the configuration names elsewhere
}

// Read returns the parts of an installation. tree is its configuration, nil if it cannot be
// read: then what it names elsewhere is not known.
func Read(s cli.Start, database string, tree *config.Tree) (*Installation, error) {
	in := &Installation{State: s.State, Database: database}
	home, _ := os.UserHomeDir()
	real := pathpolicy.Real(s.State)
	in.Shared = real == filepath.Dir(real) || home != "" && pathpolicy.Inside(pathpolicy.Real(home), real)
	list, err := os.ReadDir(s.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	own := map[string]Kind{} // what the configuration names in the state directory
	if tree != nil {
		if err := in.named(s, tree, own); err != nil {
			return nil, err
		}
	}
	// A folder without any of these was not made by this program, whatever is in it.
	used := slices.ContainsFunc(list, func(e os.DirEntry) bool {
		return e.Name() == "chela.lock" || e.Name() == "chela.json" || database != "" && e.Name() == database
	})
	for _, e := range list {
		k := Of(e.Name(), database)
		if filepath.Join(s.State, e.Name()) == s.LastGood {
			k = Config
		}
		if named, ok := own[e.Name()]; ok && k == Foreign {
			k = named
		}
		if (in.Shared || !used) && !strings.HasPrefix(e.Name(), "chela.") {
			k = Foreign
		}
		in.Inside = append(in.Inside, Part{Kind: k, Path: filepath.Join(s.State, e.Name())})
	}
	return in, nil
}

// folders returns the settings that name folders with additions.
func folders() []string {
	return []string{"skills.load.extraDirs", "plugins.load.paths", "hooks.internal.load.extraDirs", "hooks.transformsDir"}
}

// Names reports whether a setting names a folder of an installation.
func Names(key string) bool {
	return slices.Contains(folders(), key) || strings.HasPrefix(key, "agents.") && strings.HasSuffix(key, ".workspace")
}

// named collects what the configuration names.
func (in *Installation) named(s cli.Start, tree *config.Tree, own map[string]Kind) error {
	opts, err := settings.Read(tree)
	if err != nil {
		return err
	}
	state := pathpolicy.Real(s.State)
	home := settings.Environ(tree)("HOME")
	add := func(kind Kind, path, key string) {
		if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			path = filepath.Join(home, rest)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(s.State, path)
		}
		if real := pathpolicy.Real(path); pathpolicy.Inside(real, state) {
			if rel, err := filepath.Rel(state, real); err == nil && rel != "." {
				first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
				own[first] = kind
			}
			return
		}
		if !slices.ContainsFunc(in.Outside, func(p Part) bool { return p.Path == path && p.Kind == kind }) {
			in.Outside = append(in.Outside, Part{Kind: kind, Path: path, Key: key})
		}
	}
	for _, id := range opts.Roster() {
		dir := opts.Workspace(id, s.State, home)
		key, listed := opts.At(id)
		key += ".workspace"
		if id == chela.DefaultAgent && !listed {
			key = "agents.defaults.workspace"
		}
		add(Workspace, dir, key)
	}
	for _, file := range tree.Files() {
		add(Config, file, "")
	}
	for _, key := range folders() {
		for _, dir := range tree.Texts(key) {
			add(Additions, dir, key)
		}
	}
	return nil
}
