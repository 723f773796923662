package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper describes a command whose operands are another command.
type wrapper struct {
	valued       string // short options with a value
	long         string // long options with a separate value
	text         string // short options whose value is the text of a command
	skip         int    // number of operands before the command
	assigns      bool   // NAME=value may precede the command
	plain        bool   // it does not change what the command does
	flags        string // short options without a value that keep it plain
	unsafeValued string // short options with a value that do not keep it plain
}

// wrapperOf returns the wrapper with that name.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "sudo":
		return wrapper{valued: "CDghpRrTtUu", long: "user group host prompt chdir chroot close-from role type other-user", assigns: true}, true
	case "doas":
		return wrapper{valued: "aCu"}, true
	case "env":
		return wrapper{valued: "uCa", long: "unset chdir argv0", text: "S", assigns: true, plain: true, flags: "iv", unsafeValued: "Ca"}, true
	case "nice":
		return wrapper{valued: "n", long: "adjustment", plain: true, flags: "0123456789"}, true
	case "timeout", "gtimeout":
		return wrapper{valued: "ks", long: "kill-after signal", skip: 1, plain: true, flags: "fpv"}, true
	case "stdbuf":
		return wrapper{valued: "ioe", long: "input output error", plain: true}, true
	case "nohup", "builtin":
		return wrapper{plain: true}, true
	case "command":
		return wrapper{plain: true, flags: "p"}, true
	case "time":
		return wrapper{valued: "fo", long: "format output"}, true
	case "ionice":
		return wrapper{valued: "cnpPu", long: "class classdata pid pgid uid"}, true
	case "exec":
		return wrapper{valued: "a"}, true
	case "setsid", "busybox", "toybox", "unbuffer", "eatmydata", "fakeroot", "catchsegv", "dbus-run-session", "chronic", "proxychains", "proxychains4", "torsocks", "linux32", "linux64", "setarch", "caffeinate":
		return wrapper{}, true
	case "xargs", "gxargs":
		return wrapper{valued: "aEILnPsd", long: "arg-file delimiter max-args max-lines max-procs max-chars"}, true
	case "chrt", "taskset", "chroot", "runcon", "numactl":
		return wrapper{skip: 1}, true
	case "flock":
		return wrapper{valued: "wE", long: "timeout conflict-exit-code", text: "c", skip: 1}, true
	case "strace", "ltrace", "perf", "gdb", "valgrind":
		return wrapper{valued: "aeEbIopsSuUPOX"}, true
	case "unshare", "nsenter":
		return wrapper{valued: "tSGRw", long: "target setuid setgid root wd"}, true
	case "su", "runuser", "script":
		return wrapper{valued: "gGsuw", text: "c", skip: 1}, true
	case "watch":
		return wrapper{valued: "nq", long: "interval equexit"}, true
	case "parallel":
		return wrapper{valued: "jS", long: "jobs"}, true
	case "systemd-run":
		return wrapper{valued: "pMHEu", long: "unit property description"}, true
	case "docker", "podman", "ssh", "kubectl": // their commands run on another machine or in a container
		return wrapper{}, false
	}
	return wrapper{}, false
}

// unwrap returns the command among the arguments, and a reason if the wrapper
// does more than run it.
func (wr wrapper) unwrap(w *walker, args []Word) (inner []Word, reason string) {
	skip := wr.skip
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Literal && (skip > 0 || strings.HasPrefix(a.Text, "$")):
			reason = "it runs an unknown command"
			if skip--; skip < 0 {
				return args[i:], reason
			}
		case a.Text == "--":
			return args[min(i+1+max(skip, 0), len(args)):], reason
		case strings.HasPrefix(a.Text, "--"):
			name, value, has := strings.Cut(a.Text[2:], "=")
			if !has && contains(wr.long, name) {
				i++
			}
			if name == "split-string" || name == "command" {
				if !has && i+1 < len(args) {
					i++
					value = args[i].Text
				}
				w.nested(value)
				reason = "it runs the text of a command"
			}
			if wr.plain && name != "foreground" && name != "preserve-status" && name != "adjustment" {
				reason = "it runs a command with unsupported wrapper options"
			}
		case len(a.Text) > 1 && a.Text[0] == '-':
			if wr.plain && wr.hasUnknownFlag(a.Text[1:]) {
				reason = "it runs a command with unsupported wrapper options"
			}
			next, text := wr.cluster(a.Text[1:])
			if text != nil {
				value := *text
				if value == "" && i+1 < len(args) {
					i++
					value = args[i].Text
				}
				w.nested(value)
				reason = "it runs the text of a command"
			} else if next {
				i++
			}
		case wr.assigns && assignment(a.Text):
			name, value, _ := strings.Cut(a.Text, "=")
			w.uncertain(func() { w.set(name, value, a.Literal) })
			if !Harmless(name) {
				reason = "it sets " + name + " for a command"
			}
		case skip > 0:
			skip--
		default:
			return args[i:], reason
		}
	}
	return nil, reason
}

