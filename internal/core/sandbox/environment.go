package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// passed are the variables of this process that programs of the person get.
var passed = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT",
	"SystemRoot", "PATHEXT", "USERPROFILE", "APPDATA",
}

// Environment returns the variables of a program that the person configured, such as
// a hook: those of environ that every program needs, and the extra ones, which
// replace them. Secrets in environ are not among them.
func Environment(environ []string, extra map[string]string) []string {
	all := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(passed[:], func(p string) bool { return sameVariable(p, name) }) {
			all[name] = value
		}
	}
	for name := range extra {
		maps.DeleteFunc(all, func(n, _ string) bool { return sameVariable(n, name) })
	}
	maps.Copy(all, extra)
	env := make([]string, 0, len(all)+1)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// sameVariable reports whether two names are those of the same variable.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// Look returns a function that finds programs in the PATH of the variables. The
// function returns "" if there is no such program.
func Look(environ []string) func(name string) string {
	path := Variable(environ, "PATH")
	return func(name string) string { return find(path, name) }
}

// Variable returns the value of a variable, the last one if there are several, or "".
func Variable(environ []string, name string) (value string) {
	for _, kv := range environ {
		if n, v, _ := strings.Cut(kv, "="); sameVariable(n, name) {
			value = v
		}
	}
	return value
}

// find finds a program in the folders of PATH.
func find(path, name string) string {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return ""
	}
	endings := []string{""}
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		endings = []string{".exe", ".cmd", ".bat"}
	}
	for _, dir := range filepath.SplitList(path) {
		for _, ending := range endings {
			file := filepath.Join(dir, name+ending)
			if info, err := os.Stat(file); dir != "" && err == nil && info.Mode().IsRegular() &&
				(runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return file
			}
		}
	}
	return ""
}
