package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayNameTools are the files and folders that may name tools, each with its reason.
var mayNameTools = map[string]string{
	"internal/plugin/tool":                        "the tools",
	"internal/core/policy/absent.go":              "OpenClaw's tools that this build does not have",
	"internal/plugin/llm/offline":                 "the assistant that works without a model calls tools",
	"internal/app/standard/standard.go":           "the table",
	"internal/test":                               "tests",
	"internal/app/migrate/plan.go":                "names of folders of OpenClaw",
	"internal/engine/history/stamp.go":            "stored calls have no specs",
	"internal/core/shell":                         "the programs ls and find",
	"internal/plugin/channel/external/ability.go": "abilities of channels",
	"internal/engine/cron/journal.go":             "changes of jobs that nobody made with a tool are recorded like those of the tool",
	"internal/surface/tui/feed":                   "draws plans instead of calls, and what stored calls did not find; a message has no specs",
	"internal/surface/method/files/toolcall.go":   "finds files in the arguments of stored calls",
}

// toolNames returns the names of the tools: the field Name of each tool.Spec in
// plugin/tool.
func toolNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	goFiles(t, root, "internal/plugin/tool", func(_ string, f *ast.File, _ *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if s, ok := c.Type.(*ast.SelectorExpr); !ok || s.Sel.Name != "Spec" {
				return true
			}
			for _, e := range c.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && identifier(kv.Key) == "Name" {
					if name, ok := stringOf(kv.Value); ok {
						names[name] = true
					}
				}
			}
			return true
		})
	})
	if len(names) < 20 {
		t.Fatalf("found only %d tools", len(names))
	}
	return names
}

// Nothing but a tool itself knows it by its name: what others have to know about it is in its
// spec.
func TestToolNames(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	names := toolNames(t, root)
	for _, dir := range []string{"client", "wire", "internal"} {
		goFiles(t, root, dir, func(path string, f *ast.File, fset *token.FileSet) {
			for p := path; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
				if mayNameTools[p] != "" {
					return
				}
			}
			for _, l := range namedTools(f, names) {
				t.Errorf("%s: %s is the name of a tool; ask its tool.Spec instead", fset.Position(l.Pos()), l.Value)
			}
		})
	}
}

// TestNamedTools checks the check.
func TestNamedTools(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"read": true, "write": true, "web_fetch": true}
	for code, want := range map[string]int{
		`var x = "web_fetch"`:                                1,
		`func f(tool string) bool { return tool == "read" }`: 1,
		`func f(s spec) bool { return "read" != s.Name }`:    1,
		`func f(s spec) { switch s.Name { case "read": } }`:  1,
		`var x = []string{"read", "write"}`:                  2,

		`var x = map[string]int{"read": 1, "write": 2}`: 2,
		`const readTool = "read"`:                       1,
		`var x = call{Tool: "read"}`:                    1,
		`func f() { tools.Get("read") }`:                1,
		`var x = action == "read"`:                      0,
		`var x = []string{"read", "mail"}`:              0,
		`const read = "read"`:                           0,

		`func f() { os.Open("read") }`: 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := namedTools(f, names); len(got) != want {
			t.Errorf("%s: found %d, want %d", code, len(got), want)
		}
	}
}

// aboutTools matches an expression that stands for a tool or its name.
var aboutTools = regexp.MustCompile(`(?i)tools?$|(spec|call|wire|tool|\bt|\bs|\bc|\bk)\.name$|toolname$`)

// namedTools returns the literals that name a tool. A name with an underscore is one
// everywhere. Others are words too: they are names where something about tools is compared with
// them, assigned or looked up, and where a list has two of them.
func namedTools(f *ast.File, names map[string]bool) (found []*ast.BasicLit) {
	add := func(e ast.Expr, about ...string) {
		l, ok := e.(*ast.BasicLit)
		name, isString := stringOf(e)
		if ok && isString && names[name] && !slices.Contains(found, l) &&
			(strings.Contains(name, "_") || slices.ContainsFunc(about, aboutTools.MatchString)) {
			found = append(found, l)
		}
	}
	list := func(elements []ast.Expr) {
		distinct := map[string]bool{}
		for _, e := range elements {
			if name, ok := stringOf(e); ok && names[name] {
				distinct[name] = true
			}
		}
		for _, e := range elements {
			if len(distinct) > 1 {
				add(e, "tools")
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			add(n)
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n.X, printed(n.Y))
				add(n.Y, printed(n.X))
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					add(e, printed(n.Tag))
				}
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				for _, a := range n.Args {
					add(a, printed(s.X))
				}
			}
		case *ast.ValueSpec:
			for i, v := range n.Values {
				add(v, n.Names[min(i, len(n.Names)-1)].Name)
			}
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				add(v, printed(n.Lhs[min(i, len(n.Lhs)-1)]))
			}
		case *ast.CompositeLit:
			var keys []ast.Expr
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					add(kv.Value, printed(kv.Key))
					e = kv.Key
				}
				keys = append(keys, e)
			}
			list(keys)
		}
		return true
	})
	return found
}

// printed returns an expression of names and selectors as text.
func printed(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return printed(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return printed(e.Fun)
	}
	return ""
}

func identifier(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func stringOf(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// goFiles calls f for the files of a folder that are not tests.
func goFiles(t *testing.T, root, dir string, f func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || strings.HasSuffix(e.Name(), "test") && e.Name() != dir) {
			return filepath.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(rel), file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
