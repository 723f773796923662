package exec

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
)

// rights returns what a confined command may use: the workspace, and the
// rights that a person gave to the call or to the session. packages says that it asks which
// packages of the system are installed.
func (t *execTool) rights(ctx context.Context, c tool.Call, write, packages bool) (*sandbox.Rights, error) {
	workspace, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	given := c.Rights
	if t.Granted != nil {
		standing, err := t.Granted(ctx, c.Session, c.Sandbox != nil)
		if err != nil {
			return nil, fmt.Errorf("rights of the session: %w", err)
		}
		given = slices.Compact(slices.Sorted(slices.Values(slices.Concat(given, standing))))
	}
	r := &sandbox.Rights{Workspace: workspace, Write: write, Hide: t.notes(c)}
	if packages && c.Sandbox == nil {
		r.Read = slices.DeleteFunc([]string{"/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt"},
			func(dir string) bool { return !exists(dir) })
	}
	for _, right := range given {
		switch kind, value, _ := strings.Cut(right, ":"); kind {
		case "net":
			r.Hosts = append(r.Hosts, value)
		case "read":
			if exists(value) {
				r.Read = append(r.Read, value)
			}
		case "write":
			if exists(value) {
				r.Change = append(r.Change, value)
			}
		default:
			return nil, fmt.Errorf("unknown right %q", right)
		}
	}
	return r, nil
}

// shows reports whether a command is meant to change nothing: its programs read, or are
// git commands that show something. Git runs the programs that the configuration of the
// repository names. Since such a command cannot change the workspace, these programs
// cannot either.
func shows(p shell.Plan) bool {
	return p.Undecidable == "" && !slices.ContainsFunc(p.Segments, func(s shell.Segment) bool {
		writes := slices.ContainsFunc(s.Redirects, func(r shell.Redirect) bool { return r.Writes })
		return writes || len(s.Argv) > 0 && !shell.Reads(s.Argv) && !gitShows(s.Argv)
	})
}

// gitShows reports whether a program is git with a subcommand that shows something.
func gitShows(argv []shell.Word) bool {
	if slices.ContainsFunc(argv, func(w shell.Word) bool { return !w.Literal || strings.HasPrefix(w.Text, "--output") }) ||
		filepath.Base(argv[0].Text) != "git" {
		return false
	}
	for argv = argv[1:]; len(argv) > 0; argv = argv[1:] {
		switch argv[0].Text {
		case "-C":
			argv = argv[min(1, len(argv)-1):]
		case "--no-pager", "-P", "--no-optional-locks":
		case "blame", "cat-file", "describe", "diff", "grep", "log", "ls-files", "ls-tree", "rev-list", "rev-parse",
			"shortlog", "show", "status":
			return true
		default:
			return false
		}
	}
	return false
}

// describe says what rights let a command do.
func describe(rights []string) string {
	words := make([]string, len(rights))
	for i, right := range rights {
		kind, value, _ := strings.Cut(right, ":")
		verb := map[string]string{"net": "connect to", "read": "read", "write": "change"}[kind]
		words[i] = verb + " " + shell.Escape(value)
	}
	return strings.Join(words, " and ")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// refusal finds a path in a message about a failure, as programs write it:
// "cannot create /srv/x: Read-only file system",
// "[Errno 13] Permission denied: '/srv/x'". A path that is not in quotes must
// be followed by a colon or the end of the line: another character could be a
// part of it.
var refusal = sync.OnceValue(func() *regexp.Regexp {
	const (
		path = `(?:['"‘` + "`" + `]((?:~|[\w.-]+)?/[^'"’` + "`" + `\n]*)['"’` + "`" +
			`]|(?:^|[\s(=])((?:~|[\w.-]+)?/[^\s'"’:;,)]*)`
		why = `(Read-only file system|Permission denied|No such file or directory|Device or resource busy|Operation not permitted|EROFS|EACCES|ENOENT|EPERM)`
	)
	return regexp.MustCompile(`(?im)` + path + `:).{0,40}?` + why + `|` + why + `.{0,40}?[:,] .{0,20}?` + path + `[:)]?$)`)
})

// maxRefused limits the paths of one refusal.
const maxRefused = 4

// refusedPaths returns the rights to files of the host that a confined command
// lacked, judging by its output.
func (t *execTool) refusedPaths(output string, j job) []string {
	var out []string
	for _, m := range refusal().FindAllStringSubmatch(output, -1) {
		path, why := cmp.Or(m[1], m[2], m[5], m[6]), cmp.Or(m[3], m[4])
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
			path = filepath.Join(home, path[2:])
		}
		if !filepath.IsAbs(path) {
			if j.moves {
				continue // it may be relative to another folder
			}
			path = filepath.Join(j.plan.Dir, path)
		}
		right := t.missingRight(filepath.Clean(path), strings.ToLower(why), j)
		if right != "" && !slices.Contains(out, right) && len(out) < maxRefused {
			out = append(out, right)
		}
	}
	return out
}

