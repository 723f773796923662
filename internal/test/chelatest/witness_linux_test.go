package chelatest

import (
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/test/strace"
)

// changes are the system calls that change files by name, and where their
// arguments name these: p is a path, and l one whose last part is not followed if
// it is a link. In capitals, a descriptor of a folder is before the path. f is a
// descriptor.
var changes = map[string]string{
	"unlink":    "l0",
	"rmdir":     "l0",
	"rename":    "l0 l1",
	"link":      "l0 l1",
	"symlink":   "l1",
	"mkdir":     "l0",
	"mknod":     "l0",
	"unlinkat":  "L0",
	"renameat":  "L0 L2",
	"renameat2": "L0 L2",
	"linkat":    "L0 L2",
	"symlinkat": "L1",
	"mkdirat":   "L0",
	"mknodat":   "L0",
	"chmod":     "p0",
	"fchmod":    "f0",
	"fchmodat":  "P0",
	"fchmodat2": "P0",
	"chown":     "p0",
	"lchown":    "l0",

	"fchown":    "f0",
	"fchownat":  "P0",
	"truncate":  "p0",
	"ftruncate": "f0",
	"fallocate": "f0",
	"utime":     "p0",
	"utimes":    "p0",

	"futimesat":   "P0",
	"utimensat":   "P0",
	"setxattr":    "p0",
	"lsetxattr":   "l0",
	"fsetxattr":   "f0",
	"removexattr": "p0",

	"lremovexattr": "l0",
	"fremovexattr": "f0",
}

// forbidden are the system calls that no command has a use for.
const forbidden = "ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise kcmp mount umount2 pivot_root chroot setns unshare " +
	"fsopen fsmount fsconfig fspick open_tree move_mount mount_setattr open_by_handle_at fanotify_init quotactl bpf perf_event_open " +
	"userfaultfd io_uring_setup add_key request_key keyctl init_module finit_module delete_module kexec_load kexec_file_load reboot " +
	"swapon swapoff acct syslog sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex iopl ioperm"

// witnessed are all system calls that a witness needs.
func witnessed() []string {
	list := strings.Fields("execve execveat clone clone3 fork vfork chdir fchdir open openat openat2 creat read pread64 readv recvfrom recvmsg " +
		"socket bind connect getsockopt sendto sendmsg sendmmsg kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open " + forbidden)
	for name := range changes {
		list = append(list, name)
	}
	for i, name := range list {
		list[i] = "?" + name // other processors, and older versions of strace, do not have all of them
	}
	return list
}

// A witness judges the system calls of a gateway and of all programs that it
// started. It knows what a sandbox shows from the calls that built it.
type witness struct {
	machine *machine
	free    bool     // there is no sandbox
	frozen  []string // names in the workspace that commands cannot change

	host    *view
	states  map[*strace.Process]*state
	members map[int]*state    // by number
	trees   map[string]bool   // what the gateway made mounts of
	links   map[string]string // symbolic links by their paths; "": removed
	clean   map[string]string // those that the workspace has before each command
	sockets map[string]string // types
	waiting map[string]string // addresses of sockets that are being connected

	commands                              []*traced
	cages, programs, changed, read, asked int // what was judged
}

// traced is a command with all its processes.
type traced struct {
	text   string
	bound  map[string]bool // addresses that its processes listen on
	faults []string        // each begins with its kind
}

// part is what a process is.
type part int

const (
	gateway  part = iota
	launcher      // builds a sandbox
	program       // all that a command starts
)

// state is what is known of a process.
type state struct {
	part    part
	view    *view
	dir     *string // current directory
	command *traced
}

// protected are names in repositories that commands cannot change if they exist.
var protected = regexp.MustCompile(`/\.git/(hooks|config|config\.worktree|commondir|info/attributes|modules)$`)

