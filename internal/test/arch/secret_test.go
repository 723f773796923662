package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// comparedSecrets returns the positions at which a file compares the revealed
// text of a secret.Value: with an operator, in a switch, or by a function of
// strings, bytes or slices. It follows variables that a function assigns from
// Reveal. A comparison with a literal is allowed: it reveals no secret.
func comparedSecrets(f *ast.File) (found []token.Pos) {
	for _, d := range f.Decls {
		revealed := map[string]bool{}
		secret := func(e ast.Expr) bool {
			is := false
			ast.Inspect(e, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					is = is || revealed[n.Name]
				case *ast.SelectorExpr:
					is = is || n.Sel.Name == "Reveal"
				}
				return !is
			})
			return is
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if id, ok := l.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && isReveal(n.Rhs[i]) {
						revealed[id.Name] = true
					}
				}
			case *ast.BinaryExpr:
				compares := n.Op == token.EQL || n.Op == token.NEQ
				if compares && !isLiteral(n.X) && !isLiteral(n.Y) && (isText(n.X) && secret(n.X) || isText(n.Y) && secret(n.Y)) {
					found = append(found, n.OpPos)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isText(n.Tag) && secret(n.Tag) {
					found = append(found, n.Pos())
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"Equal", "EqualFold", "Compare", "Contains", "Index"}, sel.Sel.Name) ||
					slices.ContainsFunc(n.Args, isLiteral) {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"strings", "bytes", "slices", "reflect", "cmp"},
					x.Name) && slices.ContainsFunc(n.Args, secret) {
					found = append(found, n.Pos())
				}
			}
			return true
		})
	}
	return found
}

// isReveal reports whether e is a call of a method Reveal.
func isReveal(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Reveal"
}

// isText reports whether e may be the text itself: a variable, a call of
// Reveal, or a conversion. Other calls, such as len, give something else.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.ParenExpr:
		return isText(e.X)
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return isReveal(e) || ok && id.Name == "string"
	}
	return false
}

// isLiteral reports whether e is a constant in the source.
func isLiteral(e ast.Expr) bool {
	_, ok := e.(*ast.BasicLit)
	return ok
}

func TestComparedSecrets(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`_ = v.Reveal() == x`:                      1,
		`_ = x != o.token.Reveal()`:                1,
		`s := v.Reveal(); _ = x == s`:              1,
		`_ = string(b) == string(v.Reveal())`:      1,
		`switch v.Reveal() { case x: }`:            1,
		`_ = strings.EqualFold(x, v.Reveal())`:     1,
		`_ = bytes.Equal(b, []byte(v.Reveal()))`:   1,
		`s := v.Reveal(); _ = s == "" || len(s)<n`: 0,
		`_ = len(v.Reveal()) == n`:                 0,
		`_ = strings.Contains(v.Reveal(), "${")`:   0,
		`_ = v.Equal(w)`:                           0,
		`_ = x == y`:                               0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+body+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(comparedSecrets(f)); got != want {
			t.Errorf("%s: %d comparisons found, want %d", body, got, want)
		}
	}
}
