package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/chela-ai/chela"

// rooms are the folders of the module, from the ground up. A package imports
// rooms below its own. engine and plugin stand side by side: neither imports
// the other.
var rooms = []struct {
	name   string
	height int
}{
	{"docs", 0},
	{"wire", 0},
	{"client", 1},
	{"internal/kit", 0},
	{"internal/core", 1},
	{"internal/engine", 2},
	{"internal/plugin", 2},
	{"internal/surface", 3},
	{"internal/app", 4},
	{"cmd", 5},
	{"internal/test", 6},
}

// order is the order of the packages within a room: a package imports only
// those of earlier lines. A trailing * matches one element of a path, and "**"
// is every package that no other line names.
var order = map[string][][]string{
	"internal/kit": {{"**"}},
	"internal/core": {
		{"chela", "charset"},
		{"frontmatter", "lease", "llm", "plan", "run", "sandbox", "shell"},
		{"estimate", "media", "queue", "tool"},
		{"**"},
		{"action", "compact", "pathpolicy", "subagent"},
		{"plugindir", "prompt", "skill", "store"},
		{"proposal", "window"},
	},
	"internal/engine": {
		{"history", "leaseholder", "notice"},
		{"**"},
		{"runner"},
		{"dispatch"},
		{"inbound"},
	},
	"internal/plugin": {
		{"channel/chatjson", "llm/dialect", "sandbox/native/launch", "sandbox/stdio", "store/table",
			"tool/mcp/oauth", "tool/web/pdf"},
		{"store/sqlite/*"},
		{"**"},
	},
	"internal/surface": {
		{"rpc", "access", "wireview", "identity", "tui/ansi", "tui/attach"},
		{"tui/feed", "tui/markdown"},
		{"tui/repl"},
		{"tui"},
		{"**"},
		{"cli"},
	},
	"internal/app": {
		{"**"},
		{"standard"},
		{"model"},
		{"settings"},
		{"profile"},
		{"inventory"},
		{"backup", "doctor", "methods", "migrate", "removal"},
		{"."},
	},
	"cmd": {{"**"}},
}

// exceptions are imports that break the rule of the rooms, each with its reason.
var exceptions = map[string]map[string]string{}

// early are packages that may have an init function and end the process in it, each with its
// reason.
var early = map[string]string{
	"internal/plugin/sandbox/native/launch": "the first process of a cage does not wait for the initializers of the gateway",
}

// only narrows what some packages import of ours, below what the room allows.
var only = map[string][]string{
	"internal/engine/agent": {"internal/core/llm", "internal/core/tool", "internal/core/chela"},
	"client":                {"wire"},
}

// onlyBy names packages that few may import, and the packages that may.
var onlyBy = map[string][]string{
	"internal/core/config": {"internal/app", "internal/app/*", "internal/surface/cli", "cmd/chela"},
	"os/exec":              {"internal/plugin/sandbox/*"},
}

// isSuite reports whether p is a test package. A suite may import what it tests
// and is imported by tests only.
func isSuite(p string) bool {
	return strings.HasSuffix(p, "test") || strings.HasPrefix(p, "internal/test")
}

type pkg struct {
	ImportPath                string
	Dir                       string
	Imports                   []string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	Module                    *struct{ Path string }
}

// packages lists the module's packages once for all tests.
var packages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles,TestGoFiles,XTestGoFiles,Module", "./...")
	cmd.Dir = filepath.Join("..", "..", "..")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

func list(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := packages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return pkgs
}

func short(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func match(pattern, p string) bool {
	ok, _ := path.Match(pattern, p)
	return ok
}

func allowed(table map[string][]string, from, to string) (listed, ok bool) {
	for pattern, tos := range table {
		if match(pattern, from) {
			listed = true
			ok = ok || slices.ContainsFunc(tos, func(t string) bool { return match(t, to) })
		}
	}
	return listed, ok
}

// roomOf returns the room that a package is in, its height, and the package's
// path below the room ("." for the room itself).
func roomOf(p string) (room string, height int, below string) {
	for _, r := range rooms {
		if p == r.name {
			return r.name, r.height, "."
		}
		if rest, ok := strings.CutPrefix(p, r.name+"/"); ok {
			return r.name, r.height, rest
		}
	}
	return "", -1, ""
}

// lineOf returns the number of the line of the room's order that a package is on.
func lineOf(room, below string) int {
	rest := 0
	for i, line := range order[room] {
		for _, pattern := range line {
			if pattern == "**" {
				rest = i
			} else if match(pattern, below) {
				return i
			}
		}
	}
	return rest
}

// mayImport reports whether the rooms and their order allow an import.
func mayImport(from, to string) bool {
	fromRoom, fromHeight, fromBelow := roomOf(from)
	toRoom, toHeight, toBelow := roomOf(to)
	if fromRoom == toRoom {
		return lineOf(toRoom, toBelow) < lineOf(fromRoom, fromBelow)
	}
	return toHeight < fromHeight
}

func TestRooms(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t) {
		from := short(p.ImportPath)
		if isSuite(from) {
			continue
		}
		room, _, _ := roomOf(from)
		if room == "" {
			t.Errorf("%s is in no room: move it to one", from)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") {
				if room == "internal/kit" && strings.Contains(imp, ".") {
					t.Errorf("%s imports %s: kit imports the standard library only", from, imp)
				}
				continue
			}
			to := short(imp)
			if isSuite(to) {
				t.Errorf("%s imports the test suite %s", from, to)
				continue
			}
			if listed, ok := allowed(only, from, to); listed && !ok {
				t.Errorf("%s imports %s, which is not in its list", from, to)
			}
			if mayImport(from, to) {
				continue
			}
			if exceptions[from][to] == "" {
				t.Errorf("%s imports %s, which is not below it", from, to)
			}
			used[from+" "+to] = true
		}
	}
	for from, tos := range exceptions {
		for to := range tos {
			if !used[from+" "+to] {
				t.Errorf("the exception for %s importing %s is not needed any more: remove it", from, to)
			}
		}
	}
}

