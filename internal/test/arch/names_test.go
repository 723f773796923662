package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vague are words that say nothing to an engineer who does not know this
// project. Each had several meanings here once. A type or a package is named by
// the field's term instead: target, location, reservation, cooldown, executor.
var vague = []string{"place", "desk", "book", "errand", "owe", "owed", "shape", "figure", "upkeep", "meter", "spoken",
	"wording", "legible", "mend", "stand", "keep"}

// words splits an identifier into lower-case words.
func words(name string) []string {
	return strings.Fields(strings.ToLower(regexp.MustCompile(`[A-Z]+[a-z0-9]*|_`).ReplaceAllStringFunc(name,
		func(w string) string {
			return " " + strings.Trim(w, "_")
		})))
}

// TestNames finds packages and types with vague names.
func TestNames(t *testing.T) {
	t.Parallel()
	bad := func(name string) bool {
		return slices.ContainsFunc(words(name), func(w string) bool { return slices.Contains(vague, w) })
	}
	fset := token.NewFileSet()
	for _, p := range list(t) {
		if bad(filepath.Base(p.ImportPath)) {
			t.Errorf("package %s: the name is vague", short(p.ImportPath))
		}
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok && bad(s.Name.Name) {
					t.Errorf("%s: type %s: the name is vague", fset.Position(s.Pos()), s.Name.Name)
				}
				return true
			})
		}
	}
}
