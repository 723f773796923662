package sandbox

import "strings"

// Probe is a script for /bin/sh that tries what a confined program must not be
// able to do. Its first argument is a file outside that exists, its second is "ro"
// if the working directory cannot be changed. It uses no other program and prints
// a line for each effect; see Effects.
const Probe = `
try() { if [ "$2" = held ]; then echo "held $1"; else echo "open $1"; fi; }
caps=held priv=open calls=open
while read -r key value; do
	case $key in
	CapPrm:|CapEff:|CapBnd:|CapAmb:) [ "$value" = 0000000000000000 ] || caps=open ;;
	NoNewPrivs:) [ "$value" = 1 ] && priv=held ;;
	Seccomp:) [ "$value" = 2 ] && calls=held ;;
	esac
done < /proc/self/status
try "have capabilities" $caps
try "gain rights by starting a program" $priv
try "use system calls that are not needed" $calls
if [ -e "$1" ]; then r=open; else r=held; fi
try "see files outside" $r
if (: > /usr/chela-probe) 2>/dev/null; then r=open; else r=held; fi
try "change the system" $r
if [ "$2" = ro ]; then
	if (: > chela-probe) 2>/dev/null; then r=open; else r=held; fi
	try "change the workspace" $r
fi
if (: > /tmp/chela-probe) 2>/dev/null; then r=held; else r=open; fi
try "lack a /tmp of its own" $r
if [ -d /proc/2 ] && [ ! -d "/proc/$$" ]; then r=open; else r=held; fi
try "see other processes" $r
r=held
while read -r name rest; do
	case $name in Inter-*|face|lo:*) ;; *) r=open ;; esac
done < /proc/net/dev
try "reach the network without the proxy" $r
`

// Effect is something that a program tried to do.
type Effect struct {
	Name string `json:"name"`
	Held bool   `json:"held"` // it could not
}

// Effects returns what the output of Probe says.
func Effects(out string) []Effect {
	var all []Effect
	for line := range strings.Lines(out) {
		state, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if state == "held" || state == "open" {
			all = append(all, Effect{name, state == "held"})
		}
	}
	return all
}

// Open returns what a confined program could do although it must not; "": nothing.
func Open(effects []Effect) string {
	if len(effects) == 0 {
		return "in a trial, the probe printed nothing"
	}
	var open []string
	for _, e := range effects {
		if !e.Held {
			open = append(open, e.Name)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "in a trial, a program could " + strings.Join(open, ", ")
}
