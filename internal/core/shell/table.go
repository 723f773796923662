package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rule says when a command of the table only reads. With the zero rule it
// does so for any known arguments.
type rule struct {
	short    string            // short options that are refused
	long     string            // long options that are refused, also abbreviated
	exact    string            // words that are refused
	operands int               // maximum number of operands; 0: any number, -1: none
	anyArgs  bool              // arguments need not be known: they name no files and have no effect
	searches bool              // it searches folders recursively
	check    func([]Word) bool // reports whether the command only reads with the arguments
}

// allowsUnknownArgs reports whether unknown arguments are harmless because no
// option is refused.
func (r rule) allowsUnknownArgs() bool {
	return r.short == "" && r.long == "" && r.exact == "" && r.operands == 0 && r.check == nil
}

// ruleOf returns the rule for a command that only reads.
func ruleOf(name string) (rule, bool) {
	switch name {
	case "echo", "true", "false", ":", "exit", "return", "break", "continue", "wait", "times":
		return rule{anyArgs: true}, true
	case "printf":
		return rule{anyArgs: true, check: refuseFirst("-v")}, true
	case "pwd", "whoami", "id", "groups", "uname", "arch", "nproc", "uptime", "free", "tty", "logname", "users", "who", "w", "vmstat",
		"lscpu", "lsblk", "lsmod", "lsusb", "lspci", "locale", "getconf", "cal", "sw_vers",
		"which", "type", "whereis", "basename", "dirname", "seq", "sleep", "expr", "factor", "numfmt", "cd", "pushd", "popd", "dirs", "shift":
		return rule{}, true
	case "ls", "dir", "vdir", "cat", "head", "tail", "wc", "tac", "nl", "rev", "fold", "fmt", "expand", "unexpand", "cut", "paste", "join", "comm", "column",
		"cmp", "diff", "stat", "readlink", "realpath", "df", "du", "od", "hexdump", "strings",
		"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "shasum", "md5", "tr", "jq", "pgrep", "pstree", "tokei", "printenv":
		return rule{}, true
	case "grep", "egrep", "fgrep":
		return rule{searches: true}, true
	case "ps":
		return rule{check: psPlain}, true
	case "rg":
		return rule{long: "pre hostname-bin search-zip", short: "z", searches: true}, true
	case "fd", "fdfind":
		return rule{short: "xX", long: "exec exec-batch"}, true
	case "find":
		return rule{exact: "-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf -files0-from", searches: true}, true
	case "lsof":
		return rule{short: "D"}, true
	case "ss":
		return rule{short: "KDEF", long: "kill diag events filter"}, true
	case "tree":
		return rule{short: "oR", long: "output"}, true
	case "sort":
		return rule{short: "oT", long: "output temporary-directory compress-program files0-from"}, true
	case "uniq", "xxd":
		return rule{operands: 1, short: "r"}, true
	case "base64", "base32":
		return rule{short: "o", long: "output"}, true
	case "date":
		return rule{short: "sr", long: "set", check: dateOnly}, true
	case "hostname":
		return rule{operands: -1, short: "FbB", long: "file boot"}, true
	case "file":
		return rule{short: "C", long: "compile"}, true
	case "env":
		return rule{operands: -1}, true
	case "command": // command -v; other uses are wrappers
		return rule{check: func([]Word) bool { return true }}, true
	case "test", "[":
		return rule{exact: "-v -R"}, true
	case "set":
		return rule{check: setOptions}, true
	case "read":
		return rule{check: variableNames}, true
	case "sed":
		return rule{check: sedPrints}, true
	case "awk", "gawk", "mawk":
		return rule{check: awkPrints}, true
	case "tar", "bsdtar":
		return rule{check: tarLists}, true
	case "unzip":
		return rule{check: subcommands("-l")}, true
	case "git":
		return rule{check: gitReads}, true
	case "go":
		return rule{check: goReads}, true
	case "systemctl":
		return rule{short: "HM", long: "host machine", check: subcommands("status", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files", "list-timers")}, true
	case "docker", "podman":
		return rule{check: subcommands("ps", "images", "version", "--version")}, true
	case "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "java", "javac", "npm", "gcc", "g++", "clang", "cc", "make", "cmake",
		"pip", "pip3", "uv", "gh", "kubectl", "terraform", "tmux", "vim", "nvim", "code", "curl", "wget", "ssh", "rsync", "ffmpeg", "chela", "sqlite3", "psql", "lua", "zig", "swift", "dotnet", "bash", "sh", "zsh":
		return rule{check: versionOnly}, true
	}
	return rule{}, false
}

// Patterns of arguments with which a command only reads.
var (
	sedScript  = lazyRegexp(`^(\$|[0-9]+)(,(\$|\+?[0-9]+))?p$|^/[^/]*/(,/[^/]*/)?p$`)
	awkProgram = lazyRegexp(`^(/[^/]*/|NR *[=<>]=? *[0-9]+)? *\{ *print( *(\$[0-9]+|\$NF|NR|"[^"]*")( *,? *(\$[0-9]+|\$NF|NR|"[^"]*"))*)? *;? *\}$`)
	tarList    = lazyRegexp(`^-?[vzjJ]*t[vzjJ]*f$`)
	lowerName  = lazyRegexp(`^[a-z_][a-z0-9_]*$`)
)

// lazyRegexp returns a regular expression that is compiled at its first use.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// judge returns a reason if a command may do more than read, or "".
func (w *walker) judge(argv []Word) string {
	name := argv[0].Text
	r, ok := ruleOf(program(name))
	if !ok {
		return Escape(name) + " may change files"
	}
	args := argv[1:]
	if r.anyArgs && (r.check == nil || r.check(args)) {
		return ""
	}
	operands := 0
	for _, a := range args {
		if reason := r.refuses(name, a); reason != "" {
			return reason
		}
		if w.private(a) {
			return "it reads private files"
		}
		if r.searches && w.wholeTree(a.Text) {
			return "it searches private files"
		}
		if !strings.HasPrefix(a.Text, "-") {
			operands++
		}
	}
	tooMany := r.operands < 0 && operands > 0 || r.operands > 0 && operands > r.operands
	switch {
	case !tooMany && r.searches && w.cwd != "" && w.wholeTree("."):
		return "it searches private files"
	case tooMany || r.check != nil && !r.check(args):
		return name + " with these arguments may change files"
	}
	return ""
}

// refuses returns a reason if the rule refuses an argument.
func (r rule) refuses(name string, a Word) string {
	switch {
	case !a.Literal && !r.allowsUnknownArgs():
		return "the arguments of " + name + " are not known"
	case !a.Literal:
		return ""
	case a.Glob && !r.allowsUnknownArgs() && strings.ContainsAny(a.Text[:min(1, len(a.Text))], "*?[@+!"):
		return "a file name could be an option of " + name
	case contains(r.exact, a.Text):
		return name + " " + a.Text + " does more than read"
	case strings.HasPrefix(a.Text, "--") && len(a.Text) > 2:
		opt, _, _ := strings.Cut(a.Text[2:], "=")
		for l := range strings.FieldsSeq(r.long) {
			if opt != "" && strings.HasPrefix(l, opt) {
				return name + " --" + l + " does more than read"
			}
		}
	case len(a.Text) > 1 && a.Text[0] == '-' && strings.ContainsAny(a.Text[1:], r.short) && r.short != "":
		return name + " " + a.Text + " may do more than read"
	}
	return ""
}

// refuseFirst refuses a first argument that begins with word, or is not
// known.
func refuseFirst(word string) func([]Word) bool {
	return func(args []Word) bool {
		return len(args) == 0 || args[0].Literal && !args[0].Glob && !strings.HasPrefix(args[0].Text, word)
	}
}

// subcommands allows the listed first arguments.
func subcommands(words ...string) func([]Word) bool {
	return func(args []Word) bool { return len(args) > 0 && slices.Contains(words, args[0].Text) }
}

func versionOnly(args []Word) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "-V", "-version", "-v"}, args[0].Text)
}

