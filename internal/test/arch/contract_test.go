package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestContractCalls finds methods that the comparison with OpenClaw's published schema does
// not call. That comparison needs packages of npm, so that it is not part of every run.
func TestContractCalls(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	file := filepath.Join(root, "internal", "test", "conformance", "calls_test.go")
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "calls" {
			ast.Inspect(fn, func(n ast.Node) bool {
				if row, ok := n.(*ast.CompositeLit); ok && len(row.Elts) == 3 {
					name, _ := stringOf(row.Elts[0])
					called[name] = true
				}
				return true
			})
		}
	}
	n := 0
	goFiles(t, root, "wire", func(path string, f *ast.File, _ *token.FileSet) {
		ast.Inspect(f, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if !strings.HasPrefix(name.Name, "Method") || i >= len(spec.Values) || name.Name == "MethodConnect" {
					continue
				}
				method, isText := stringOf(spec.Values[i])
				if isText {
					n++
				}
				if isText && !called[method] {
					t.Errorf("%s: the method %s is not among the calls of %s", path, method, filepath.Base(file))
				}
			}
			return true
		})
	})
	if n < 100 {
		t.Errorf("%d methods were found, want more", n)
	}
}