// missingRight returns the right that a program lacked to use a path, or "".
func (t *execTool) missingRight(path, why string, j job) string {
	r := j.plan.Rights
	kind := "write:"
	if why == "no such file or directory" || why == "enoent" {
		kind = "read:"
	}
	if kind == "write:" && !exists(path) {
		path = filepath.Dir(path) // where it was to be created
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil || path == "/" || pathpolicy.Exposed(path, r.Workspace, t.own()) != "" {
		return ""
	}
	private := pathpolicy.Private(filepath.Base(path))
	if private {
		kind = "read:"
		if j.searches && pathpolicy.Inside(path, r.Workspace) {
			return "" // it was not named, or the command had asked
		}
	}
	switch {
	// it has the right, or is to have none
	case pathpolicy.Inside(path, r.Workspace) && !private && (!r.Write || kind == "read:"):
		return ""
	case kind == "write:" && pathpolicy.Inside(path, "/tmp"), pathpolicy.Inside(path, "/proc"),
		pathpolicy.Inside(path, "/dev"), pathpolicy.Inside(path, "/sys"), slices.Contains(r.Change, path), kind == "read:" &&
			slices.Contains(r.Read, path):
		return ""
	}
	return kind + path
}

// outside returns a reason to ask before a command: it plainly needs what is
// not in the sandbox, or private files. What this overlooks fails there.
func (q request) outside() string {
	if q.sandboxed { // nobody can allow it to leave
		return ""
	}
	if path := q.ownFile(); path != "" {
		return "it uses " + shell.Escape(path) + ", which holds the configuration or the state of Chela"
	}
	if q.leaves {
		return "it is to run outside of the sandbox"
	}
	for _, s := range q.shell.Segments {
		if len(s.Argv) > 0 && s.Argv[0].Literal && q.confined {
			if name := filepath.Base(s.Argv[0].Text); needsHost(name) && !endsOwnJob(name, s.Argv[1:]) &&
				!asksItself(name, s.Argv[1:]) {
				return shell.Escape(name) + " works outside of the sandbox only"
			}
		}
		named := words(s)
		if q.confined && printsWords(s) {
			named = named[len(s.Argv):]
		}
		for _, w := range named {
			if leavesOut(s, w.Text) {
				continue
			}
			if path := q.named(w.Text, s.Dir); w.Literal && path != "" {
				return "it uses " + shell.Escape(path) + ", which is private or outside the workspace"
			}
		}
	}
	return ""
}

// words returns the arguments of a segment and the files of its redirects.
func words(s shell.Segment) []shell.Word {
	out := slices.Clone(s.Argv)
	for _, r := range s.Redirects {
		out = append(out, r.File)
	}
	return out
}

// notes returns the files and folders that a call does not use because others read what
// comes of it.
func (t *execTool) notes(c tool.Call) []string {
	if t.Notes == nil || c.Private {
		return nil
	}
	return t.Notes()
}

// own returns Chela's own files and folders.
func (t *execTool) own() []string {
	if t.Never == nil {
		return nil
	}
	return t.Never()
}

// ownFile returns the first path in the command that leads to one of Chela's own
// files, or "".
func (q request) ownFile() string { return q.namedOf(q.own) }

// namedOf returns the first path in the command that leads to one of some files and
// folders, or "". A folder that holds the workspace does not count.
func (q request) namedOf(files []string) string {
	workspace := pathpolicy.Real(q.programs.Workspace)
	for _, s := range q.shell.Segments {
		for _, w := range words(s) {
			if !w.Literal || strings.Contains(w.Text, "://") {
				continue
			}
			for _, value := range values(w.Text) {
				path := q.absolute(value, s.Dir)
				if path == "" {
					continue
				}
				real := pathpolicy.Real(path)
				if slices.ContainsFunc(files, func(n string) bool {
					return pathpolicy.Inside(real, n) && !(pathpolicy.Inside(real, workspace) && pathpolicy.Inside(workspace, n))
				}) {
					return path
				}
			}
		}
	}
	return ""
}

// values returns the parts of a word that may name files: the word, the value of an
// option, and what git show REVISION:NAME shows.
func values(word string) []string {
	out := []string{word}
	if strings.HasPrefix(word, "-") {
		out = []string{word[min(2, len(word)):]}
	}
	for _, sep := range [...]string{"=", ":"} {
		if _, value, ok := strings.Cut(word, sep); ok {
			out = append(out, value)
		}
	}
	return slices.DeleteFunc(out, func(v string) bool { return v == "" })
}

// endsOwnJob reports whether a kill names only jobs of the same command, as in
// kill $! and kill %1: a process of the host has a number.
func endsOwnJob(name string, args []shell.Word) bool {
	return name == "kill" && !slices.ContainsFunc(args, func(a shell.Word) bool {
		return a.Literal && !strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "%")
	})
}

