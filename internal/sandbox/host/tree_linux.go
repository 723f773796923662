package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the processes of one program.
type tree struct {
	mark    string // NAME=value in their environment
	tty     bool   // the standard input is their terminal
	session int    // id of the program's session, and of the program
	start   time.Time
	began   uint64   // the same, as /proc tells it
	token   *os.File // our end of what all of them inherit
	tokenID string   // that, as /proc names it

	mu   sync.Mutex
	seen map[int]uint64 // when those of it began that were signalled, by id
}

// run starts the program. All of its descendants inherit the token.
func (t *tree) run(cmd *exec.Cmd, tk token) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(tk.theirs.Fd()), &st); err != nil {
		return err
	}
	t.token, t.tokenID = tk.ours, fmt.Sprintf("pipe:[%d]", st.Ino)
	cmd.ExtraFiles = []*os.File{tk.theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: t.tty}
	t.start, t.began = time.Now(), ticks()
	if err := cmd.Start(); err != nil {
		return err
	}
	t.session = cmd.Process.Pid
	return nil
}

func (t *tree) term() { t.signal(syscall.SIGTERM) }

// kill kills until nobody is left: a process may have forked between the look
// and the signal.
func (t *tree) kill() {
	wait := time.Millisecond
	for end := time.Now().Add(killTime); time.Now().Before(end); wait = min(2*wait, 20*time.Millisecond) {
		if t.signal(syscall.SIGKILL) == 0 && t.gone() {
			return
		}
		time.Sleep(wait)
	}
}

// reap ends what the program left behind, and returns how many processes that
// were.
func (t *tree) reap(grace time.Duration) int {
	if adopts() {
		defer t.bury()
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
		_ = syscall.Kill(p.id, s) // it may be gone
	}
	return len(all)
}

// known reports whether a process was signalled, as one of the tree: it may have
// lost since what it was found by, with its parent for one.
func (t *tree) known(p proc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[p.id] == p.began
}

// gone reports whether nobody is left. It looks twice: one that forks and ends
// at once can be missed by one look.
func (t *tree) gone() bool {
	for range 2 {
		if len(t.alive()) > 0 {
			return false
		}
	}
	return true
}

// alive returns the processes of the tree that run. The program is one of them
// until it ends.
func (t *tree) alive() []proc {
	var ours, others []proc
	for _, pid := range t.candidates() {
		p, ok := look(pid)
		switch {
		case !ok || p.began < t.began || pid == os.Getpid():
		case p.session == t.session || t.known(p) || t.marked(pid) || !unborn(p) && t.holds(pid):
			ours = append(ours, p)
		default:
			others = append(others, p)
		}
	}
	return family(ours, others)
}

// candidates returns the ids that descendants can have. Ids are given in turn,
// so that after a short run there are few: those from the program's to the
// newest.
func (t *tree) candidates() []int {
	newest := newestID()
	if n := newest - t.session; n >= 0 && n < 200 && time.Since(t.start) < 2*time.Second {
		var pids []int
		for pid := t.session; pid <= newest; pid++ {
			if leads(pid) {
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

// leads reports whether an id is a process's and not one of its threads', which
// /proc does not list but knows.
func leads(pid int) bool { return unix.Tgkill(pid, pid, 0) != unix.ESRCH }

// newestID returns the process id that was given last, or -1.
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

// readProc reads a file of /proc. Package os would have each of them watched
// for readiness, which takes longer than to read it.
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

// family returns processes and all their descendants.
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
	env, err := readProc(strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == t.mark {
			return true
		}
	}
	return false
}

// holds reports whether a process has the inherited descriptor.
func (t *tree) holds(pid int) bool {
	if abandoned(t.token) {
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

// unborn reports whether a process is a fork of this one that has not become
// another program yet: until then it has copies of all our descriptors. It is
// asked before what the process holds: it may become one meanwhile.
func unborn(p proc) bool {
	if p.parent != os.Getpid() {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.id))
	own, _ := os.Readlink("/proc/self/exe")
	return err != nil || exe == own
}

// ticks returns the time since the start of the system in hundredths of a
// second, which is the unit of /proc, less one.
func ticks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil || ts.Nano() < 1e7 {
		return 0
	}
	return uint64(ts.Nano())/1e7 - 1
}

// proc is a process as /proc tells it.
type proc struct {
	id, parent, session int
	began               uint64
}

// look reads a process; one that has ended and was not waited for is none.
func look(pid int) (proc, bool) {
	stat, err := readProc(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	// id (name) state parent group session …; the name may hold anything. The
	// start is the 22nd field.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return proc{}, false
	}
	parent, _ := strconv.Atoi(string(f[1]))
	session, _ := strconv.Atoi(string(f[3]))
	began, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return proc{pid, parent, session, began}, true
}
