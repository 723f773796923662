package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a command whose operands are a command.
type wrapper struct {
	valued  string // short options that have a value
	long    string // long options that have a value behind a blank
	text    string // short options whose value is a command as a text
	skip    int    // operands before the command
	assigns bool   // NAME=value may stand before the command
	plain   bool   // it adds nothing to what the command does
	flags   string // short options without a value with which that is so
	odd     string // short options with a value with which it is not
}

// wrapperOf returns the wrapper of that name.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "sudo":
		return wrapper{valued: "CDghpRrTtUu", long: "user group host prompt chdir chroot close-from role type other-user", assigns: true}, true
	case "doas":
		return wrapper{valued: "aCu"}, true
	case "env":
		return wrapper{valued: "uCa", long: "unset chdir argv0", text: "S", assigns: true, plain: true, flags: "iv", odd: "Ca"}, true
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
	case "docker", "podman", "ssh", "kubectl": // what they run is not run here
		return wrapper{}, false
	}
	return wrapper{}, false
}

// unwrap returns the command among the arguments, and why the wrapper is more
// than that.
func (wr wrapper) unwrap(w *walker, args []Word) (inner []Word, reason string) {
	skip := wr.skip
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Literal && (skip > 0 || strings.HasPrefix(a.Text, "$")):
			reason = "the command that it runs is not known"
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
				reason = "it runs a text"
			}
			if wr.plain && name != "foreground" && name != "preserve-status" && name != "adjustment" {
				reason = "it runs a command with options that are not judged"
			}
		case len(a.Text) > 1 && a.Text[0] == '-':
			if wr.plain && wr.strange(a.Text[1:]) {
				reason = "it runs a command with options that are not judged"
			}
			next, text := wr.cluster(a.Text[1:])
			if text != nil {
				value := *text
				if value == "" && i+1 < len(args) {
					i++
					value = args[i].Text
				}
				w.nested(value)
				reason = "it runs a text"
			} else if next {
				i++
			}
		case wr.assigns && assignment(a.Text):
			name, value, _ := strings.Cut(a.Text, "=")
			w.scoped(func() { w.set(name, value, a.Literal) })
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

// cluster reads short options: whether the next argument is a value of theirs,
// or what follows an option whose value is a command.
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

// strange reports whether short options are others than those with which a
// wrapper adds nothing.
func (wr wrapper) strange(letters string) bool {
	for _, r := range letters {
		switch {
		case strings.ContainsRune(wr.text, r):
			return false // it is said of the text
		case strings.ContainsRune(wr.valued, r):
			return strings.ContainsRune(wr.odd, r)
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

// contains reports whether a list of words, separated by blanks, has a word.
func contains(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