func newWitness(g *machine, free bool) *witness {
	w := &witness{
		machine: g,
		free:    free,
		host:    newView(""),
		states:  map[*strace.Process]*state{},
		members: map[int]*state{},
		trees:   map[string]bool{},
		links:   map[string]string{},
		clean:   map[string]string{},
		sockets: map[string]string{},
		waiting: map[string]string{},
		frozen:  []string{filepath.Join(g.vars["WS"], ".env")},
	}
	w.host.mounts = []mounted{{at: "/", from: "/"}}
	err := filepath.WalkDir(g.clean, func(path string, d fs.DirEntry, err error) error {
		name := g.vars["WS"] + strings.TrimPrefix(path, g.clean)
		switch {
		case err != nil:
			return err
		case d.Type() == fs.ModeSymlink:
			w.clean[name], err = os.Readlink(path)
		case protected.MatchString(name):
			w.frozen = append(w.frozen, name)
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return w
}

// state returns the state of a process, which begins as that of its parent.
func (w *witness) state(p *strace.Process) *state {
	s := w.states[p]
	if s != nil {
		return s
	}
	s = &state{view: w.host, dir: new(string)}
	if p.Parent != nil {
		above := w.state(p.Parent)
		*s = *above
		if !strings.Contains(p.Flags, "CLONE_FS") {
			dir := *above.dir
			s.dir = &dir
		}
	}
	w.states[p], w.members[p.PID] = s, s
	return s
}

// call takes a call into account.
func (w *witness) call(c *strace.Call) {
	s := w.state(c.Process)
	if c.Child != nil {
		w.state(c.Child)
	}
	if strings.HasPrefix(c.Arg(0), "AT_FDCWD<") {
		*s.dir = strace.File(c.Arg(0))
	}
	if s.part == program {
		w.judge(s, c)
	}
	if c.Failed() {
		return
	}
	switch c.Name {
	case "execve", "execveat":
		w.exec(s, c)
	case "chdir":
		if to, ok := strace.Text(c.Arg(0)); ok {
			*s.dir, _ = w.resolve(s, to, true)
		}
	case "fchdir":
		*s.dir = strace.File(c.Arg(0))
	case "symlink", "symlinkat", "unlink", "unlinkat", "rename", "renameat", "renameat2":
		w.link(s, c)
	case "open_tree":
		if s.part == gateway {
			w.trees[strace.File(c.Arg(0))] = true
		}
	}
	if s.part == launcher {
		s.view.mount(c, w.trees)
	}
}

// exec notes that a process becomes another program.
func (w *witness) exec(s *state, c *strace.Call) {
	path, _ := strace.Text(c.Arg(0))
	argv := strace.Words(c.Arg(1))
	if c.Name == "execveat" {
		path, argv = c.Arg(0), strace.Words(c.Arg(2))
	}
	switch s.part {
	case gateway:
		if c.Process.Parent == nil {
			return
		}
		if path == "/proc/self/exe" && slices.Equal(argv, []string{"chela", "__sandbox"}) {
			s.part, s.view = launcher, newView(c.Process.Flags)
			w.cages++
			return
		}
	case launcher:
	case program:
		w.programs++
		return
	}
	w.programs++
	outside := s.part == gateway
	s.part, s.command = program, &traced{text: strings.Join(argv, " "), bound: map[string]bool{}}
	w.commands = append(w.commands, s.command)
	w.renew()
	if outside && !w.free {
		w.fault(s, c, "call", "outside of the sandbox")
	}
}

// renew forgets the links in the workspace that commands made: it is restored
// before each command.
func (w *witness) renew() {
	for path := range w.links {
		if pathpolicy.Inside(path, w.machine.vars["WS"]) {
			delete(w.links, path)
		}
	}
	maps.Copy(w.links, w.clean)
}

// link notes what a call does to links.
func (w *witness) link(s *state, c *strace.Call) {
	names := w.operands(s, c)
	if len(names) == 0 {
		return
	}
	to := s.view.key(names[len(names)-1])
	switch {
	case strings.HasPrefix(c.Name, "symlink"):
		w.links[to], _ = strace.Text(c.Arg(0))
	case strings.HasPrefix(c.Name, "unlink"):
		w.links[to] = ""
	default:
		from := s.view.key(names[0])
		moved := map[string]string{from: w.linkAt(from)}
		for path, target := range w.links {
			if pathpolicy.Inside(path, from) {
				moved[path] = target
			}
		}
		for path, target := range moved {
			w.links[path] = ""
			w.links[to+strings.TrimPrefix(path, from)] = target
		}
	}
}

// linkAt returns the target of a link; "": it is none.
func (w *witness) linkAt(key string) string {
	if to, ok := w.links[key]; ok || !strings.HasPrefix(key, "/") || pathpolicy.Inside(key, w.machine.base) {
		return to
	}
	to, _ := os.Readlink(key) // of the system, as it is now
	return to
}

var (
	magic = regexp.MustCompile(`^/proc/(self|thread-self|\d+)(/task/\d+)?/(root|cwd|exe|fd/\d+)$`)
	depth = 40 // links in a path, as in the kernel
)

// resolve returns a path without links. ok is false if it cannot be told where
// it leads.
func (w *witness) resolve(s *state, path string, last bool) (real string, ok bool) {
	at := "/"
	if !strings.HasPrefix(path, "/") {
		at = *s.dir
	}
	rest := strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if at = filepath.Join(at, name); name == ".." {
			continue
		}
		to := ""
		if m := magic.FindStringSubmatch(at); m != nil {
			switch {
			case m[3] == "root":
				to = "/"
			case m[3] == "cwd" && m[1] == "self":
				to = *s.dir
			default:
				return path, false
			}
		} else if len(rest) > 0 || last {
			to = w.linkAt(s.view.key(at))
		}
		if to == "" {
			continue
		}
		if links++; links > depth {
			return path, false
		}
		if rest = append(strings.Split(to, "/"), rest...); strings.HasPrefix(to, "/") {
			at = "/"
		} else {
			at = filepath.Dir(at)
		}
	}
	return at, true
}

// operands returns the paths of the files that a call changes.
func (w *witness) operands(s *state, c *strace.Call) (paths []string) {
	for _, o := range strings.Fields(changes[c.Name]) {
		i := int(o[1] - '0')
		dir := *s.dir
		if o[0] == 'P' || o[0] == 'L' {
			dir = strace.File(c.Arg(i))
			i++
		}
		name, ok := strace.Text(c.Arg(i))
		switch {
		case o[0] == 'f':
			paths = append(paths, strace.File(c.Arg(i)))
			continue
		case !ok || name == "": // the descriptor itself
			paths = append(paths, dir)
			continue
		case !strings.HasPrefix(name, "/"):
			name = dir + "/" + name
		}
		follow := (o[0] == 'p' || o[0] == 'P') &&
			!slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "AT_SYMLINK_NOFOLLOW") })
		path, known := w.resolve(s, name, follow)
		if !known {
			path = unknown(path)
		}
		paths = append(paths, path)
	}
	return paths
}

