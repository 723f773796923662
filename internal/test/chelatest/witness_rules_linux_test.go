package chelatest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/test/strace"
)

// sandboxRecord is how a sandbox is built that shows /b/ws, which commands may
// change, and /b/mark and /srv, of which the witness does not know that they may.
// Process 12 is the command.
const sandboxRecord = `10 execve("/gateway", ["gateway"], 0x1 /* 1 var */) = 0
10 open_tree(3</b/ws>, "", OPEN_TREE_CLONE) = 4</>
10 open_tree(3</b/mark>, "", OPEN_TREE_CLONE) = 4</>
10 open_tree(3</usr>, "", OPEN_TREE_CLONE) = 4</>
10 clone(child_stack=NULL, flags=CLONE_NEWNS|CLONE_NEWUSER|CLONE_NEWPID|CLONE_NEWNET|SIGCHLD) = 11
11 execve("/proc/self/exe", ["chela", "__sandbox"], 0x1 /* 1 var */) = 0
11 fsopen("tmpfs", FSOPEN_CLOEXEC) = 3<anon_inode:[fscontext]>
11 fsmount(3<anon_inode:[fscontext]>, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID) = 4</>
11 move_mount(4</>, "", AT_FDCWD</>, "/proc", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 pivot_root(".", "./.old") = 0
11 mount_setattr(5</>, "", AT_EMPTY_PATH, {attr_set=MOUNT_ATTR_RDONLY, attr_clr=0}, 32) = 0
11 move_mount(5</>, "", 6</usr>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 move_mount(5</>, "", 6</b/ws>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 move_mount(5</>, "", 6</b/mark>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 move_mount(5</>, "", 6</srv>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 open_tree(6</.old/b/home/.ssh>, "", OPEN_TREE_CLONE) = 5</>
11 move_mount(5</>, "", 6</keys>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 move_mount(5</>, "", 6</b/state/cache>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 fsmount(3<anon_inode:[fscontext]>, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID) = 4</>
11 move_mount(4</>, "", 6</b/state>, "", MOVE_MOUNT_F_EMPTY_PATH) = 0
11 umount2("/.old", MNT_DETACH) = 0
11 vfork() = 2 /* 12 in strace's PID NS */
12 chdir("/b/ws") = 0
12 execve("/bin/sh", ["sh", "-c", "attack"], 0x1 /* 1 var */) = 0
`

