package archtest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/chela-ai/chela"

// levels is the house: a package imports levels below its own, and beside it
// only what beside names. The first pattern that matches counts.
var levels = []struct {
	pattern string // path below the module; a trailing * matches one element
	level   int
}{
	{"wire", 0},
	{"internal/chela", 0},
	{"internal/llm", 0},
	{"internal/lane", 0},
	{"internal/worker", 0},
	{"internal/line", 0},
	{"internal/watch", 0},
	{"internal/sse", 0},
	{"internal/cursor", 0},
	{"internal/json5", 0},
	{"internal/chunk", 0},
	{"internal/atomicfile", 0},
	{"internal/backoff", 0},
	{"internal/secret", 0},
	{"internal/store/sqlite/db", 1},
	{"internal/store/sqlite/page", 0},
	{"internal/store/sqlite/vfs", 1},
	{"internal/store/sqlite/wal", 1},
	{"internal/store/parts", 1},
	{"internal/store/wake", 2},
	{"internal/logfile", 0},
	{"internal/process", 0},
	{"internal/spelling", 0},
	{"internal/figure", 0},
	{"internal/cert", 0},
	{"internal/schema", 0},

	{"internal/queue", 1},
	{"internal/run", 1},
	{"internal/outbox", 1},
	{"internal/session", 1},
	{"internal/approval", 1},
	{"internal/pairing", 1},
	{"internal/usage", 1},
	{"internal/route", 1},
	{"internal/tool", 1},
	{"internal/channel", 1},
	{"internal/prompt", 1},
	{"internal/policy", 1},
	{"internal/hook", 1},
	{"internal/bus", 1},
	{"internal/shell", 1},
	{"internal/reach", 1},
	{"internal/allowlist", 1},
	{"internal/sandbox", 1},
	{"internal/compact", 1},
	{"internal/dialect", 1},
	{"internal/egress", 1},
	{"internal/tool/web/pdf", 1},
	{"internal/config", 1},
	{"internal/store", 1},
	{"internal/media", 1},
	{"internal/statedir", 1},

	{"internal/agent", 2},
	{"internal/invoke", 2},
	{"internal/inbound", 2},
	{"internal/dispatch", 2},
	{"internal/dispatch/*", 2},
	{"internal/deliver", 2},
	{"internal/shape", 2},
	{"internal/access", 2},
	{"internal/config/*", 2},
	{"internal/upkeep", 2},

	{"client", 3},
	{"internal/rpc", 3},
	{"internal/method/*", 3},
	{"internal/gateway", 3},
	{"internal/httpapi", 3},
	{"internal/cli", 3},
	{"internal/cli/*", 3},
	{"internal/tui", 3},
	{"internal/tui/*", 3},

	{"internal/llm/*", 4},
	{"internal/tool/*", 4},
	{"internal/store/*", 4},
	{"internal/sandbox/*", 4},
	{"internal/channel/*", 4},

	{"internal/standard", 5},
	{"internal/meter", 5},
	{"internal/endpoint", 5},
	{"internal/model", 5},
	{"internal/settings", 5},
	{"internal/app", 6},
	{"cmd/*", 7},
}

// beside names the imports within a level.
var beside = map[string][]string{
	"internal/llm":              {"internal/spelling"},
	"internal/schema":           {"internal/cursor"},
	"internal/dispatch":         {"internal/agent", "internal/invoke", "internal/dispatch/*"},
	"internal/method/*":         {"internal/rpc"},
	"internal/gateway":          {"internal/rpc"},
	"internal/cli":              {"client", "internal/tui", "internal/tui/*", "internal/cli/*"},
	"internal/cli/*":            {"client", "internal/cli/console", "internal/tui/ansi", "internal/tui/attach", "internal/tui/markdown", "internal/tui/talk"},
	"internal/tui":              {"client", "internal/tui/*"},
	"internal/tui/*":            {"client", "internal/tui/ansi", "internal/tui/attach", "internal/tui/feed", "internal/tui/lines"},
	"internal/model":            {"internal/standard"},
	"internal/settings":         {"internal/model"},
	"internal/compact":          {"internal/session"},
	"internal/allowlist":        {"internal/shell"},
	"internal/reach":            {"internal/shell", "internal/tool"},
	"internal/store/sqlite/wal": {"internal/store/sqlite/vfs"},
	"internal/store":            {"internal/approval", "internal/outbox", "internal/pairing", "internal/queue", "internal/run", "internal/session", "internal/usage"},
}

