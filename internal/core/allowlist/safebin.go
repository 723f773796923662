package allowlist

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
)

// Profile describes the arguments with which a program only filters its
// input. Flags are written with their dashes.
type Profile struct {
	Min    int      `json:"minPositional"`     // minimum number of arguments that are not flags
	Max    int      `json:"maxPositional"`     // maximum number of them
	Valued []string `json:"allowedValueFlags"` // allowed flags with a value
	Plain  []string `json:"allowedBooleanFlags"`
	Denied []string `json:"deniedFlags"` // refused even if also allowed
}

// Bins are programs that are on the allowlist as long as they only filter
// their input: their arguments match their profile and are known before the
// command runs.
type Bins struct {
	Names    []string           // nil: DefaultBins
	Profiles map[string]Profile // in addition to the built-in ones
	Dirs     []string           // trusted folders in addition to /bin and /usr/bin
}

// DefaultBins returns the programs that are safe bins by default.
func DefaultBins() []string { return []string{"cut", "uniq", "head", "tail", "tr", "wc"} }

// profileOf returns the built-in profile of a program.
func profileOf(name string) (Profile, bool) {
	words := strings.Fields
	switch name {
	case "cut":
		return Profile{
			Valued: words("--bytes --characters --fields --delimiter --output-delimiter -b -c -f -d"),
			Plain:  words("--complement --only-delimited --zero-terminated -n -s -z"),
		}, true
	case "uniq":
		return Profile{
			Valued: words("--skip-fields --skip-chars --check-chars -f -s -w"),
			Plain:  words("--count --repeated --unique --ignore-case --zero-terminated -c -d -u -i -z"),
		}, true
	case "head":
		return Profile{
			Valued: words("--lines --bytes -n -c"), Plain: words("--quiet --silent --verbose --zero-terminated -q -v -z"),
		}, true
	case "tail":
		return Profile{
			Valued: words("--lines --bytes -n -c"), Plain: words("--quiet --silent --verbose --zero-terminated -q -v -z"),
			Denied: words("--follow --retry -F -f"),
		}, true
	case "tr":
		return Profile{
			Min: 1, Max: 2, Plain: words("--complement --delete --squeeze-repeats --truncate-set1 -C -c -d -s -t"),
		}, true
	case "wc":
		return Profile{
			Plain: words("--bytes --chars --lines --max-line-length --words -L -c -l -m -w"), Denied: words("--files0-from"),
		}, true
	case "sort":
		return Profile{
			Valued: words("--key --field-separator --buffer-size --parallel --batch-size -k -t -S"),
			Plain: words("--ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --month-sort " +
				"--numeric-sort --reverse --version-sort --check --stable --unique --zero-terminated -b -d -f -g -h -i -M -n -r -V -c -C -s -u -z"),
			Denied: words(
				"--compress-program --files0-from --output --random-source --random-sort --temporary-directory -T -o -R"),
		}, true
	case "grep":
		return Profile{
			Valued: words("--regexp --max-count --after-context --before-context --context -e -m -A -B -C"),
			Plain: words("--extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --invert-match --word-regexp --line-regexp " +
				"--count --only-matching --quiet --silent --no-messages --line-number -E -F -G -P -i -v -w -x -c -o -q -s -n"),
			Denied: words("--file --exclude-from --dereference-recursive --directories --recursive -f -d -r -R"),
		}, true
	}
	return Profile{}, false
}

// interpreter reports whether a program runs code, so that no profile can
// make it a filter.
func interpreter(name string) bool {
	switch strings.TrimRight(name, "0123456789.") {
	case "python", "pypy", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua", "luajit", "osascript",
		"tclsh", "expect", "guile",
		"julia", "r", "rscript", "java", "groovy", "scala", "erl", "elixir", "octave", "pwsh", "powershell",
		"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "toybox", "env", "xargs", "find",
		"make", "vi", "vim", "ssh":
		return true
	}
	return false
}

// neverSafe reports whether a program is never a safe bin, whatever its
// profile.
func neverSafe(name string) bool {
	return slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "sed", "gsed", "jq"}, name)
}

// profile returns the profile of a program if it is a safe bin.
func (b Bins) profile(name string) (Profile, bool) {
	names := b.Names
	if names == nil {
		names = DefaultBins()
	}
	if neverSafe(name) || !slices.Contains(names, name) {
		return Profile{}, false
	}
	if p, ok := b.Profiles[name]; ok {
		return p, true
	}
	return profileOf(name)
}

// Unprofiled returns the configured names that are not safe bins: the
// interpreters among them, and the others.
func (b Bins) Unprofiled() (interpreters, others []string) {
	for _, name := range b.Names {
		_, ok := b.profile(name)
		switch {
		case ok:
		case interpreter(name):
			interpreters = append(interpreters, name)
		default:
			others = append(others, name)
		}
	}
	return interpreters, others
}

// trusted reports whether a program is in a trusted folder.
func (b Bins) trusted(p program) bool {
	dir := filepath.Dir(p.path)
	return dir == "/bin" || dir == "/usr/bin" ||
		slices.ContainsFunc(b.Dirs, func(d string) bool { return filepath.Clean(d) == dir })
}

// match reports whether a program is a safe bin with these arguments.
func (b Bins) match(p program, argv []shell.Word) bool {
	if !p.bare || !b.trusted(p) {
		return false
	}
	profile, ok := b.profile(p.name)
	return ok && profile.allows(argv[1:])
}

// allows reports whether the arguments match the profile. It does not look at
// files.
func (p Profile) allows(args []shell.Word) bool {
	positional, flags := 0, true
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Literal || a.Glob:
			return false
		case flags && a.Text == "--":
			flags = false
		case flags && len(a.Text) > 1 && a.Text[0] == '-':
			takes, ok := p.flag(a.Text)
			if !ok {
				return false
			}
			if takes {
				if i++; i >= len(args) || !args[i].Literal || args[i].Glob || pathlike(args[i].Text) {
					return false
				}
			}
		case a.Text == "-" || pathlike(a.Text):
			return false
		default:
			positional++
		}
	}
	return positional >= p.Min && positional <= p.Max
}

// flag reports whether a flag or a group of short flags is known, and whether
// the next argument is its value.
func (p Profile) flag(text string) (takes, ok bool) {
	if strings.HasPrefix(text, "--") {
		name, value, has := strings.Cut(text, "=")
		switch {
		case slices.Contains(p.Denied, name):
			return false, false
		case slices.Contains(p.Valued, name):
			return !has, !pathlike(value)
		}
		return false, !has && slices.Contains(p.Plain, name)
	}
	if strings.Trim(text[1:], "0123456789") == "" { // as in head -5
		return false, slices.Contains(p.Valued, "-n") && slices.Contains(p.Valued, "-c") && len(p.Plain) > 0
	}
	for i, r := range text[1:] {
		short := "-" + string(r)
		switch {
		case slices.Contains(p.Denied, short):
			return false, false
		case slices.Contains(p.Valued, short):
			value := text[1+i+len(string(r)):]
			return value == "", !pathlike(value)
		case !slices.Contains(p.Plain, short):
			return false, false
		}
	}
	return false, true
}

// pathlike reports whether a string could be the path of a file.
func pathlike(s string) bool {
	return strings.HasPrefix(s, "~") || s == "." || s == ".." || len(s) > 1 && strings.Contains(s, "/")
}