// TestRoomDocs looks for the page that says what belongs in each room.
func TestRoomDocs(t *testing.T) {
	for _, r := range rooms {
		if !strings.HasPrefix(r.name, "internal/") {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(r.name), "doc.go")); err != nil {
			t.Errorf("%s has no doc.go that says what belongs there", r.name)
		}
	}
}

func TestRestrictedImports(t *testing.T) {
	for _, p := range list(t) {
		from := short(p.ImportPath)
		if isSuite(from) {
			continue
		}
		for _, imp := range p.Imports {
			who, ok := onlyBy[short(imp)]
			if !ok {
				continue
			}
			if !slices.ContainsFunc(who, func(w string) bool { return match(w, from) }) {
				t.Errorf("%s imports %s, which only %v may", from, short(imp), who)
			}
		}
	}
}

func TestSources(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range list(t) {
		from := short(p.ImportPath)
		documented := false
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			documented = documented || f.Doc != nil
			checkDecls(t, fset, from, f)
		}
		if !documented && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", from)
		}
	}
}

// checkDecls finds init functions, os.Exit outside of main packages, and mutable package-level
// variables.
func checkDecls(t *testing.T, fset *token.FileSet, from string, f *ast.File) {
	t.Helper()
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" && early[from] == "" {
				t.Errorf("%s: func init", fset.Position(d.Pos()))
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				checkVars(t, fset, from, d)
			}
		}
	}
	checkEgress(t, fset, from, f)
	if !isSuite(from) && from != "internal/kit/secret" {
		for _, pos := range comparedSecrets(f) {
			t.Errorf("%s: the text of a secret is compared: use Equal, which takes constant time", fset.Position(pos))
		}
	}
	if f.Name.Name == "main" || early[from] != "" {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && (x.Name == "os" && sel.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
			t.Errorf("%s: %s.%s outside of package main", fset.Position(n.Pos()), x.Name, sel.Sel.Name)
		}
		return true
	})
}

// checkEgress finds network connections that are not made by a client of package
// egress.
func checkEgress(t *testing.T, fset *token.FileSet, from string, f *ast.File) {
	t.Helper()
	if isSuite(from) || from == "internal/core/egress" {
		return
	}
	direct := map[string][]string{
		"http": {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
		"net":  {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DefaultResolver"},
		"tls":  {"Dial", "DialWithDialer"},
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(direct[x.Name], sel.Sel.Name) {
				t.Errorf("%s: %s.%s: use a client of internal/core/egress", fset.Position(n.Pos()), x.Name, sel.Sel.Name)
			}
		}
		return true
	})
}

// checkVars accepts package-level variables that are constant by convention:
// errors, compiled patterns, tables, interface checks, embedded files. Channels,
// locks, counters and empty maps are mutable state.
func checkVars(t *testing.T, fset *token.FileSet, from string, d *ast.GenDecl) {
	t.Helper()
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for i, name := range v.Names {
			if name.Name == "_" {
				continue
			}
			if sel, ok := v.Type.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
					t.Errorf("%s: package-level state %s", fset.Position(name.Pos()), name.Name)
				}
			}
			if _, ok := v.Type.(*ast.ChanType); ok {
				t.Errorf("%s: package-level channel %s", fset.Position(name.Pos()), name.Name)
			}
			if i < len(v.Values) {
				if call, ok := v.Values[i].(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "make" {
						t.Errorf("%s: package-level state %s", fset.Position(name.Pos()), name.Name)
					}
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" && !isSuite(from) {
						t.Errorf("%s: %s is compiled at each start of the program: use sync.OnceValue",
							fset.Position(name.Pos()), name.Name)
					}
				}
			} else if _, ok := v.Type.(*ast.MapType); ok {
				t.Errorf("%s: package-level map %s", fset.Position(name.Pos()), name.Name)
			}
		}
	}
}
