package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words returns the arguments that words expand to, and the same arguments as
// words with one value each. An argument whose value is not known before the
// command runs is the source.
func (w *walker) words(words ...*syntax.Word) (out []Word, nodes []*syntax.Word) {
	for _, word := range words {
		fields, known := w.expand(word)
		if !known {
			w.computed = true
			out, nodes = append(out, Word{Text: source(word)}), append(nodes, word)
			continue
		}
		glob := slices.ContainsFunc(word.Parts, func(p syntax.WordPart) bool {
			lit, ok := p.(*syntax.Lit)
			return ok && pattern(lit.Value)
		})
		for _, f := range fields {
			x, node := Word{f, true, glob && pattern(f)}, word
			if !x.Glob {
				node = quoted(f)
			}
			if x.Glob && len(fields) > 1 || strings.HasPrefix(f, "~") { // ~user
				w.undecided("a part of it is computed")
			}
			out, nodes = append(out, x), append(nodes, node)
		}
	}
	return out, nodes
}

// expand returns the values of a word if they are known: it contains no
// variable but HOME, and runs nothing.
func (w *walker) expand(word *syntax.Word) (fields []string, known bool) {
	if text := word.Lit(); text != "" && Quote(text) == text {
		return []string{text}, true
	}
	known, decided, fixed, braces := w.steps > 0, true, true, false
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word:
		case *syntax.Lit:
			braces = braces || strings.Contains(n.Value, "{")
			known = known && strings.Count(n.Value, "{") <= 4
		case *syntax.SglQuoted: // some shells do not have $'…'
			decided = decided && !n.Dollar
		case *syntax.DblQuoted:
			known, decided = known && !n.Dollar, decided && !n.Dollar
		case *syntax.ParamExp:
			value := n.Param != nil && plain(n)
			known, decided, fixed = known && value && n.Param.Value == "HOME", decided && value, false
		default:
			known, decided = false, false
		}
		return true
	})
	if !decided {
		w.undecided("a part of it is computed")
	}
	unquoted := ""
	for _, p := range word.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			unquoted += lit.Value
		}
	}
	list := braces && (strings.Contains(unquoted, ",") || strings.Contains(unquoted, ".."))
	fixed = fixed && decided && !list && !strings.ContainsAny(unquoted, "*?[") && !strings.HasPrefix(unquoted, "~")
	w.fixed = w.fixed && (fixed || w.depth > 0)
	if !known {
		return nil, false
	}
	env := expand.FuncEnviron(func(name string) string {
		user, other := strings.CutPrefix(name, "HOME ")
		switch {
		case name == "HOME":
			return w.Home
		case other: // ~user
			return "~" + user
		}
		return ""
	})
	fields, err := expand.Fields(&expand.Config{Env: env}, word)
	known = err == nil && len(fields) <= 256
	switch {
	case !known: // {a,b}{a,b}… and {1..999999} grow without bound
		w.steps -= maxSteps / 4
	case braces:
		w.steps -= len(fields)
	}
	return fields, known
}

// plain reports whether a parameter expansion only yields the value.
func plain(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil &&
		p.Names == 0 && p.Exp == nil
}

// pattern reports whether a string contains pattern characters. A lone [ is
// the name of a command.
func pattern(s string) bool { return strings.ContainsAny(s, "*?[") && s != "[" }

// known reports whether the shell passes exactly these words.
func known(words ...Word) bool {
	return !slices.ContainsFunc(words, func(x Word) bool { return !x.Literal || x.Glob })
}

func texts(words []Word) []string {
	out := make([]string, len(words))
	for i, x := range words {
		out[i] = x.Text
	}
	return out
}