// judge judges a call of a command.
func (w *witness) judge(s *state, c *strace.Call) {
	if c.Name == "connect" && strings.HasPrefix(c.Value, "-1 EINPROGRESS") {
		w.waiting[socket(c.Arg(0))] = c.Arg(1)
	}
	if c.Failed() {
		return
	}
	switch c.Name {
	case "open", "openat", "openat2", "creat":
		w.opens(s, c)
	case "read", "pread64", "readv", "recvfrom", "recvmsg":
		w.read++
		if slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, attackSecret) }) {
			w.fault(s, c, "read", "the content of a private file")
		}
	case "clone", "clone3":
		if strings.Contains(strings.Join(c.Args, ""), "CLONE_NEW") && !w.free {
			w.fault(s, c, "call", "namespaces")
		}
	case "socket":
		w.sockets[socket(c.Value)] = c.Arg(1)
	case "bind", "connect", "sendto", "sendmsg", "sendmmsg":
		for _, a := range addresses(c) {
			w.address(s, c, a)
		}
	case "getsockopt":
		if to, ok := w.waiting[socket(c.Arg(0))]; ok && c.Arg(2) == "SO_ERROR" {
			delete(w.waiting, socket(c.Arg(0)))
			if c.Arg(3) == "[0]" {
				w.address(s, c, to)
			}
		}
	case "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open":
		w.signal(s, c)
	default:
		for _, path := range w.operands(s, c) {
			w.change(s, c, path)
		}
		if slices.Contains(strings.Fields(forbidden), c.Name) && !w.free {
			w.fault(s, c, "call", c.Name)
		}
	}
}

