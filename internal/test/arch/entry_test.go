package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// entryPoints are the calls that open a way into the gateway from outside, and the
// packages that may make them. The registry of entry points, which another test
// walks, knows only those.
var entryPoints = []struct {
	path, name string   // of the imported package, and in it
	by         []string // patterns of packages
}{
	{module + "/internal/surface/rpc", "New", []string{"internal/surface/method/*"}},
	{module + "/internal/surface/rpc", "NewSet", []string{"internal/app/methods"}},
	{"net/http", "NewServeMux", []string{"internal/surface/httpapi"}},
	{"net/http", "Handle", nil},
	{"net/http", "HandleFunc", nil},
	{"net/http", "ListenAndServe", nil},
	{"net/http", "Serve", nil},
	// the last ones: the proxy of a browser, and where a browser returns to after a login; both reach
	// nothing of a gateway
	{"net/http", "Server", []string{"internal/surface/gateway", "internal/surface/httpapi", "internal/plugin/tool/browser",
		"internal/surface/cli"}},
	{"net", "Listen", []string{"internal/app/statedir", "internal/plugin/tool/browser"}},
	{"net", "ListenConfig", []string{"internal/app/endpoint"}},
	{"net", "ListenPacket", nil},
	// tells where the port is, and takes nothing
	{"net", "ListenMulticastUDP", []string{"internal/app/beacon"}},
	// for answers to a question
	{"net", "ListenUDP", []string{"internal/app/beacon"}},
	// in the network of a cage
	{"net", "ListenTCP", []string{"internal/plugin/sandbox/native", "internal/plugin/sandbox/native/launch"}},
	{"net", "ListenUnix", nil},
	{"github.com/coder/websocket", "Accept", []string{"internal/surface/gateway"}},
}

// TestEntryPoints finds entry points of the gateway that are made outside of the
// packages that register them.
func TestEntryPoints(t *testing.T) {
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
				for _, d := range entryPoints {
					if s.path != d.path || s.name != d.name {
						continue
					}
					found[d.path+"."+d.name] = true
					if !slices.ContainsFunc(d.by, func(by string) bool { return match(by, from) }) {
						t.Errorf("%s: %s.%s: only %v may open an entry point", fset.Position(s.pos), d.path, d.name, d.by)
					}
				}
			}
		}
	}
	for _, d := range entryPoints {
		if d.by != nil && !found[d.path+"."+d.name] {
			t.Errorf("%s.%s is not used: remove it from the list", d.path, d.name)
		}
	}
}

// selector is a use of a name of an imported package.
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
