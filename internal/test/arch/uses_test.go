package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// usesOf returns where the functions of a file use one of the names, which have the
// form package.Name: "function package.Name".
func usesOf(f *ast.File, names []string) (found []string) {
	for _, d := range f.Decls {
		in := "a variable"
		if fd, ok := d.(*ast.FuncDecl); ok {
			in = fd.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names, x.Name+"."+sel.Sel.Name) {
				found = append(found, in+" "+x.Name+"."+sel.Sel.Name)
			}
			return true
		})
	}
	return found
}

// checkUses compares the uses of the names in some packages with a list:
// "package function package.Name", with the reason for the use.
func checkUses(t *testing.T, in func(pkg string) bool, names []string, want map[string]string) {
	t.Helper()
	found := map[string]bool{}
	for _, p := range list(t) {
		from := short(p.ImportPath)
		if isSuite(from) || !in(from) {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			for _, u := range usesOf(f, names) {
				found[from+" "+u] = true
			}
		}
	}
	for _, u := range slices.Sorted(maps.Keys(found)) {
		if want[u] == "" {
			t.Errorf("%s: not in the list", u)
		}
	}
	for _, u := range slices.Sorted(maps.Keys(want)) {
		if !found[u] {
			t.Errorf("%s: listed, but not found", u)
		}
	}
}

// TestConstantTime lists where secrets and hashes of secrets are compared. A
// function that no longer compares in constant time is missing.
func TestConstantTime(t *testing.T) {
	checkUses(t, func(string) bool { return true }, []string{"subtle.ConstantTimeCompare", "hmac.Equal"},
		map[string]string{
			"internal/kit/secret Equal subtle.ConstantTimeCompare":     "any two secrets",
			"internal/core/pairing accepts subtle.ConstantTimeCompare": "the tokens of a device",
			"internal/engine/webhook verify hmac.Equal":                "signatures of requests",
			"internal/core/signature Valid hmac.Equal":                 "signatures of requests",
			"internal/core/pairing Accept subtle.ConstantTimeCompare":  "invitations",
		})
}

// TestPaths lists what accesses files of a workspace by their path. Everything else
// uses an os.Root, because a path may lead elsewhere after it was checked.
func TestPaths(t *testing.T) {
	rooted := []string{
		"internal/core/pathpolicy", "internal/core/prompt", "internal/plugin/tool/fs", "internal/plugin/tool/media",
		"internal/plugin/tool/message",
		"internal/surface/method/agents", "internal/surface/method/files",
	}
	names := []string{"filepath.Walk", "filepath.WalkDir", "filepath.Glob", "filepath.EvalSymlinks", "atomicfile.Write"}
	for _, name := range strings.Fields("Open OpenFile Create ReadFile WriteFile ReadDir Stat Lstat Mkdir MkdirAll MkdirTemp CreateTemp Remove RemoveAll Rename Symlink Link Readlink Chmod Chown Lchown Chtimes Truncate DirFS CopyFS OpenRoot OpenInRoot") {
		names = append(names, "os."+name)
	}
	checkUses(t, func(p string) bool { return slices.Contains(rooted, p) }, names, map[string]string{
		"internal/core/pathpolicy Open os.OpenRoot":                   "opens the workspace",
		"internal/core/pathpolicy OpenParent os.OpenRoot":             "opens the root of the file system",
		"internal/core/pathpolicy openDir os.OpenRoot":                "opens the root of the file system",
		"internal/core/prompt Stat os.OpenRoot":                       "opens the workspace",
		"internal/core/prompt Write os.OpenRoot":                      "opens the workspace",
		"internal/surface/method/agents open os.OpenRoot":             "opens the workspace",
		"internal/surface/method/files open os.OpenRoot":              "opens the workspace",
		"internal/core/pathpolicy IsLink os.Lstat":                    "changes only how a file is displayed",
		"internal/core/pathpolicy under filepath.EvalSymlinks":        "the workspace itself may be a link",
		"internal/core/pathpolicy resolver filepath.EvalSymlinks":     "the workspace itself may be a link",
		"internal/core/pathpolicy resolveLinks filepath.EvalSymlinks": "decides; the folder is opened element by element afterwards",
		"internal/core/pathpolicy open os.Lstat":                      "finds the folder, which is opened element by element afterwards",
		"internal/core/pathpolicy Trail os.Readlink":                  "names what is refused or hidden; nothing is opened",
		"internal/core/prompt Seed os.MkdirAll":                       "makes the workspace",
		"internal/core/prompt IsNew os.Lstat":                         "a new workspace is empty",
		"internal/core/prompt hasMemories os.Lstat":                   "a new workspace is empty",
		"internal/core/prompt create os.OpenFile":                     "O_EXCL does not follow links",
		"internal/core/prompt Types os.ReadDir":                       "lists names; the files are read through the root",
		"internal/core/prompt fileLocked os.Lstat":                    "finds out whether a file changed; it is read through the root",
		"internal/core/prompt Write os.MkdirAll":                      "makes the workspace",
		"internal/surface/method/agents trash os.MkdirAll":            "in the state directory",
		"internal/surface/method/agents trash os.Rename":              "moves a whole workspace",
	})
}
