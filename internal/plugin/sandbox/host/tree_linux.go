package host

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// tree is a program and its descendants.
type tree struct {
	mark    string // NAME=value in their environment
	tty     bool   // the standard input is their terminal
	session int    // id of the program and its session
	start   time.Time
	began   uint64   // start time in the unit of /proc
	token   *os.File // our end of the pipe that all of them inherit
	tokenID string   // its name in /proc

	mu   sync.Mutex
	seen map[int]uint64 // start times of the signalled processes, by id
}

// run starts the program. All of its descendants inherit the token.
func (t *tree) run(cmd *exec.Cmd, s *stdio.Streams) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(s.TokenEnd.Fd()), &st); err != nil {
		return err
	}
	t.token, t.tokenID = s.Token, fmt.Sprintf("pipe:[%d]", st.Ino)
	cmd.ExtraFiles = []*os.File{s.TokenEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: t.tty}
	t.start, t.began = time.Now(), ticks()
	if err := cmd.Start(); err != nil {
		return err
	}
	t.session = cmd.Process.Pid
	return nil
}

func (t *tree) term() { t.signal(syscall.SIGTERM) }

// kill sends KILL until no process is left: one may have forked between the
// scan and the signal.
func (t *tree) kill() {
	wait := time.Millisecond
	for end := time.Now().Add(killTime); time.Now().Before(end); wait = min(2*wait, 20*time.Millisecond) {
		if t.signal(syscall.SIGKILL) == 0 && t.gone() {
			return
		}
		time.Sleep(wait)
	}
}

// reap ends the remaining processes of the program and returns how many there
// were.
func (t *tree) reap(grace time.Duration) int {
	if adopts() {
		defer t.reapZombies()
	}
	left := t.signal(syscall.SIGTERM)
	if left == 0 {
		return 0
	}
	end := time.Now().Add(grace)
	for wait := time.Millisecond; time.Now().Before(end); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if t.gone() {
			return left
		}
	}
	t.kill()
	return left
}

// signal signals every process of the tree and returns how many there are.
func (t *tree) signal(s syscall.Signal) int {
	all := t.alive()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range all {
		if t.seen == nil {
			t.seen = map[int]uint64{}
		}
		t.seen[p.id] = p.began
		_ = syscall.Kill(p.id, s) // the process may have ended
	}
	return len(all)
}

// known reports whether a process was signalled as one of the tree. Since
// then it may have lost the property by which it was found, such as its
// parent.
func (t *tree) known(p proc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[p.id] == p.began
}

// gone reports whether no process is left. It scans twice, because one scan
// can miss a process that forks and exits.
func (t *tree) gone() bool {
	for range 2 {
		if len(t.alive()) > 0 {
			return false
		}
	}
	return true
}

// alive returns the running processes of the tree, including the program
// itself until it ends.
func (t *tree) alive() []proc {
	var ours, others []proc
	for _, pid := range t.candidates() {
		p, ok := readProcess(pid)
		switch {
		case !ok || p.began < t.began || pid == os.Getpid():
		case p.session == t.session || t.known(p) || t.marked(pid) || !beforeExec(p) && t.holds(pid):
			ours = append(ours, p)
		default:
			others = append(others, p)
		}
	}
	return family(ours, others)
}

// candidates returns the process ids that descendants can have. Ids are
// assigned in sequence, so shortly after the start these are the few ids from
// the program's to the newest.
func (t *tree) candidates() []int {
	newest := newestID()
	if n := newest - t.session; n >= 0 && n < 200 && time.Since(t.start) < 2*time.Second {
		var pids []int
		for pid := t.session; pid <= newest; pid++ {
			if isProcess(pid) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	return processes()
}

// processes returns the ids of all processes.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isProcess reports whether an id belongs to a process and not to one of its
// threads, which /proc resolves but does not list.
func isProcess(pid int) bool { return unix.Tgkill(pid, pid, 0) != unix.ESRCH }

// newestID returns the most recently assigned process id, or -1.
func newestID() int {
	load, err := readProc("loadavg")
	f := bytes.Fields(load)
	if err != nil || len(f) < 5 {
		return -1
	}
	id, err := strconv.Atoi(string(f[4]))
	if err != nil {
		return -1
	}
	return id
}

// readProc reads a file in /proc. Package os would register each file with
// the poller, which takes longer than reading it.
func readProc(name string) ([]byte, error) {
	fd, err := unix.Open("/proc/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 512)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if n <= 0 {
			return b, err
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = slices.Grow(b, 4<<10)
		}
	}
}

// family returns the processes and all their descendants.
func family(ours, others []proc) []proc {
	for i := 0; i < len(ours); i++ {
		for _, p := range others {
			if p.parent == ours[i].id && !slices.Contains(ours, p) {
				ours = append(ours, p)
			}
		}
	}
	return ours
}

// marked reports whether a process has the mark in its environment.
func (t *tree) marked(pid int) bool {
	for v := range environ(pid) {
		if string(v) == t.mark {
			return true
		}
	}
	return false
}

// environ returns the variables of a process, NAME=value. There are none if they
// cannot be read.
func environ(pid int) iter.Seq[[]byte] {
	env, err := readProc(strconv.Itoa(pid) + "/environ")
	if err != nil {
		env = nil
	}
	return bytes.SplitSeq(env, []byte{0})
}

// holds reports whether a process holds the inherited descriptor.
func (t *tree) holds(pid int) bool {
	if stdio.Abandoned(t.token) {
		return false
	}
	path := fmt.Sprintf("/proc/%d/fd", pid)
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if link, err := os.Readlink(path + "/" + name); err == nil && link == t.tokenID {
			return true
		}
	}
	return false
}

// beforeExec reports whether a process is a fork of this process that has not
// executed its program yet: until then it has copies of all our descriptors.
// It must be called before holds, because the program may be executed in
// between.
func beforeExec(p proc) bool {
	if p.parent != os.Getpid() {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.id))
	ownExe, _ := os.Readlink("/proc/self/exe")
	return err != nil || exe == ownExe
}

// ticks returns the time since boot in hundredths of a second, the unit of
// /proc, minus one.
func ticks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil || ts.Nano() < 1e7 {
		return 0
	}
	return uint64(ts.Nano())/1e7 - 1
}

// proc is a process as described by /proc.
type proc struct {
	id, parent, session int
	began               uint64
}

// readProcess reads a process. It reports false for a process that does not
// exist or is a zombie.
func readProcess(pid int) (proc, bool) {
	p, state := readAny(pid)
	return p, state != 0 && state != 'Z' && state != 'X'
}

// readAny reads a process or zombie with its state, which is 0 if it does not
// exist.
func readAny(pid int) (p proc, state byte) {
	stat, err := readProc(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, 0
	}
	// id (name) state parent group session …; the name may contain any character.
	// The start time is the 22nd field.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return proc{}, 0
	}
	parent, _ := strconv.Atoi(string(f[1]))
	session, _ := strconv.Atoi(string(f[3]))
	began, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return proc{pid, parent, session, began}, f[0][0]
}