// opens judges that a file is opened.
func (w *witness) opens(s *state, c *strace.Call) {
	path := strace.File(c.Value)
	flags := map[string]string{"open": c.Arg(1), "creat": "O_WRONLY|O_CREAT"}[c.Name]
	if flags == "" {
		flags = c.Arg(2)
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(flags, n) })
	}
	if path == "" || has("O_PATH") { // a pipe, or nothing can be done with it
		return
	}
	if has("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE") {
		w.change(s, c, path)
	}
	if !has("O_WRONLY") {
		w.read++
		if _, host := s.view.find(path); host != inner && w.private(s, host) {
			w.fault(s, c, "read", host)
		}
	}
}

// change judges that the file at a path is changed.
func (w *witness) change(s *state, c *strace.Call, path string) {
	if !strings.HasPrefix(path, "/") && path != "" {
		w.fault(s, c, "change", path)
	}
	if !strings.HasPrefix(path, "/") {
		return // a pipe or a socket
	}
	w.changed++
	g := w.machine
	m, host := s.view.find(path)
	inside := func(dir string) bool { return pathpolicy.Inside(host, dir) }
	switch {
	case m.frozen:
		w.fault(s, c, "change", "read-only "+path)
	case host == inner:
	case slices.Contains(strings.Fields("/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty"), host):
	case inside(g.vars["WS"]) && !slices.ContainsFunc(w.frozen, inside):
	case w.free &&
		(!inside(g.base) ||
			slices.ContainsFunc(kept, func(name string) bool { return inside(filepath.Join(g.vars["HOME"], name)) })):
		// ordinary programs without a sandbox write there
	default:
		w.fault(s, c, "change", host)
	}
}

var environ = regexp.MustCompile(`^/proc/(\d+)/(environ|mem|root|cwd)`)

// private reports whether a file of the host holds what no command may read.
func (w *witness) private(s *state, host string) bool {
	g := w.machine
	if m := environ.FindStringSubmatch(host); m != nil {
		return !w.member(s, m[1])
	}
	for _, name := range []string{filepath.Join(g.vars["HOME"], ".ssh"), filepath.Join(g.vars["HOME"], ".aws"),
		filepath.Join(g.vars["HOME"], ".chela"), g.vars["STATE"]} {
		if host != name && pathpolicy.Inside(host, name) {
			return true
		}
	}
	return host == filepath.Join(g.vars["WS"], ".env")
}

// member reports whether a process belongs to commands that see the same.
func (w *witness) member(s *state, pid string) bool {
	n, _ := strconv.Atoi(pid)
	to := w.members[n]
	return to != nil && to.part == program && to.view == s.view
}

// signal judges that a process is signalled, or could be.
func (w *witness) signal(s *state, c *strace.Call) {
	if c.Name == "kill" && c.Arg(1) == "0" {
		return // it is not
	}
	w.asked++
	pid, outside := strace.PID(c.Arg(0))
	switch {
	case pid == 0 || strings.Contains(s.view.flags, "CLONE_NEWPID") && !outside: // a group, or a process that has ended
	case w.member(s, strconv.Itoa(max(pid, -pid))):
	default:
		w.fault(s, c, "signal", c.Arg(0))
	}
}

