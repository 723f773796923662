//go:build linux

package native

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	folders "github.com/chela-ai/chela/internal/kit/folder"
)

// A command can commit what it could not make in the workspace, such as a
// .vscode/tasks.json: with git update-index, stash, am or fast-import. It comes to be when a
// person checks the commit out. So the refs and indexes of Git are compared with those
// before the command, and what they lead to is looked at, by Git in a cage that only looks.

const (
	maxRefs     = 20_000           // files below refs, of a repository
	maxPacked   = 8 << 20          // bytes of packed-refs
	maxTips     = 50               // that are looked at
	maxCommits  = 2000             // that are looked at; if there are more, only the tips are
	maxChanges  = 16 << 20         // bytes of what Git says about them
	maxAsked    = 8                // repositories that are looked at after a command
	commitsTime = 20 * time.Second // for all of them
)

// tips are what the refs and indexes of a repository say: a ref or a pseudo ref, such as HEAD,
// has an object, or something else. An index has a stamp.
type tips struct {
	refs    map[string]string
	indexes map[string]string // by their paths relative to the folder .git
	heads   map[string]string // the object of HEAD, for each index that has one
	known   bool              // there are not too many
}

// refFile is what a file with refs held when it had a stamp.
type refFile struct {
	stamp string
	refs  map[string]string
}

// tipsOf reads the refs and indexes of a repository. kept has the files that were read
// before, by their paths, and gets those that are read now.
func tipsOf(git string, kept map[string]refFile) tips {
	t := tips{refs: map[string]string{}, indexes: map[string]string{}, heads: map[string]string{}, known: true}
	if len(kept) > 2*maxRefs {
		clear(kept)
	}
	add := func(name string, limit int64, parse func(string) map[string]string) {
		path := filepath.Join(git, name)
		stamp := fileStamp(path)
		if stamp == "" {
			return
		}
		f, ok := kept[path]
		if !ok || f.stamp != stamp {
			text, err := folders.ReadPath(path, limit)
			if f = (refFile{stamp, map[string]string{name: name}}); err == nil { // or Git is asked for it
				f.refs = parse(string(text))
			} else if limit == maxPacked {
				t.known = false
			}
			// a later change has another stamp
			if info, err := os.Lstat(path); err == nil && time.Since(changedAt(info)) > tick {
				kept[path] = f
			}
		}
		maps.Copy(t.refs, f.refs)
	}
	loose := func(name string) func(string) map[string]string {
		return func(text string) map[string]string {
			out := map[string]string{}
			if target, symbolic := strings.CutPrefix(text, "ref:"); symbolic {
				out[name+" "] = strings.TrimSpace(target)
				return out
			}
			for i, word := range strings.Fields(text) {
				if isObject(word) && len(out) < maxTips { // FETCH_HEAD and the rest of a rebase have several
					out[fmt.Sprint(name, " ", i)] = word
				}
			}
			return out
		}
	}
	dirs := []string{"."}
	for _, tree := range worktrees(git) {
		dirs = append(dirs, filepath.Join("worktrees", filepath.Base(tree)))
	}
	left := maxRefs
	for _, dir := range dirs {
		index := filepath.Join(dir, "index")
		t.indexes[index] = fileStamp(filepath.Join(git, index))
		add(filepath.Join(dir, "reftable", "tables.list"), 64<<10,
			func(text string) map[string]string { return map[string]string{"reftable": text} })
		top := filepath.Join(git, dir)
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(git, path)
			if left--; left < 0 {
				t.known = false
				return fs.SkipAll
			}
			if err != nil || relErr != nil || path == top {
				return nil // it may have gone away
			}
			inside, isRef := filepath.Dir(path) != top, pathpolicy.Inside(path, filepath.Join(top, "refs"))
			switch {
			case d.IsDir() && !inside && !holdsRefs(d.Name(), strings.EqualFold(filepath.Base(git), ".git")):
				return fs.SkipDir
			case d.IsDir(), !isRef && !d.Type().IsRegular(), !inside && notRefs(d.Name()), strings.ContainsAny(name, " \n"):
			case isRef:
				add(name, 4096, loose(name))
			default: // Git takes any file for a ref, if a person names it
				if info, err := d.Info(); err == nil && info.Size() <= 64<<10 {
					add(name, 64<<10, loose(name))
				}
			}
			return nil
		})
	}
	add("packed-refs", maxPacked, func(text string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(text) {
			if object, name, _ := strings.Cut(strings.TrimSpace(line), " "); isObject(object) {
				out["packed "+name] = object
			}
		}
		return out
	})
	for _, dir := range dirs {
		head := filepath.Join(dir, "HEAD")
		names := []string{head + " 0"}
		if ref := t.refs[head+" "]; ref != "" {
			names = []string{ref + " 0", "packed " + ref}
		}
		for _, name := range slices.Backward(names) {
			if object := t.refs[name]; object != "" {
				t.heads[filepath.Join(dir, "index")] = object
			}
		}
	}
	for name := range t.refs {
		if strings.HasSuffix(name, " ") { // another ref has the object
			delete(t.refs, name)
		}
	}
	return t
}