// leavesOut reports whether a word names what a program is to leave out: a pathspec of git,
// or an option of programs that search.
func leavesOut(s shell.Segment, word string) bool {
	for _, prefix := range [...]string{":(exclude)", ":!", ":^"} {
		if strings.HasPrefix(word, prefix) {
			return len(s.Argv) > 0 && filepath.Base(s.Argv[0].Text) == "git"
		}
	}
	return strings.HasPrefix(word, "--exclude=") || strings.HasPrefix(word, "--exclude-dir=")
}

// gitPrivate finds the files that git could not read, or not replace.
var gitPrivate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^error: (?:open\("([^"\n]+)"\): Permission denied|unable to unlink old '([^'\n]+)': Device or resource busy)|^\t(\S[^\n]*)$`)
})

// privateOfGit returns what to do about the private files that git tracks and could not read
// or replace, judging by its output; "": there are none.
func privateOfGit(output string) string {
	var specs []string
	replaces, overwrites := false, strings.Contains(output, "would be overwritten by")
	for _, m := range gitPrivate().FindAllStringSubmatch(output, -1) {
		switch {
		case m[2] != "":
			replaces = replaces || pathpolicy.HasPrivate(m[2])
		case m[3] != "":
			replaces = replaces || overwrites && pathpolicy.HasPrivate(m[3])
		default:
			if spec := "':(exclude)" + m[1] + "'"; pathpolicy.HasPrivate(m[1]) && !strings.Contains(m[1], "'") &&
				!slices.Contains(specs, spec) && len(specs) < maxRefused {
				specs = append(specs, spec)
			}
		}
	}
	switch {
	case replaces:
		return "git would have to replace a private file, which cannot be done here: use host gateway"
	case len(specs) > 0:
		without := "-- . " + strings.Join(specs, " ") + " ':(exclude)*.pem' ':(exclude)*.key'"
		return "git tracks a private file that was changed, which is not readable here; add this to leave such files out: " +
			without +
			"; in place of commit -a use git add -u " + without +
			" and git commit; if it was not changed, git update-index --refresh with host gateway lets git know"
	}
	return ""
}

// printsWords reports whether a program prints its words and uses no file that they name.
func printsWords(s shell.Segment) bool {
	return len(s.Argv) > 0 && s.Argv[0].Literal && (s.Argv[0].Text == "echo" || s.Argv[0].Text == "printf")
}

// asksItself reports whether a program that works on the system is only asked for its
// version, or for what is installed.
func asksItself(name string, args []shell.Word) bool {
	if len(args) == 0 || slices.ContainsFunc(args, func(a shell.Word) bool { return !a.Literal || a.Glob }) {
		return false
	}
	first := args[0].Text
	switch {
	case len(args) == 1 && (first == "--version" || first == "--help" || first == "-V" && name == "ssh"):
		return name != "chela" && name != "openclaw"
	case name == "dpkg":
		return slices.Contains([]string{"-l", "--list", "-s", "--status", "-L", "--listfiles", "-S", "--search"}, first) &&
			!slices.ContainsFunc(args[1:], func(a shell.Word) bool { return strings.HasPrefix(a.Text, "-") })
	case name == "apt":
		options := slices.DeleteFunc(slices.Clone(args[1:]), func(a shell.Word) bool {
			return !strings.HasPrefix(a.Text, "-") || slices.Contains([]string{"--installed", "--upgradable", "-a"}, a.Text)
		})
		return (first == "list" || first == "show") && len(options) == 0
	}
	return false
}

// asksPackages reports whether a program is asked which packages of the system there are.
func asksPackages(s shell.Segment) bool {
	if len(s.Argv) < 2 || !s.Argv[0].Literal {
		return false
	}
	name := filepath.Base(s.Argv[0].Text)
	return (name == "dpkg" || name == "apt") && asksItself(name, s.Argv[1:])
}

