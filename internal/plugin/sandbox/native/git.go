//go:build linux || darwin

package native

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// gitSettings are the settings of a person that Git has in a cage: who commits,
// and how it behaves. The others name programs, folders and credentials.
var gitSettings = map[string][]string{
	"user": {"name", "email", "useconfigonly"}, "author": {"name", "email"}, "committer": {"name", "email"},
	"init": {"defaultbranch"}, "core": {"autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "ignorecase", "precomposeunicode"},
	"pull": {"rebase", "ff"}, "push": {"default", "autosetupremote", "followtags"}, "merge": {"conflictstyle", "ff"}, "fetch": {"prune", "prunetags"},
	"rebase": {"autosquash", "autostash", "updaterefs"}, "branch": {"autosetupmerge", "autosetuprebase", "sort"}, "tag": {"sort"}, "rerere": {"enabled"},
	"diff": {"algorithm", "renames", "mnemonicprefix", "colormoved", "context"}, "log": {"date", "decorate", "follow"}, "color": {"ui"}, "commit": {"verbose", "cleanup"}, "status": {"short", "branch"},
}

// repositorySettings are the settings of a repository that Git itself makes,
// and those of gitSettings. The others name programs or other files.
var repositorySettings = func() map[string][]string {
	all := maps.Clone(gitSettings)
	all["core"] = append(slices.Clone(all["core"]), "repositoryformatversion", "filemode", "bare", "logallrefupdates", "symlinks", "sparsecheckout", "sparsecheckoutcone")
	maps.Copy(all, map[string][]string{
		"extensions": {"objectformat", "compatobjectformat", "refstorage", "partialclone", "worktreeconfig"},
		"remote":     {"url", "pushurl", "fetch", "push", "tagopt", "prune", "mirror", "promisor", "partialclonefilter"},
		"branch":     append(slices.Clone(all["branch"]), "remote", "pushremote", "merge", "rebase", "description"),
		"submodule":  {"url", "active", "branch", "ignore", "path"}, "gc": {"auto"}, "index": {"version"}, "feature": {"manyfiles"},
	})
	return all
}()

// moduleSettings are those of the repository of a submodule.
var moduleSettings = func() map[string][]string {
	all := maps.Clone(repositorySettings)
	all["core"] = append(slices.Clone(all["core"]), "worktree")
	return all
}()

// maxGitConfig limits what is read of a configuration.
const maxGitConfig = 256 << 10

// gitConfig returns the settings of the person's Git that a cage has.
func gitConfig(home string) string {
	var out strings.Builder
	for _, name := range [...]string{filepath.Join(home, ".config", "git", "config"), filepath.Join(home, ".gitconfig")} { // the later one wins
		b, err := os.ReadFile(name)
		if err != nil || len(b) > maxGitConfig {
			continue
		}
		kept, _ := pickSettings(string(b), gitSettings)
		out.WriteString(kept)
	}
	return out.String()
}

// header is the line that begins a section, perhaps with the name of a remote,
// branch or submodule.
var header = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\[\s*([a-zA-Z0-9-]+)(\s+"(?:[^"\\]|\\["\\])*")?\s*\]$`)
})

// pickSettings returns the lines of a configuration of Git that set one of the
// given settings, and whether there are no others. Settings that take several
// lines are left out.
func pickSettings(config string, settings map[string][]string) (kept string, all bool) {
	var out strings.Builder
	var allowed []string
	continued := false
	all = true
	lines := bufio.NewScanner(strings.NewReader(config))
	lines.Buffer(nil, maxGitConfig+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		was := continued
		if continued = strings.HasSuffix(line, `\`); was || continued {
			all = false
			continue
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			allowed = nil
			if m := header().FindStringSubmatch(line); m != nil {
				name := strings.ToLower(m[1])
				switch name {
				case "remote", "branch", "submodule":
					allowed = settings[name]
				default:
					if m[2] == "" {
						allowed = settings[name]
					}
				}
				if allowed != nil {
					out.WriteString("[" + name + m[2] + "]\n")
				}
			}
			all = all && allowed != nil
			continue
		}
		key, _, _ := strings.Cut(line, "=")
		if slices.Contains(allowed, strings.ToLower(strings.TrimSpace(key))) {
			out.WriteString("\t" + line + "\n")
		} else {
			all = false
		}
	}
	return out.String(), all && lines.Err() == nil
}