// cluster reads a group of short options. It reports whether the next
// argument is a value, and returns the rest of the group after an option
// whose value is a command.
func (wr wrapper) cluster(letters string) (next bool, text *string) {
	for i, r := range letters {
		rest := letters[i+1:]
		if strings.ContainsRune(wr.text, r) {
			return false, &rest
		}
		if strings.ContainsRune(wr.valued, r) {
			return rest == "", nil
		}
	}
	return false, nil
}

// hasUnknownFlag reports whether the short options include one with which the
// wrapper is not plain.
func (wr wrapper) hasUnknownFlag(letters string) bool {
	for _, r := range letters {
		switch {
		case strings.ContainsRune(wr.text, r):
			return false // reported for the text
		case strings.ContainsRune(wr.valued, r):
			return strings.ContainsRune(wr.unsafeValued, r)
		case !strings.ContainsRune(wr.flags, r):
			return true
		}
	}
	return false
}

func assignment(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	return ok && syntax.ValidName(name)
}

// contains reports whether a list of words separated by blanks contains a
// word.
func contains(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// wrapperPrefix returns the number of words between a wrapper and the command
// it runs, or false if that cannot be determined. Only known options are
// accepted: after an unknown one, another word could be the command.
func wrapperPrefix(base string, args []Word) (int, bool) {
	o := prefixOptionsOf(base)
	i := 0
	for ; i < len(args) && args[i].Literal && strings.HasPrefix(args[i].Text, "-"); i++ {
		a := args[i].Text
		switch {
		case slices.Contains(o.plain, a):
		case slices.Contains(o.valued, a):
			if i++; i >= len(args) || !args[i].Literal {
				return 0, false
			}
		case !slices.ContainsFunc(o.attached, func(p string) bool { return strings.HasPrefix(a, p) }):
			return 0, false
		}
	}
	for base == "env" && i < len(args) && args[i].Literal && assignment(args[i].Text) {
		name, _, _ := strings.Cut(args[i].Text, "=")
		if !Harmless(name) {
			return 0, false
		}
		i++
	}
	if o.operand {
		if i >= len(args) || !args[i].Literal {
			return 0, false
		}
		i++
	}
	return i, i < len(args) && args[i].Literal && !strings.HasPrefix(args[i].Text, "-")
}

// prefixOptions are the words that may precede the command of a wrapper.
type prefixOptions struct {
	plain    []string // without a value
	valued   []string // with a separate value
	attached []string // prefixes of options that include their value
	operand  bool     // one more word precedes the command
}

// prefixOptionsOf returns the options of the transparent wrappers, and of
// xargs.
func prefixOptionsOf(base string) prefixOptions {
	words := strings.Fields
	switch base {
	case "env":
		return prefixOptions{plain: words("-i --ignore-environment"), valued: words("-u --unset"), attached: words("--unset=")}
	case "nice":
		return prefixOptions{valued: words("-n --adjustment"), attached: words("-n --adjustment= -1 -2 -3 -4 -5 -6 -7 -8 -9")}
	case "timeout", "gtimeout":
		return prefixOptions{
			plain: words("--foreground --preserve-status"), valued: words("-k -s --kill-after --signal"),
			attached: words("--kill-after= --signal="), operand: true,
		}
	case "stdbuf":
		return prefixOptions{valued: words("-i -o -e --input --output --error"), attached: words("-i -o -e --input= --output= --error=")}
	case "flock":
		return prefixOptions{plain: words("-n -x -s -e --nonblock --exclusive --shared"), valued: words("-w -E"), operand: true}
	case "xargs":
		return prefixOptions{plain: words("-0 -r -t -x --null --no-run-if-empty"), valued: words("-n -P -L -s -d"), attached: words("-n -P -L -s -d -I{} -I%")}
	}
	return prefixOptions{} // nohup has none
}