func TestWitness(t *testing.T) {
	for name, tt := range map[string]struct {
		calls []string
		want  []string // what of each call is found
	}{
		"files of the sandbox": {
			[]string{`unlink("a") = 0`, `openat(AT_FDCWD</b/ws>, "b", O_WRONLY|O_CREAT) = 3</b/ws/b>`,
				`mkdir("/b/home", 0700) = 0`, `openat(AT_FDCWD</b/ws>, "/usr/a", O_RDONLY) = 3</usr/a>`,
				`unlink("/b/state/cache/a") = 0`},
			nil,
		},
		"files outside": {
			[]string{`openat(AT_FDCWD</b/ws>, "../mark/x", O_WRONLY|O_CREAT, 0666) = 3</b/mark/x>`,
				`openat(AT_FDCWD</b/ws>, "/usr/a", O_RDWR) = 3</usr/a>`, `creat("/srv/a", 0600) = 3</srv/a>`},
			[]string{"change /b/mark/x", "change read-only /usr/a", "change unknown: /srv/a"},
		},
		"calls that failed": {
			[]string{`unlink("/b/mark/x") = -1 EACCES (Permission denied)`,
				`openat(AT_FDCWD</b/ws>, ".env", O_RDONLY) = -1 EACCES (Permission denied)`,
				`unshare(CLONE_NEWUSER) = -1 EPERM (Operation not permitted)`},
			nil,
		},
		"operands": {
			[]string{
				`rename("a", "/b/mark/x") = 0`, `linkat(AT_FDCWD</b/ws>, "/b/mark/x", AT_FDCWD</b/ws>, "c", 0) = 0`,
				`fchmod(3</b/mark/x>, 0777) = 0`, `symlinkat("/b/mark", 3</b/mark>, "y") = 0`,
				`utimensat(3</b/mark/z>, NULL, NULL, 0) = 0`, `ftruncate(1<pipe:[7]>, 0) = 0`,
				`mkdir("/proc/self/fd/3/x", 0777) = 0`,
			},
			[]string{"change /b/mark/x", "change /b/mark/x", "change /b/mark/x", "change /b/mark/y", "change /b/mark/z",
				"change unknown: /proc/self/fd/3/x"},
		},
		"links": {
			[]string{
				`mkdir("link/a", 0777) = 0`, `unlink("link") = 0`, `mkdir("link", 0777) = 0`, `mkdir("link/a", 0777) = 0`,
				`symlink("../mark", "m") = 0`, `rename("m", "n") = 0`, `rmdir("n/b") = 0`,
				`chdir("n") = 0`, `rmdir("c") = 0`, `chmod("/proc/self/cwd", 0777) = 0`, `lchown("/b/ws/n", 1, 1) = 0`,
			},
			[]string{"change /b/mark/a", "change /b/mark/b", "change /b/mark/c", "change /b/mark"},
		},
		"protected and private names": {
			[]string{
				`openat(AT_FDCWD</b/ws>, ".git/config", O_WRONLY|O_APPEND) = 3</b/ws/.git/config>`,
				`rename(".git/hooks.new", ".git/hooks") = 0`, `openat(AT_FDCWD</b/ws>, ".env", O_RDONLY) = 3</b/ws/.env>`,
				`openat(AT_FDCWD</b/ws>, ".env", O_RDONLY|O_PATH) = 3</b/ws/.env>`,
				`openat(AT_FDCWD</b/ws>, "/keys/id_rsa", O_RDONLY) = 3</keys/id_rsa>`,
				`read(0<pipe:[7]>, "a CANARY-7f3a", 100) = 13`,
			},
			[]string{"change /b/ws/.git/config", "change /b/ws/.git/hooks", "read /b/ws/.env", "read /b/home/.ssh/id_rsa",
				"read the content of a private file"},
		},
		"network": {
			[]string{
				`connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("127.0.0.1")}, 16) = 0`,
				`connect(3<socket:[2]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0`,
				`connect(3<socket:[3]>, {sa_family=AF_INET6, sin6_port=htons(3128), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 0`,
				`connect(3<socket:[4]>, {sa_family=AF_INET, sin_port=htons(81), sin_addr=inet_addr("127.0.0.1")}, 16) = -1 EINPROGRESS (Operation now in progress)`,
				`getsockopt(3<socket:[4]>, SOL_SOCKET, SO_ERROR, [0], [4]) = 0`,
				`connect(3<socket:[5]>, {sa_family=AF_INET, sin_port=htons(82), sin_addr=inet_addr("127.0.0.1")}, 16) = -1 EINPROGRESS (Operation now in progress)`,
				`getsockopt(3<socket:[5]>, SOL_SOCKET, SO_ERROR, [111], [4]) = 0`,
				`socket(AF_INET, SOCK_DGRAM, IPPROTO_IP) = 3<socket:[6]>`,
				`sendto(3<socket:[6]>, "{sa_family=AF_INET, sin_port=htons(9)}", 4, 0, {sa_family=AF_INET, sin_port=htons(83), sin_addr=inet_addr("127.0.0.1")}, 16) = 4`,
				`sendmsg(3<socket:[6]>, {msg_name={sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.0.0.1")}, msg_namelen=16}, 0) = 4`,
				`bind(3<socket:[7]>, {sa_family=AF_INET, sin_port=htons(84), sin_addr=inet_addr("127.0.0.1")}, 16) = 0`,
				`connect(3<socket:[8]>, {sa_family=AF_INET, sin_port=htons(84), sin_addr=inet_addr("127.0.0.1")}, 16) = 0`,
				`bind(3<socket:[9]>, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 0`,
			},
			[]string{`htons(80)`, `2001:db8::1`, `htons(81)`, `10.0.0.1`},
		},
		"local sockets": {
			[]string{
				`connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/b/ws/s"}, 10) = 0`,
				`connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path=@"other"}, 10) = 0`,
				`connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/tmp/s"}, 10) = 0`,
				`bind(3<socket:[2]>, {sa_family=AF_UNIX, sun_path="own"}, 10) = 0`,
				`connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/b/ws/own"}, 10) = 0`,
				`bind(3<socket:[2]>, {sa_family=AF_UNIX, sun_path="/b/mark/s"}, 10) = 0`,
			},
			[]string{`"/b/ws/s"`, `@"other"`, "change /b/mark/s"},
		},
		"processes": {
			[]string{
				`vfork() = 3 /* 13 in strace's PID NS */`, `kill(3 /* 13 in strace's PID NS */, SIGKILL) = 0`,
				`kill(-3 /* 13 in strace's PID NS */, SIGKILL) = 0`, `kill(0, SIGTERM) = 0`,
				`kill(9, SIGTERM) = 0`, `kill(1 /* 11 in strace's PID NS */, SIGTERM) = 0`,
				`pidfd_open(1 /* 10 in strace's PID NS */, 0) = 3<anon_inode:[pidfd]>`,
				`kill(1 /* 11 in strace's PID NS */, 0) = 0`,
			},
			[]string{"signal 1 /* 11", "signal 1 /* 10"},
		},
		"calls that nobody needs": {
			[]string{`unshare(CLONE_NEWUSER) = 0`, `ptrace(PTRACE_ATTACH, 3) = 0`,
				`clone(child_stack=NULL, flags=CLONE_NEWUSER|SIGCHLD) = 3 /* 13 in strace's PID NS */`},
			[]string{"call unshare", "call ptrace", "call namespaces"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := judged(t, sandboxRecord+"12 "+strings.Join(tt.calls, "\n12 ")+"\n")
			if len(w.commands) != 1 || w.programs != 1 || w.cages != 1 {
				t.Fatalf("%d commands, %d programs, %d sandboxes", len(w.commands), w.programs, w.cages)
			}
			got := w.commands[0].faults
			if !slices.EqualFunc(got, tt.want, strings.Contains) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
	t.Run("what runs outside of the sandbox is found", func(t *testing.T) {
		w := judged(t, `10 execve("/gateway", ["gateway"], 0x1 /* 1 var */) = 0
10 vfork() = 11
11 chdir("/b/ws") = 0
11 execve("/bin/sh", ["sh", "-c", "attack"], 0x1 /* 1 var */) = 0
11 mkdir("/b/home/x", 0777) = 0
11 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
`)
		if n, kinds := w.guilty(); n != 1 || kinds["call"] != 1 || kinds["change"] != 1 || kinds["connect"] != 1 {
			t.Errorf("found %v", kinds)
		}
	})
}

// judged judges a record. The workspace has a repository and a link to /b/mark.
func judged(t *testing.T, record string) *witness {
	t.Helper()
	g := &machine{t: t, base: "/b", clean: t.TempDir(),
		vars: map[string]string{"WS": "/b/ws", "HOME": "/b/home", "STATE": "/b/state"}}
	plant(t, filepath.Join(g.clean, ".git", "config"), "")
	plant(t, filepath.Join(g.clean, ".git", "hooks", "a"), "")
	if err := os.Symlink("/b/mark", filepath.Join(g.clean, "link")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "record")
	plant(t, file, record)
	w := newWitness(g, false)
	if err := strace.Read(file, w.call); err != nil {
		t.Fatal(err)
	}
	return w
}
