package exec

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// environment returns the variables of every command: PATH first, then those
// of a short list, and markers for Chela's shell.
func environment(from, prepend []string) []string {
	vars := map[string]string{}
	path := ""
	for _, kv := range from {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case strings.EqualFold(name, "PATH"):
			path = value
		case passed(name):
			vars[name] = value
		}
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	path = strings.Join(append(slices.Clone(prepend), path), string(os.PathListSeparator))
	env := []string{"PATH=" + path}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return append(env, "CHELA_SHELL=exec", "OPENCLAW_SHELL=exec")
}

// passed reports whether commands get a variable of this process, besides PATH.
func passed(name string) bool {
	switch strings.ToUpper(name) {
	case "HOME", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "SHELL", "TZ",
		"SYSTEMROOT", "USERPROFILE", "TEMP": // required by programs on Windows
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// MayAdd reports whether a variable may be added to those of commands: it has a valid
// name, commands do not have it already, and it does not change which code runs.
func MayAdd(name string) bool {
	return varName().MatchString(name) && !passed(name) && !loadsCode(strings.ToUpper(name))
}

var varName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// callEnv checks the variables of a call and returns them sorted.
func callEnv(vars map[string]string) ([]string, error) {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !varName().MatchString(name) {
			return nil, fmt.Errorf("env: %q is not a valid variable name", name)
		}
		if loadsCode(strings.ToUpper(name)) {
			return nil, fmt.Errorf("env: %s may not be set, because it changes which code runs", name)
		}
		if strings.ContainsRune(vars[name], 0) {
			return nil, fmt.Errorf("env: the value of %s contains a NUL byte", name)
		}
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// loadsCode reports whether a variable makes a loader, a shell or an
// interpreter run code that is not in the command.
func loadsCode(name string) bool {
	for _, p := range []string{"LD_", "DYLD_", "BASH_", "CHELA_", "OPENCLAW_", "GIT_CONFIG", "GIT_SSH", "NPM_CONFIG_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	switch name {
	case "PATH", "PATHEXT", "COMSPEC", "ENV", "IFS", "PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "ZDOTDIR",
		"GLIBC_TUNABLES", "GCONV_PATH", "MALLOC_CONF",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONWARNINGS",
		"PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "LUA_INIT",
		"LUA_PATH", "LUA_CPATH",
		"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "PHPRC", "PHP_INI_SCAN_DIR",
		"R_PROFILE", "R_ENVIRON",
		"GOFLAGS", "GOTOOLCHAIN", "RUSTC_WRAPPER", "RUSTFLAGS", "CC", "CXX", "MAKEFLAGS", "DOTNET_STARTUP_HOOKS",
		"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS",
		"GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR",
		"PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "MANPAGER", "SSH_ASKPASS", "SUDO_ASKPASS":
		return true
	}
	return false
}

// quietEnv are the variables that keep package managers from looking for their own newer
// versions, for which a confined command would ask.
var quietEnv = [...]string{"NPM_CONFIG_UPDATE_NOTIFIER=false", "NO_UPDATE_NOTIFIER=1",
	"PIP_DISABLE_PIP_VERSION_CHECK=1"}