// needsHost reports whether a program acts on the system or as another user.
func needsHost(name string) bool {
	switch name {
	case "sudo", "su", "doas", "pkexec", "systemctl", "service", "journalctl", "loginctl", "launchctl", "crontab", "at",
		"mount", "umount", "docker", "podman", "nerdctl",
		"kubectl", "ssh", "scp", "sftp", "apt", "apt-get", "dpkg", "dnf", "yum", "zypper", "pacman", "apk", "brew", "snap",
		"flatpak", "shutdown", "reboot", "poweroff",
		"kill", "pkill", "killall", "chela", "openclaw", "open", "xdg-open", "osascript", "notify-send", "pbcopy", "pbpaste",
		"xclip", "wl-copy", "gpg", "pass":
		return true
	}
	return false
}

// named returns the path that a word names, alone or as the value of an
// option, if it is private or outside the workspace, or "". dir is the folder
// in which it is used; "" if that is not known.
func (q request) named(word, dir string) string {
	if !strings.HasPrefix(word, "-") {
		return q.private(word, dir)
	}
	_, value, _ := strings.Cut(word, "=")
	if path := q.private(value, dir); path != "" || len(word) < 3 || word[1] == '-' {
		return path
	}
	return q.private(word[2:], dir)
}

// private returns the path of a word if it is private or outside the
// workspace and the folders of the system, or "".
func (q request) private(word, dir string) string {
	if word == "" || strings.Contains(word, "://") {
		return ""
	}
	path := q.absolute(word, dir)
	if path == "" {
		return ""
	}
	if top, _, _ := strings.Cut(strings.TrimPrefix(word, "/"), "/"); q.confined &&
		filepath.IsAbs(word) && !exists("/"+top) {
		return "" // text, such as the pattern /error/p
	}
	if q.privatePath(path, strings.Contains(word, "/") || word == ".." || word == "~") {
		return path
	}
	if q.confined {
		return "" // the sandbox has only what it may show
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil && real != path && q.privatePath(real, true) {
		return path
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && pathpolicy.Links(info) > 1 &&
		pathpolicy.Inside(real, pathpolicy.Real(q.programs.Workspace)) {
		return path // its other name may be anywhere
	}
	return ""
}

// absolute returns the path that a word names, or "" if that is not known.
func (q request) absolute(word, dir string) string {
	switch {
	case word == "~" || strings.HasPrefix(word, "~/"):
		return filepath.Join(q.home, word[1:])
	case !filepath.IsAbs(word) && dir == "":
		return ""
	case !filepath.IsAbs(word):
		return filepath.Join(dir, word)
	}
	return filepath.Clean(word)
}

// privatePath reports whether a path is private or outside the workspace and
// the folders of the system. A path that is not certainly meant as one need
// only be checked in the workspace.
func (q request) privatePath(path string, certain bool) bool {
	workspace := q.programs.Workspace
	if real, err := filepath.EvalSymlinks(workspace); err == nil && !q.confined {
		if pathpolicy.Inside(path, real) {
			workspace = real
		}
	}
	if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsLocal(rel) {
		return pathpolicy.HasPrivate(rel) && !pathpolicy.PublicCertificates(pathpolicy.Real(path))
	}
	if !certain {
		return false
	}
	for _, dir := range [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/tmp", "/var/tmp",
		"/dev", "/proc", "/nix"} {
		if pathpolicy.Inside(path, dir) {
			return strings.HasSuffix(dir, "/tmp") && (!q.confined || ofHost(path, dir)) || pathpolicy.PrivatePath(path, q.home)
		}
	}
	return true
}

// ofHost reports whether a path in a folder for temporary files is one of the host, which the
// sandbox does not have: it has an empty folder of its own there.
func ofHost(path, temp string) bool {
	parent := filepath.Dir(path)
	return path != temp && (exists(path) || parent != temp && exists(parent))
}

// repeatable reports whether a command can be run again from its beginning,
// after it was refused something in the sandbox: it is a single program that
// gets things.
func repeatable(sp shell.Plan) bool {
	for _, s := range sp.Segments {
		if len(s.Argv) == 0 {
			continue // it sets variables
		}
		if !s.Argv[0].Literal {
			return false
		}
		switch filepath.Base(s.Argv[0].Text) {
		case "curl", "wget", "git", "go", "npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "pip", "pip3", "uv", "poetry",
			"python", "python3", "cargo", "rustup", "gem", "bundle",
			"mvn", "gradle", "make", "cmake", "composer", "dotnet", "mix", "cd", "echo", "printf", "head", "tail", "grep", "jq",
			"wc", "sort", "cat", "ls", "mkdir", "true", "test", "[":
		default:
			return false
		}
	}
	return true
}