// only narrows what some packages import of ours, below what the level allows.
var only = map[string][]string{
	"internal/agent": {"internal/llm", "internal/tool", "internal/chela"},
	"client":         {"wire"},
}

// onlyBy names packages that few may import, and who.
var onlyBy = map[string][]string{
	"internal/config": {"internal/app", "internal/cli", "internal/config/*", "cmd/chela"},
	"os/exec":         {"internal/sandbox/*"},
}

// suites are test packages: they may import what they test and are imported by
// tests only.
func isSuite(p string) bool {
	return strings.HasSuffix(p, "test") || p == "internal/conformance" || strings.HasPrefix(p, "internal/chelatest") || strings.HasPrefix(p, "internal/store/storetest")
}

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
	Module     *struct{ Path string }
}

// packages lists the module's packages once for all tests.
var packages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles,Module", "./...")
	cmd.Dir = filepath.Join("..", "..")
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

func levelOf(p string) int {
	for _, l := range levels {
		if match(l.pattern, p) {
			return l.level
		}
	}
	return -1
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

func TestLevels(t *testing.T) {
	for _, p := range list(t) {
		from := short(p.ImportPath)
		if isSuite(from) || from == "internal/archtest" {
			continue
		}
		level := levelOf(from)
		if level < 0 {
			t.Errorf("%s is in no level: add it to the table", from)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") {
				if level == 0 && strings.Contains(imp, ".") {
					t.Errorf("%s imports %s: the lowest level imports the standard library only", from, imp)
				}
				continue
			}
			to := short(imp)
			if isSuite(to) {
				t.Errorf("%s imports the test suite %s", from, to)
				continue
			}
			if listed, ok := allowed(only, from, to); listed && !ok {
				t.Errorf("%s imports %s, which is not in its short list", from, to)
			}
			if levelOf(to) < level {
				continue
			}
			if _, ok := allowed(beside, from, to); !ok {
				t.Errorf("%s (level %d) imports %s (level %d)", from, level, to, levelOf(to))
			}
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

// Size: a package that passes this without its tests lacks a noun.
const maxLines = 3000

// whole are packages that are longer, and why they are one all the same.
var whole = map[string]string{
	"wire": "the messages of one protocol, a file a family: clients import one package",
}

func TestSources(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range list(t) {
		from := short(p.ImportPath)
		documented, lines := false, 0
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			documented = documented || f.Doc != nil
			lines += fset.File(f.Pos()).LineCount()
			checkDecls(t, fset, from, f)
		}
		if !documented && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", from)
		}
		if lines > maxLines && whole[from] == "" {
			t.Errorf("%s has %d lines: more than %d are a sign that a noun is missing", from, lines, maxLines)
		}
	}
}

// checkDecls finds init functions, os.Exit outside of cmd, and package-level
// variables that something could change.
func checkDecls(t *testing.T, fset *token.FileSet, from string, f *ast.File) {
	t.Helper()
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				t.Errorf("%s: func init", fset.Position(d.Pos()))
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				checkVars(t, fset, d)
			}
		}
	}
	checkDoor(t, fset, from, f)
	if strings.HasPrefix(from, "cmd/") {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && (x.Name == "os" && sel.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
			t.Errorf("%s: %s.%s outside of cmd", fset.Position(n.Pos()), x.Name, sel.Sel.Name)
		}
		return true
	})
}

// checkDoor finds ways out that are not the door's: what is fetched is fetched
// by a client of package egress.
func checkDoor(t *testing.T, fset *token.FileSet, from string, f *ast.File) {
	t.Helper()
	if isSuite(from) || from == "internal/egress" {
		return
	}
	ways := map[string][]string{
		"http": {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
		"net":  {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DefaultResolver"},
		"tls":  {"Dial", "DialWithDialer"},
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(ways[x.Name], sel.Sel.Name) {
				t.Errorf("%s: %s.%s: a client of internal/egress is the way out", fset.Position(n.Pos()), x.Name, sel.Sel.Name)
			}
		}
		return true
	})
}

// checkVars accepts package-level variables that hold what is never assigned
// to again by convention: errors, compiled patterns, tables, interface checks,
// embedded files. Maps, channels, locks, counters and pointers to them are
// state.
func checkVars(t *testing.T, fset *token.FileSet, d *ast.GenDecl) {
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
				}
			} else if _, ok := v.Type.(*ast.MapType); ok {
				t.Errorf("%s: package-level map %s", fset.Position(name.Pos()), name.Name)
			}
		}
	}
}