// holdsRefs reports whether a folder of a repository may hold what Git takes for refs. That of
// a repository without a working tree may have other folders beside them.
func holdsRefs(name string, git bool) bool {
	switch name {
	case "objects", "logs", "lfs", "modules", "hooks", "worktrees", "reftable":
		return false
	case "refs", "rebase-merge", "rebase-apply", "sequencer", "remotes", "heads", "tags":
		return true
	}
	return git
}

// notRefs reports whether a file at the top of a repository holds something else.
func notRefs(name string) bool {
	switch name {
	case "index", "packed-refs", "config", "description", "COMMIT_EDITMSG":
		return true
	}
	return false
}

// isObject reports whether a word is the name of an object of Git.
func isObject(word string) bool {
	return (len(word) == 2*sha1.Size || len(word) == 2*sha256.Size) && strings.Trim(word, "0123456789abcdef") == ""
}

// since returns the objects that t has and before does not, and the indexes that changed.
func (t tips) since(before tips) (objects, indexes []string) {
	had := map[string]bool{}
	for _, object := range before.refs {
		had[object] = true
	}
	for _, object := range t.refs {
		if !had[object] && !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
	}
	for index, stamp := range t.indexes {
		if stamp != "" && stamp != before.indexes[index] {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(objects)
	slices.Sort(indexes)
	return objects, indexes
}

// commitsScript writes what new commits and indexes have that earlier ones did not, as git
// diff-tree does, and then the number of the commits. Its input has the tips.
const commitsScript = `
git=$1 head=$2 indexes=$3; shift 3
g() { git --git-dir="$git" -c core.fsmonitor=false "$@"; }
f='--raw -z -r --no-renames --no-abbrev --diff-filter=AMTU'
none=$(g hash-object -t tree /dev/null) || exit
g rev-list --ignore-missing --stdin -n 2001 >/tmp/commits || exit
n=$(wc -l </tmp/commits)
if [ "$n" -le 2000 ]; then
	g diff-tree --stdin --root -c --no-commit-id $f </tmp/commits || exit
else
	for tip; do g diff-tree $f "${head:-$none}" "$tip" || exit; done
fi
IFS=$(printf '\n_') && IFS=${IFS%_}
for line in $indexes; do
	unset IFS
	head=${line%% *} index=${line#* }
	GIT_INDEX_FILE=$git/$index g diff-index --cached $f "${head:-$none}" -- || exit
done
printf '#%s\0' "$n"
`

// asks runs a script in a cage that only looks.
type asks func(ctx context.Context, script, input string, args ...string) ([]byte, error)

// commits returns what new commits and indexes of the repositories have under names that other
// programs run, and why not everything could be looked at.
func (b before) commits(now *privateFiles, blocked []string, ask asks) (found []string, unchecked string) {
	ctx, cancel := context.WithTimeout(context.Background(), commitsTime)
	defer cancel()
	asked := 0
	for _, git := range now.gits {
		info, err := os.Lstat(git)
		if err != nil || !info.IsDir() || git == b.Workspace && !isRepository(git) {
			continue
		}
		had, known := b.tips[fileID(git)]
		t := tipsOf(git, now.refs)
		objects, indexes := t.since(had)
		if len(objects)+len(indexes) == 0 {
			continue
		}
		if asked++; asked > maxAsked {
			return found, fmt.Sprintf("the commits of more than %d repositories", maxAsked)
		}
		for name, object := range t.refs { // it changes what older commits hold
			if ref := strings.TrimSuffix(strings.TrimPrefix(name, "packed "), " 0"); strings.HasPrefix(ref, "refs/replace/") &&
				had.refs[ref+" 0"] != object && had.refs["packed "+ref] != object {
				found = append(found, filepath.Join(b.rel(git), ref))
			}
		}
		names, err := b.ask(ctx, ask, git, had, objects, indexes)
		if err != nil || !t.known || len(objects) > maxTips {
			unchecked = "not all new commits in " + b.rel(git) + " could be looked at"
		}
		for _, name := range names {
			said := !known && slices.Contains(blocked, name) // of a clone
			if !said && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found, unchecked
}

// rel returns a path as one in the workspace.
func (b before) rel(name string) string {
	if rel, err := filepath.Rel(b.Workspace, name); err == nil {
		return rel
	}
	return name
}

// ask asks Git about one repository.
func (b before) ask(ctx context.Context, ask asks, git string, had tips, objects, indexes []string) ([]string, error) {
	var in strings.Builder
	tips := objects[:min(len(objects), maxTips)]
	for _, object := range objects {
		fmt.Fprintln(&in, object)
	}
	for _, object := range slices.Compact(slices.Sorted(maps.Values(had.refs))) {
		if isObject(object) {
			fmt.Fprintln(&in, "^"+object)
		}
	}
	var lines []string
	for _, index := range indexes {
		lines = append(lines, had.heads[index]+" "+index)
	}
	out, err := ask(ctx, commitsScript, in.String(),
		append([]string{git, had.heads["index"], strings.Join(lines, "\n")}, tips...)...)
	tree := git
	if strings.EqualFold(filepath.Base(git), ".git") {
		tree = filepath.Dir(git)
	}
	var names []string
	words := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(words); i++ {
		change, isChange := strings.CutPrefix(words[i], ":")
		if !isChange {
			continue
		}
		i++
		name := filepath.Join(tree, filepath.FromSlash(words[i]))
		part := pathpolicy.RunsIn(b.rel(name))
		if part == "" && strings.EqualFold(filepath.Base(name), "HEAD") { // of a repository without a working tree
			part = b.rel(name)
		}
		fields := strings.Fields(change)
		if part == "" || len(fields) < 2 || b.has(filepath.Join(b.Workspace, part)) && holds(name, fields[len(fields)-2]) {
			continue
		}
		names = append(names, part)
	}
	if n, ok := strings.CutPrefix(words[max(len(words)-2, 0)], "#"); err == nil && !ok {
		err = errors.New("git did not say all")
	} else if n, _ := strconv.Atoi(strings.TrimSpace(n)); n > maxCommits && len(objects) > len(tips) {
		err = errors.New("too many commits")
	}
	return names, err
}

// holds reports whether a file is an object of Git.
func holds(name, object string) bool {
	info, err := os.Lstat(name)
	if err != nil {
		return false
	}
	var data []byte
	if info.Mode().Type() == fs.ModeSymlink {
		var to string
		to, err = os.Readlink(name)
		data = []byte(to)
	} else {
		data, err = folders.ReadPath(name, maxGitConfig)
	}
	if err != nil {
		return false
	}
	var h hash.Hash = sha1.New()
	if len(object) == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)) == object
}

// asks returns how Git is asked in the workspace of a plan.
func (b *Broker) asks(p sandbox.Plan) asks {
	r := *p.Rights
	r.Write, r.Hosts, r.Change = false, nil, nil
	return func(ctx context.Context, script, input string, args ...string) ([]byte, error) {
		out := &limited{}
		pr, err := b.Start(ctx, sandbox.Plan{
			Path:   "/bin/sh",
			Argv:   append([]string{"sh", "-c", script, "sh"}, args...),
			Dir:    r.Workspace,
			Rights: &r,
			Stdin:  strings.NewReader(input),
			Stderr: io.Discard,
			Env: []string{"PATH=" + strings.Join(searchPath(p.Env), ":"), "HOME=" + b.o.Home, "GIT_OPTIONAL_LOCKS=0",
				"GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0"},
		}, out)
		if err != nil {
			return nil, err
		}
		exit, err := pr.Wait()
		if err == nil && (exit.Code != 0 || out.over) {
			err = fmt.Errorf("git ended with %d %s", exit.Code, exit.Signal)
		}
		return out.Bytes(), err
	}
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(data []byte) (int, error) {
	kept := data[:min(len(data), maxChanges-l.Len())]
	l.over = l.over || len(kept) < len(data)
	l.Buffer.Write(kept)
	return len(data), nil
}
