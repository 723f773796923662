//go:build linux

package native

import (
	"bufio"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	folders "github.com/chela-ai/chela/internal/kit/folder"
)

// gitSettings are the settings of a person that Git has in a cage: who commits,
// and how it behaves. The others name programs, folders and credentials.
var gitSettings = map[string][]string{
	"user":      {"name", "email", "useconfigonly"},
	"author":    {"name", "email"},
	"committer": {"name", "email"},
	"init":      {"defaultbranch"},
	"core":      {"autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "ignorecase", "precomposeunicode"},
	"pull":      {"rebase", "ff"},
	"push":      {"default", "autosetupremote", "followtags"},
	"merge":     {"conflictstyle", "ff"},

	"fetch":  {"prune", "prunetags"},
	"rebase": {"autosquash", "autostash", "updaterefs"},
	"branch": {"autosetupmerge", "autosetuprebase", "sort"},

	"tag":    {"sort"},
	"rerere": {"enabled"},
	"diff":   {"algorithm", "renames", "mnemonicprefix", "colormoved", "context"},
	"log":    {"date", "decorate", "follow"},

	"color":  {"ui"},
	"commit": {"verbose", "cleanup"},
	"status": {"short", "branch"},
}

// repositorySettings are the settings of a repository that Git itself makes,
// and those of gitSettings. The others name programs or other files.
var repositorySettings = func() map[string][]string {
	all := maps.Clone(gitSettings)
	all["core"] = append(slices.Clone(all["core"]), "repositoryformatversion", "filemode", "bare", "logallrefupdates",
		"symlinks", "sparsecheckout", "sparsecheckoutcone")
	maps.Copy(all, map[string][]string{
		"extensions": {"objectformat", "compatobjectformat", "refstorage", "partialclone", "worktreeconfig"},
		"remote":     {"url", "pushurl", "fetch", "push", "tagopt", "prune", "mirror", "promisor", "partialclonefilter"},
		"branch":     append(slices.Clone(all["branch"]), "remote", "pushremote", "merge", "rebase", "description"),
		"submodule":  {"url", "active", "branch", "ignore", "path"},
		"gc":         {"auto"},
		"index":      {"version"},
		"feature":    {"manyfiles"},
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
const maxGitConfig = 1 << 20

// gitConfig returns the settings of the person's Git that a cage has.
func gitConfig(home string) string {
	var out strings.Builder
	// the later one wins
	for _, name := range [...]string{filepath.Join(home, ".config", "git", "config"), filepath.Join(home, ".gitconfig")} {
		b, err := folders.ReadPath(name, maxGitConfig)
		if err != nil {
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

// programSetting is a setting of Git whose value names a file or folder that Git runs, or
// in which it looks for what it runs.
var programSetting = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^\s*(?:\[[^\n\]]*\]\s*)?(?:(?:hookspath|fsmonitor|path|sshcommand|askpass|editor|pager|textconv|clean|smudge|process|driver|command|cmd|helper|program|uploadpack|receivepack)\s*=|[a-z0-9-]+\s*=\s*"?!)\s*(.*)$`)
})

// runByGit returns the files and folders in a workspace that the configuration of a
// repository names.
func runByGit(git, workspace string) []string {
	tree := git
	if strings.EqualFold(filepath.Base(git), ".git") {
		tree = filepath.Dir(git)
	}
	var out []string
	for _, file := range [...]string{"config", "config.worktree"} {
		text, err := folders.ReadPath(filepath.Join(git, file), maxGitConfig)
		if err != nil {
			continue
		}
		for _, m := range programSetting().FindAllStringSubmatch(string(text), -1) {
			for _, word := range strings.Fields(strings.NewReplacer(`"`, " ", `'`, " ", ";", " ", "!", " ").Replace(m[1])) {
				for _, base := range [...]string{tree, git} { // of an included file
					name := word
					if !filepath.IsAbs(name) {
						name = filepath.Join(base, name)
					}
					if name = filepath.Clean(name); name != tree && name != git && pathpolicy.Inside(name, workspace) &&
						!pathpolicy.Inside(tree, name) && !slices.Contains(out, name) {
						out = append(out, name)
					}
				}
			}
		}
	}
	return out
}

// rebaseTodo is the file of a rebase in progress that holds what is left to do.
const rebaseTodo = "rebase-merge/git-rebase-todo"

// rebaseCommands returns the commands that a rebase in progress would run. ok is false if
// that cannot be told.
func rebaseCommands(root *os.Root, git string) (commands []string, ok bool) {
	text, err := folders.Read(root, filepath.Join(git, rebaseTodo), maxGitConfig)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, true
	}
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "exec" || word == "x" || strings.HasPrefix(word, "exec\t") || strings.HasPrefix(word, "x\t") {
			commands = append(commands, "exec "+rest)
		}
	}
	return commands, err == nil
}

// isSample reports whether a file in a folder of hooks has the name of one of the samples
// that Git puts there.
func isSample(name string) bool {
	hook, ok := strings.CutSuffix(name, ".sample")
	return ok && slices.Contains([]string{
		"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-update", "pre-applypatch", "pre-commit",
		"pre-merge-commit", "pre-push", "pre-rebase", "pre-receive",
		"prepare-commit-msg", "push-to-checkout", "sendemail-validate", "update", "post-commit", "post-receive",
	}, hook)
}
