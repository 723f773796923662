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

// kill sends KILL until no process is left.
func (t *tree) kill() {
	wait := time.Millisecond
	for end := time.Now().Add(killTime); time.Now().Before(end) &&
		!t.gone(syscall.SIGKILL); wait = min(2*wait, 20*time.Millisecond) {
		time.Sleep(wait)
	}
}

// reap ends the remaining processes of the program and returns how many there
// were.
func (t *tree) reap(grace time.Duration) int {
	if adopts() {
		defer t.reapZombies()
	}
	left, sure := t.signal(syscall.SIGTERM)
	for end := time.Now().Add(execTime); left == 0 && !sure &&
		time.Now().Before(end); left, sure = t.signal(syscall.SIGTERM) {
		time.Sleep(time.Millisecond)
	}
	if left == 0 {
		return 0
	}
	end := time.Now().Add(grace)
	for wait := time.Millisecond; time.Now().Before(end); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if t.gone(0) {
			return left
		}
	}
	t.kill()
	return left
}

// execTime is how long a process may take to execute a program. In that time its
// environment cannot be read.
const execTime = 500 * time.Millisecond

// signal signals every process of the tree, and returns how many there are. It is sure
// if none can have been missed.
func (t *tree) signal(s syscall.Signal) (n int, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[int]uint64{}
	}
	sure = t.scan(func(p proc) {
		n++
		t.seen[p.id] = p.began
		_ = syscall.Kill(p.id, s) // the process may have ended
	})
	return n, sure
}

// gone signals the remaining processes, and reports whether there are none. It looks
// twice, because some systems do not tell which process is the newest.
func (t *tree) gone(s syscall.Signal) bool {
	for range 2 {
		if n, sure := t.signal(s); n > 0 || !sure {
			return false
		}
	}
	return true
}

// maxRounds is how often a scan looks for processes that were started meanwhile.
const maxRounds = 100

// scan calls f with each running process of the tree, including the program itself until
// it ends. A process that ends before the scan has reached it may have started another
// one. So the scan goes on with the processes that were started meanwhile, until there
// are none. It reports false if there always were, or if a process was executing a
// program. t.mu must be held.
func (t *tree) scan(f func(proc)) (sure bool) {
	sure = true
	newest := newestID()
	pids := t.candidates(newest)
	var ours, others []proc
	for range maxRounds {
		told := len(ours)
		for _, pid := range pids {
			p, ok := readProcess(pid)
			if !ok || p.began < t.began || pid == os.Getpid() || slices.ContainsFunc(ours, p.same) {
				continue
			}
			mine, known := t.has(p)
			sure = sure && known
			if mine {
				ours = append(ours, p)
			} else {
				others = append(others, p)
			}
		}
		ours = family(ours, others)
		for _, p := range ours[told:] {
			f(p)
		}
		before := newest
		if newest = newestID(); newest == before {
			return sure
		}
		pids = idsBetween(before+1, newest)
	}
	return false
}

// has reports whether a process is one of the tree, by all criteria but its parent. It is
// not sure about one that is executing a program.
func (t *tree) has(p proc) (mine, sure bool) {
	// One that was signalled may have lost since then the property by which it was found.
	if p.session == t.session || t.seen[p.id] == p.began {
		return true, true
	}
	marked, sure := t.marked(p)
	if marked || !beforeExec(p) && t.holds(p.id) {
		return true, true
	}
	return false, sure || p.parent == os.Getpid() && !adopts() // which is another program of ours
}

// candidates returns the process ids that descendants can have. Ids are
// assigned in sequence, so shortly after the start these are the few ids from
// the program's to the newest.
func (t *tree) candidates(newest int) []int {
	if time.Since(t.start) < 2*time.Second {
		return idsBetween(t.session, newest)
	}
	return processes()
}

// idsBetween returns the ids of the processes that were started from one to another, or
// of all processes if there may be many or the ids have begun again.
func idsBetween(first, last int) []int {
	if n := last - first; n < 0 || n >= 200 {
		return processes()
	}
	var pids []int
	for pid := first; pid <= last; pid++ {
		if isProcess(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
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

// marked reports whether a process has the mark in its environment. It is not sure if the
// process is executing a program.
func (t *tree) marked(p proc) (marked, sure bool) {
	for range 2 { // the program may be another one than when the file was opened
		env := environ(p.id)
		if len(env) > 0 {
			return hasVariable(env, t.mark), true
		}
	}
	if now, ok := readProcess(p.id); ok && now.began == p.began && now.executing && ownedByUser(p.id) {
		return false, false
	}
	return hasVariable(environ(p.id), t.mark), true
}

// hasVariable reports whether an environment has a variable, NAME=value.
func hasVariable(env []byte, v string) bool {
	for have := range bytes.SplitSeq(env, []byte{0}) {
		if string(have) == v {
			return true
		}
	}
	return false
}

// environ returns the variables of a process, NAME=value, each with a zero byte at its
// end. There are none if they cannot be read.
func environ(pid int) []byte {
	env, err := readProc(strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return env
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
	executing           bool // a program, and its environment is not there yet; or it cannot be read
}

// same reports whether two descriptions are of one process.
func (p proc) same(o proc) bool { return p.id == o.id && p.began == o.began }

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
	// The start time is the 22nd field, the size of the memory the 23rd, and the end of
	// the environment the 51st.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return proc{}, 0
	}
	parent, _ := strconv.Atoi(string(f[1]))
	session, _ := strconv.Atoi(string(f[3]))
	began, _ := strconv.ParseUint(string(f[19]), 10, 64)
	executing := len(f) > 48 && string(f[20]) != "0" && string(f[48]) == "0"
	return proc{pid, parent, session, began, executing}, f[0][0]
}
