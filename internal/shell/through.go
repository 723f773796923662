package shell

import (
	"slices"
	"strings"
)

// through returns how many words stand between a wrapper that is looked through
// and the command that it runs; false when that is not sure. Of its options only
// those count that are known here: with a later one another word could be the
// command.
func through(base string, args []Word) (int, bool) {
	o := leadingOf(base)
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

// leading is what may stand before the command of a wrapper.
type leading struct {
	plain    []string // without a value
	valued   []string // with a value behind a blank
	attached []string // how options with a value that is a part of them begin
	operand  bool     // one more word stands before the command
}

// leadingOf returns the options of the wrappers that are looked through, and
// of xargs.
func leadingOf(base string) leading {
	words := strings.Fields
	switch base {
	case "env":
		return leading{plain: words("-i --ignore-environment"), valued: words("-u --unset"), attached: words("--unset=")}
	case "nice":
		return leading{valued: words("-n --adjustment"), attached: words("-n --adjustment= -1 -2 -3 -4 -5 -6 -7 -8 -9")}
	case "timeout", "gtimeout":
		return leading{
			plain: words("--foreground --preserve-status"), valued: words("-k -s --kill-after --signal"),
			attached: words("--kill-after= --signal="), operand: true,
		}
	case "stdbuf":
		return leading{valued: words("-i -o -e --input --output --error"), attached: words("-i -o -e --input= --output= --error=")}
	case "flock":
		return leading{plain: words("-n -x -s -e --nonblock --exclusive --shared"), valued: words("-w -E"), operand: true}
	case "xargs":
		return leading{plain: words("-0 -r -t -x --null --no-run-if-empty"), valued: words("-n -P -L -s -d"), attached: words("-n -P -L -s -d -I{} -I%")}
	}
	return leading{} // nohup has none
}
