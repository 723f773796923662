package exec

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/chela-ai/chela/internal/core/shell"
)

// Limits of what is shown of the files in which make and package managers find what they
// run.
const (
	maxRecipeFile  = 1 << 20 // bytes
	maxRecipeLines = 30
	maxRecipeLine  = 300 // bytes
)

// recipes returns what make and package managers will run, as their files say now, for a
// person who approves it. It is empty if the command starts none of them. Variables are
// shown as they are written.
func recipes(sp shell.Plan, dir string) string {
	var out []string
	for _, s := range sp.Segments {
		if len(s.Argv) == 0 || !s.Argv[0].Literal {
			continue
		}
		if to, ok := changesDir(s); ok {
			dir = under(dir, to)
			continue
		}
		at := dir
		for i, a := range s.Argv[1:] {
			if (a.Text == "-C" || a.Text == "--prefix") && i+2 < len(s.Argv) {
				at = under(dir, s.Argv[i+2].Text)
			}
		}
		var lines []string
		name := path.Base(s.Argv[0].Text)
		switch name {
		case "make", "gmake":
			lines = makeRecipe(s.Argv[1:], at)
		case "npm", "pnpm", "yarn", "bun":
			lines = packageScripts(s.Argv[1:], at)
		}
		if len(lines) == 0 {
			continue
		}
		if n := len(lines); n > maxRecipeLines {
			lines = append(lines[:maxRecipeLines:maxRecipeLines], fmt.Sprintf("and %d more lines", n-maxRecipeLines))
		}
		for i, l := range lines {
			if len(l) > maxRecipeLine {
				l = strings.ToValidUTF8(l[:maxRecipeLine], "") + "…"
			}
			lines[i] = "  " + l
		}
		out = append(out, "\n"+name+" will run:\n"+strings.Join(lines, "\n"))
	}
	return strings.Join(out, "")
}

// under returns a path as seen from a folder.
func under(dir, to string) string {
	if filepath.IsAbs(to) {
		return to
	}
	return filepath.Join(dir, to)
}

// readRecipe returns the content of a small regular file, or "".
func readRecipe(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecipeFile {
		return ""
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecipeFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// packageScripts returns the lines of package.json that a package manager will run.
func packageScripts(args []shell.Word, dir string) []string {
	words := make([]string, 0, len(args))
	for i, a := range args {
		if !strings.HasPrefix(a.Text, "-") && (i == 0 || args[i-1].Text != "--prefix" && args[i-1].Text != "-C") {
			words = append(words, a.Text)
		}
	}
	if len(words) > 0 && (words[0] == "run" || words[0] == "run-script") {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{"install"}
	}
	name := words[0]
	names := []string{"pre" + name, name, "post" + name}
	switch name {
	case "t", "tst":
		names = []string{"pretest", "test", "posttest"}
	case "install", "i", "ci", "add":
		names = []string{"preinstall", "install", "postinstall", "prepare"}
	case "publish":
		names = []string{"prepublishOnly", "prepack", "postpack", "publish", "postpublish"}
	}
	var p struct{ Scripts map[string]string }
	if json.Unmarshal([]byte(readRecipe(filepath.Join(dir, "package.json"))), &p) != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		if text := p.Scripts[n]; text != "" {
			for i, l := range strings.Split(text, "\n") {
				if i == 0 {
					l = n + ": " + l
				}
				out = append(out, l)
			}
		}
	}
	return out
}

// rule is a rule of a makefile.
type rule struct {
	needs, lines []string
}

// makeRecipe returns the recipes of the targets that make is given, and of those that they
// need, in the order in which they run.
func makeRecipe(args []shell.Word, dir string) []string {
	var targets []string
	file := ""
	for i := 0; i < len(args); i++ {
		switch a := args[i].Text; {
		case (a == "-f" || a == "-C" || a == "-j" && i+1 < len(args) && strings.Trim(args[i+1].Text, "0123456789") == "") &&
			i+1 < len(args):
			if i++; a == "-f" {
				file = args[i].Text
			}
		case strings.HasPrefix(a, "--file="), strings.HasPrefix(a, "--makefile="):
			_, file, _ = strings.Cut(a, "=")
		case !strings.HasPrefix(a, "-") && !strings.Contains(a, "="):
			targets = append(targets, a)
		}
	}
	names := []string{"GNUmakefile", "makefile", "Makefile"}
	if file != "" {
		names = []string{file}
	}
	text := ""
	for _, name := range names {
		if text = readRecipe(under(dir, name)); text != "" {
			break
		}
	}
	rules, first, includes := parseMakefile(text)
	if len(targets) == 0 && first != "" {
		targets = []string{first}
	}
	var out, seen []string
	var visit func(target string)
	visit = func(target string) {
		r, ok := rules[target]
		if !ok || slices.Contains(seen, target) || len(out) > maxRecipeLines {
			return
		}
		seen = append(seen, target)
		for _, n := range r.needs {
			visit(n)
		}
		out = append(out, r.lines...)
	}
	for _, t := range targets {
		visit(t)
	}
	if includes && text != "" {
		out = append(out, "and what the files say that the makefile includes")
	}
	return out
}

// parseMakefile returns the explicit rules of a makefile, its first target, and whether it
// includes other files.
func parseMakefile(text string) (rules map[string]rule, first string, includes bool) {
	rules = map[string]rule{}
	var targets []string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			for _, t := range targets {
				r := rules[t]
				r.lines = append(r.lines, strings.TrimSpace(recipe))
				rules[t] = r
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "include" || word == "-include" || word == "sinclude" {
			includes = true
		}
		head, rest, ok := strings.Cut(line, ":")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !ok || strings.Contains(head, "=") || strings.HasPrefix(strings.TrimLeft(rest, ":"), "=") {
			targets = nil
			continue
		}
		targets = strings.Fields(head)
		needs, inline, _ := strings.Cut(strings.TrimLeft(rest, ":"), ";")
		for _, t := range targets {
			r := rules[t]
			r.needs = append(r.needs, strings.Fields(needs)...)
			if inline = strings.TrimSpace(inline); inline != "" {
				r.lines = append(r.lines, inline)
			}
			rules[t] = r
			if first == "" && !strings.HasPrefix(t, ".") && !strings.Contains(t, "%") {
				first = t
			}
		}
	}
	return rules, first, includes
}
