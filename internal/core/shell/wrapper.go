package shell

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper describes a command whose operands are another command.
type wrapper struct {
	options
	text        string // options whose value is the text of a command
	skip        int    // number of operands before the command
	assigns     bool   // NAME=value may precede the command
	transparent bool   // it does nothing else, with the known options
}

// wrappers are the known wrappers, by name.
var wrappers = sync.OnceValue(func() map[string]wrapper {
	opts := func(flags, valued, long string) options { return options{flags: flags, valued: valued, long: long} }
	return byName(map[string]wrapper{
		"env": {options: opts("i", "uCS", "ignore-environment unset= chdir= split-string="),
			text: "S --split-string", assigns: true, transparent: true},
		"nice":  {options: opts("0123456789", "n", "adjustment="), transparent: true},
		"nohup": {transparent: true},
		"timeout gtimeout": {options: opts("", "ks", "kill-after= signal= foreground preserve-status"),
			skip: 1, transparent: true},
		"stdbuf": {options: opts("", "ioe", "input= output= error="), transparent: true},
		"flock": {options: opts("nxse", "wEc", "nonblock exclusive shared timeout= conflict-exit-code= command="),
			text: "c --command", skip: 1, transparent: true},

		"sudo": {options: opts("", "CDghpRrTtUu",
			"user= group= host= prompt= chdir= chroot= close-from= role= type= other-user="), assigns: true},
		"doas":   {options: opts("", "aCu", "")},
		"time":   {options: opts("", "fo", "format= output=")},
		"ionice": {options: opts("", "cnpPu", "class= classdata= pid= pgid= uid=")},
		"exec":   {options: opts("", "a", "")},
		"xargs gxargs": {
			options: opts("", "aEILnPsd", "arg-file= delimiter= max-args= max-lines= max-procs= max-chars=")},
		"unshare nsenter":   {options: opts("", "tSGRw", "target= setuid= setgid= root= wd=")},
		"su runuser script": {options: opts("", "gGsuwc", "command="), text: "c --command", skip: 1},
		"watch":             {options: opts("", "nq", "interval= equexit=")},
		"parallel":          {options: opts("", "jS", "jobs=")},
		"systemd-run":       {options: opts("", "pMHEu", "unit= property= description=")},

		"strace ltrace perf gdb valgrind":    {options: opts("", "aeEbIopsSuUPOX", "")},
		"chrt taskset chroot runcon numactl": {skip: 1},
		"builtin command setsid busybox toybox unbuffer eatmydata fakeroot catchsegv dbus-run-session chronic proxychains proxychains4 torsocks linux32 linux64 setarch caffeinate": {},
	})
})

// unwrapped is the command among the arguments of a wrapper.
type unwrapped struct {
	at    int      // index of the command; the number of arguments if there is none
	runs  []string // texts that are run as commands
	exact bool     // the wrapper only runs this command: everything before it is known
}

// unwrap finds the command among the arguments of a wrapper.
func (wr wrapper) unwrap(args []Word) unwrapped {
	u := unwrapped{exact: wr.transparent}
	all, skip := texts(args), wr.skip
	for u.at < len(args) {
		a := all[u.at]
		u.exact = u.exact && known(args[u.at])
		switch name, _, assigns := strings.Cut(a, "="); {
		case a == "--":
			u.at, u.exact = min(u.at+1+skip, len(args)), false
			return u
		case isOption(a):
			opt := wr.next(all[u.at:])
			u.exact = u.exact && opt.known && skip == wr.skip && known(args[u.at:u.at+opt.size]...)
			if slices.ContainsFunc(strings.Fields(wr.text), func(t string) bool {
				return t == opt.name || !strings.HasPrefix(opt.name, "--") && strings.HasSuffix(opt.name, t)
			}) {
				u.runs, u.exact = append(u.runs, opt.value), false
			}
			u.at += opt.size
		case wr.assigns && assigns && syntax.ValidName(name):
			u.exact = u.exact && Harmless(name)
			u.at++
		case skip > 0:
			skip--
			u.at++
		default:
			return u
		}
	}
	return u
}
