package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// doors are the calls that make a way into the gateway from outside, and the
// packages that may. What they make is in the registry that the test of the
// doors goes over; what others made would not be.
var doors = []struct {
	path, name string   // of the imported package, and in it
	by         []string // patterns of packages
}{
	{module + "/internal/rpc", "New", []string{"internal/method/*"}},
	{module + "/internal/rpc", "NewSet", []string{"internal/app"}},
	{"net/http", "NewServeMux", []string{"internal/httpapi"}},
	{"net/http", "Handle", nil},
	{"net/http", "HandleFunc", nil},
	{"net/http", "ListenAndServe", nil},
	{"net/http", "Serve", nil},
	{"net/http", "Server", []string{"internal/gateway", "internal/httpapi"}},
	{"net", "Listen", []string{"internal/statedir"}},
	{"net", "ListenConfig", []string{"internal/endpoint"}},
	{"net", "ListenPacket", nil},
	{"net", "ListenTCP", nil},
	{"net", "ListenUnix", nil},
	{"github.com/coder/websocket", "Accept", []string{"internal/gateway"}},
}

// TestDoorsAreMadeInOnePlace finds ways into the gateway that are made where
// the registry does not see them.
func TestDoorsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	found := map[string]bool{}
	for _, p := range list(t) {
		from := short(p.ImportPath)
		if isSuite(from) {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			for _, s := range selectors(f) {
				for _, d := range doors {
					if s.path != d.path || s.name != d.name {
						continue
					}
					found[d.path+"."+d.name] = true
					if !slices.ContainsFunc(d.by, func(by string) bool { return match(by, from) }) {
						t.Errorf("%s: %s.%s, which only %v may: it is a door", fset.Position(s.pos), d.path, d.name, d.by)
					}
				}
			}
		}
	}
	for _, d := range doors {
		if d.by != nil && !found[d.path+"."+d.name] {
			t.Errorf("nobody uses %s.%s: the list is an old one", d.path, d.name)
		}
	}
}

// selector is a name of an imported package that a file uses.
type selector struct {
	path, name string
	pos        token.Pos
}

func selectors(f *ast.File) []selector {
	paths := map[string]string{}
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue
		}
		name := filepath.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		paths[name] = p
	}
	var out []selector
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && paths[x.Name] != "" {
				out = append(out, selector{paths[x.Name], sel.Sel.Name, n.Pos()})
			}
		}
		return true
	})
	return out
}
