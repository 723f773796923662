package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// options are the known options of a program. All others are unknown, also
// abbreviated ones.
type options struct {
	flags  string // short options without a value
	valued string // short options with a value
	long   string // long options; "name=" has a value, "name?" may have one after "="
	words  bool   // the options are those of long, after one dash or two
}

// option is an option among arguments.
type option struct {
	name  string // "--name", or the letters of a group of short options
	value string
	size  int // number of arguments, with the value
	known bool
}

// isOption reports whether an argument is an option or "--".
func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// next reads the option at the beginning of args. Unknown options are taken
// to have no value.
func (o options) next(args []string) option {
	a := args[0]
	opt := option{size: 1, known: true}
	separate := func() { // a value must not be an option for another version of the program
		opt.size = min(2, len(args))
		opt.value = strings.Join(args[1:opt.size], "")
		opt.known = opt.known && opt.size == 2 && (!isOption(opt.value) || negative().MatchString(opt.value))
	}
	if o.words || strings.HasPrefix(a, "--") {
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		opt.name, opt.value = "--"+name, value
		known := strings.Fields(o.long)
		switch valued := slices.Contains(known, name+"="); {
		case slices.Contains(known, name+"?"), valued && has && !o.words:
		case valued && !has:
			separate()
		default:
			opt.known = slices.Contains(known, name) && !has
		}
		return opt
	}
	for i, r := range a[1:] {
		opt.name += string(r)
		if strings.ContainsRune(o.valued, r) {
			if opt.value = a[1+i+len(string(r)):]; opt.value == "" {
				separate()
			}
			break
		}
		opt.known = opt.known && strings.ContainsRune(o.flags, r)
	}
	return opt
}

// negative matches a value such as -5 or -10k.
var negative = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-[0-9]+[a-zA-Z]?$`) })