// psPlain refuses options that show the environment of processes.
func psPlain(args []Word) bool {
	return !slices.ContainsFunc(args, func(a Word) bool {
		dash := strings.HasPrefix(a.Text, "-")
		return strings.Contains(a.Text, "environ") || dash && strings.Contains(a.Text, "E") || !dash && strings.Contains(a.Text, "e") && !strings.Contains(a.Text, ",")
	})
}

func dateOnly(args []Word) bool {
	value := false
	for _, a := range args {
		switch {
		case value || strings.HasPrefix(a.Text, "+"):
			value = false
		case a.Text == "-d" || a.Text == "--date" || a.Text == "-v":
			value = true
		case a.Text == "-f" || !strings.HasPrefix(a.Text, "-"):
			return false
		}
	}
	return true
}

// setOptions allows the options of set that only affect when a command ends.
func setOptions(args []Word) bool {
	for i, a := range args {
		if i > 0 && strings.HasSuffix(args[i-1].Text, "o") && a.Text == "pipefail" {
			continue
		}
		if len(a.Text) < 2 || strings.Trim(a.Text[:1], "-+") != "" || strings.Trim(a.Text[1:], "euxo") != "" {
			return false
		}
	}
	return true
}

func variableNames(args []Word) bool {
	return !slices.ContainsFunc(args, func(a Word) bool { return a.Text != "-r" && !lowerName().MatchString(a.Text) })
}

// sedPrints allows sed -n with scripts that print lines by number or pattern.
func sedPrints(args []Word) bool {
	return len(args) >= 2 && args[0].Text == "-n" && args[1].Literal && sedScript().MatchString(args[1].Text) &&
		!slices.ContainsFunc(args[2:], func(a Word) bool { return strings.HasPrefix(a.Text, "-") || a.Glob })
}

// awkPrints allows programs that print fields.
func awkPrints(args []Word) bool {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].Text, "-F") {
		if args[i].Text == "-F" {
			i++
		}
		i++
	}
	return i < len(args) && awkProgram().MatchString(args[i].Text) &&
		!slices.ContainsFunc(args[i+1:], func(a Word) bool { return strings.HasPrefix(a.Text, "-") || a.Glob || strings.Contains(a.Text, "=") })
}

// tarLists allows listing an archive.
func tarLists(args []Word) bool {
	return len(args) == 2 && tarList().MatchString(args[0].Text) && !strings.HasPrefix(args[1].Text, "-") && !strings.Contains(args[1].Text, ":")
}

// goReads allows commands that report about Go and the module.
func goReads(args []Word) bool {
	if len(args) == 0 {
		return false
	}
	acts := func(flag string) bool { return false }
	switch args[0].Text {
	case "version", "help":
	case "doc":
		acts = func(flag string) bool { return strings.HasPrefix(flag, "http") || strings.HasPrefix(flag, "C") }
	case "env", "list":
		acts = func(flag string) bool {
			flag, _, _ = strings.Cut(flag, "=")
			return slices.Contains([]string{"w", "u", "toolexec", "exec", "overlay", "mod", "modfile", "export", "compiled", "C", "vettool", "gcflags", "ldflags"}, flag)
		}
	default:
		return false
	}
	return !slices.ContainsFunc(args[1:], func(a Word) bool {
		flag := strings.TrimLeft(a.Text, "-")
		return flag != a.Text && acts(flag)
	})
}