var (
	sockaddr = regexp.MustCompile(`\{sa_family=(AF_\w+)[^{}]*\}`)
	named    = regexp.MustCompile(`sun_path=(@?)("(?:[^"\\]|\\.)*")`)
	port     = regexp.MustCompile(`sin6?_port=htons\((\d+)\)`)
	ip       = regexp.MustCompile(`(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]*)"`)
)

// addresses returns the addresses in the arguments of a call.
func addresses(c *strace.Call) []string {
	args := c.Args
	if c.Name == "sendto" { // what is sent could look like one
		args = args[4:]
	}
	return sockaddr.FindAllString(strings.Join(args, " "), -1)
}

// address judges that an address is connected to, sent to or bound.
func (w *witness) address(s *state, c *strace.Call, text string) {
	w.asked++
	isolated := strings.Contains(s.view.flags, "CLONE_NEWNET")
	addr, mine := "", false // nobody outside of the sandbox has the address
	switch sockaddr.ReplaceAllString(text, "$1") {
	case "AF_UNSPEC", "AF_NETLINK":
		mine = isolated || w.free
	case "AF_UNIX":
		addr, mine = w.local(s, c, text)
	case "AF_INET", "AF_INET6":
		addr, mine = w.internet(s, c, text)
		mine = mine && isolated
	}
	if c.Name == "bind" {
		s.command.bound[addr] = true
		mine = isolated || w.free
	}
	if !mine && (addr == "" || !s.command.bound[addr]) {
		w.fault(s, c, "connect", text)
	}
}

// local returns where a socket in the file system is, and whether only the
// sandbox has it.
func (w *witness) local(s *state, c *strace.Call, text string) (addr string, mine bool) {
	m := named.FindStringSubmatch(text)
	if m == nil {
		return "", true // without a name
	}
	name, _ := strace.Text(m[2])
	if m[1] != "" {
		return "@" + name, false // it has to be one of the command's
	}
	path, ok := w.resolve(s, name, c.Name != "bind")
	if !ok {
		path = unknown(path)
	}
	if c.Name == "bind" {
		w.change(s, c, path)
	}
	_, host := s.view.find(path)
	return s.view.key(path), host == inner
}

// internet returns the port of an address, and whether only a sandbox with a
// network of its own has it.
func (w *witness) internet(s *state, c *strace.Call, text string) (addr string, mine bool) {
	n, a := port.FindStringSubmatch(text), ip.FindStringSubmatch(text)
	if n == nil || a == nil {
		return "", false
	}
	to, err := netip.ParseAddr(a[1])
	if err != nil || !to.Unmap().IsLoopback() && !to.IsUnspecified() {
		return "", false
	}
	datagram := strings.Contains(w.sockets[socket(c.Arg(0))], "SOCK_DGRAM") // nobody has to listen
	return n[1], datagram || n[1] == proxyPort || s.command.bound["0"]      // 0: any port
}

// proxyPort is where the proxy listens in a sandbox.
const proxyPort = "3128"

// socket returns what is the same for all descriptors of a socket.
func socket(descriptor string) string {
	_, name, _ := strings.Cut(descriptor, "<")
	return name
}

// fault notes what a command must not do.
func (w *witness) fault(s *state, c *strace.Call, kind, what string) {
	s.command.faults = append(s.command.faults,
		fmt.Sprintf("%s %s: %s(%s) = %s", kind, what, c.Name, strings.Join(c.Args, ", "), c.Value))
}

// guilty returns the commands that did what they must not, in all and by kind.
func (w *witness) guilty() (all int, kinds map[string]int) {
	kinds = map[string]int{}
	for _, command := range w.commands {
		found := map[string]bool{}
		for _, f := range command.faults {
			kind, _, _ := strings.Cut(f, " ")
			found[kind] = true
		}
		for kind := range found {
			kinds[kind]++
		}
		all += min(len(found), 1)
	}
	return all, kinds
}
