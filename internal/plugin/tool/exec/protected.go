package exec

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
)

// held finds the messages of programs that could not change or remove a file. The file is in
// quotes, or the word before the reason.
var held = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^.{0,1000}?(?:Device or resource busy|Read-only file system|EBUSY|EROFS|cannot (?:remove|move|rename) .{0,1000}: Permission denied).{0,1000}$`)
})

// quotedName and nameBefore find the file in such a message.
var (
	quotedName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(=\[])(?:'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|` + "`([^`'\n]+)['`]" + `)`)
	})
	nameBefore = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)(\S+): (?:Device or resource busy|Read-only file system)`)
	})
)

// protectedNames returns the files and folders of the workspace that a command in the sandbox
// could not change or remove, judging by its output: they are private, or other programs run
// what they name. A command that may not change the workspace has none.
func protectedNames(output string, j job) []string {
	r := j.plan.Rights
	if r == nil || !r.Write || j.plan.Session != nil && j.plan.Session.Container != "" {
		return nil
	}
	var out []string
	for _, line := range held().FindAllString(output, -1) {
		names := quotedName().FindAllStringSubmatch(line, -1)
		if m := nameBefore().FindStringSubmatch(line); m != nil && len(names) == 0 {
			names = append(names, m)
		}
		for _, m := range names {
			name := protectedName(cmp.Or(m[1:]...), strings.Contains(line, "Permission denied"), j)
			if name != "" && !slices.Contains(out, name) && len(out) < maxRefused {
				out = append(out, name)
			}
		}
	}
	return out
}

// protectedName returns the part of a path that is protected, relative to the workspace, or "".
// denied says that the message is that of a missing permission, which other files have, too.
func protectedName(name string, denied bool, j job) string {
	abs := name
	if !filepath.IsAbs(name) {
		abs = filepath.Join(j.plan.Dir, name)
	}
	rel, err := filepath.Rel(j.plan.Rights.Workspace, pathpolicy.Real(abs))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return ""
	}
	known := knownName(rel)
	if j.moves && !filepath.IsAbs(name) { // it may be relative to another folder
		return knownName(filepath.Clean(name))
	}
	if known == "" && (!exists(abs) || denied) {
		return ""
	}
	return cmp.Or(known, rel)
}

// knownName returns the part of a path that is protected because of its name, or "".
func knownName(name string) string {
	parts := strings.Split(name, string(filepath.Separator))
	for i, part := range parts {
		switch {
		case strings.EqualFold(part, ".git"):
			return filepath.Join(parts[:min(i+2, len(parts))]...)
		case pathpolicy.Private(part):
			return filepath.Join(parts[:i+1]...)
		}
	}
	return pathpolicy.RunsIn(name)
}

// protectedNote is the note about files that a command could not change, and why; "": there
// are none.
func protectedNote(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var all, private, run, others []string
	for _, name := range names {
		word := shell.Escape(name)
		all = append(all, word)
		switch {
		case pathpolicy.HasPrivate(name):
			private = append(private, word)
		case knownName(name) != "":
			run = append(run, word)
		default:
			others = append(others, word)
		}
	}
	it := "it"
	if len(names) > 1 {
		it = "them"
	}
	var why []string
	for _, g := range [...]struct {
		names []string
		text  string
	}{
		{private, "passwords or keys may be in "},
		{run, "other programs run what is in "},
		{others, "such a file, or one that folders outside of the workspace share, is in "},
	} {
		switch len(g.names) {
		case 0:
		case len(names):
			why = append(why, g.text+it)
		default:
			why = append(why, g.text+strings.Join(g.names, ", "))
		}
	}
	return "Chela protects " + strings.Join(all, ", ") + ": " + strings.Join(why, ", and ") +
		"; the sandbox kept what is in there, also from git; host gateway asks the person to run the command outside"
}

// noRepository finds the message of Git about a repository that it did not find, and the
// folder of the repository if a working tree names it.
var noRepository = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^fatal: not a git repository(?:: (/[^\n]+)| \(or any)`)
})

// repositoryNote says why Git found no repository in the sandbox, judging by the output of a
// command: it is outside of the workspace. "": it is not.
func repositoryNote(output string, j job) string {
	r := j.plan.Rights
	m := noRepository().FindStringSubmatch(output)
	if r == nil || m == nil {
		return ""
	}
	const remedy = "; host gateway asks the person to run git outside, and the person can make the folder of the repository the workspace"
	if m[1] != "" {
		if pathpolicy.Inside(m[1], r.Workspace) || !exists(m[1]) {
			return ""
		}
		return "the repository of this working tree is " + shell.Escape(m[1]) +
			", outside of the workspace and so not in the sandbox" + remedy
	}
	if exists(filepath.Join(r.Workspace, ".git")) {
		return "" // it was looked for elsewhere
	}
	for dir := filepath.Dir(r.Workspace); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, ".git")) {
			return "the workspace is a folder of the repository " + shell.Escape(dir) +
				", whose .git is outside of the workspace and so not in the sandbox" + remedy
		}
	}
	return ""
}
