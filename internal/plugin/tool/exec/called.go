package exec

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Limits of what is held of the files that scripts name.
const (
	maxCalled     = 32        // files
	maxCalledText = 256 << 10 // bytes of a script that is searched for names
	maxCalledName = 10_000    // names that are looked up
)

// variable finds the uses of variables and commands in a script: in "$DIR/lib.sh" the name is
// lib.sh.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{\w+\}|\$\w+|\$\([^()\n]*\)|\$[@*#?]|` + "`[^`\n]*`" + `|__dirname|__DIR__`)
})

// fileName finds what may be the name of a file. Group 1 is what a shell reads in, group 2
// what Python imports.
var fileName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[;&|({]|\b(?:then|do|else))[ \t]*(?:\.|source)[ \t]+["']?([\w@%+=./-]+)|^[ \t]*(?:from|import)[ \t]+([\w.]+)|[\w@%+=./-]+`)
})

// called adds to the files of an approval the scripts in the workspace that they name, and
// those that these name: sh build.sh runs what build.sh calls. all is false if there are
// more than are added. dir is where the command starts.
func called(files []source, dir, workspace string) (out []source, all bool) {
	workspace = pathpolicy.Real(workspace)
	out = slices.Clone(files)
	has := func(name string) bool { return slices.ContainsFunc(out, func(f source) bool { return f.path == name }) }
	left := maxCalledName
	for i := 0; i < len(out); i++ {
		at := out[i].path
		if !pathpolicy.Inside(pathpolicy.Real(at), workspace) || !runs(at) && !out[i].script {
			continue
		}
		text, err := folder.ReadPath(at, maxCalledText)
		if err != nil {
			continue
		}
		for _, found := range namedBy(at, string(text)) {
			for _, base := range [...]string{dir, filepath.Dir(at)} {
				if left--; left < 0 {
					return out, false
				}
				name := filepath.Join(base, found.name)
				if has(name) || !exists(name) || !pathpolicy.Inside(pathpolicy.Real(name), workspace) ||
					!found.read && !runs(name) {
					continue
				}
				sum, err := contentHash(name)
				if err != nil {
					continue
				}
				if len(out) >= len(files)+maxCalled {
					return out, false
				}
				out = append(out, source{name, sum, true})
			}
		}
	}
	return out, true
}

// namedFile is what may be the name of a file in a script.
type namedFile struct {
	name string
	read bool // a shell reads it in, whatever it is
}

// namedBy returns what may be names of files in the text of a script.
func namedBy(script, text string) []namedFile {
	var out []namedFile
	seen := map[namedFile]bool{}
	add := func(name string, read bool) {
		f := namedFile{strings.TrimLeft(name, "/"), read}
		if f.name != "" && len(f.name) < 300 && !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	for _, m := range fileName().FindAllStringSubmatch(variable().ReplaceAllString(text, ""), -1) {
		switch {
		case m[1] != "":
			add(m[1], true)
		case m[2] != "":
			module := strings.ReplaceAll(m[2], ".", "/")
			add(module+".py", false)
			add(module+"/__init__.py", false)
		default:
			add(m[0], false)
			if strings.HasPrefix(m[0], ".") {
				for _, ext := range [...]string{".js", ".mjs", ".cjs", ".ts"} {
					add(m[0]+ext, false)
				}
			}
			for _, name := range recipeFiles([]shell.Word{{Text: m[0]}}) {
				add(name, false)
			}
		}
	}
	return out
}

// runs reports whether a file is a script, by its name or its first line.
func runs(name string) bool {
	switch strings.ToLower(path.Ext(filepath.Base(name))) {
	case ".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".awk", ".sed", ".mk":
		return true
	}
	if pathpolicy.Script(name) {
		return true
	}
	f, info, err := folder.OpenPath(name)
	if err != nil {
		return false
	}
	defer f.Close()
	first := make([]byte, 2)
	n, _ := f.Read(first) // it may be empty
	return info.Mode().IsRegular() && string(first[:n]) == "#!"
}
