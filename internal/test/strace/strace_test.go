package strace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// calls describes the calls of a record.
func calls(t *testing.T, record string) (list []string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(file, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	err = Read(file, func(c *Call) {
		who := fmt.Sprint(c.Process.PID)
		for p := c.Process.Parent; p != nil; p = p.Parent {
			who += fmt.Sprint("<", p.PID)
		}
		if c.Failed() {
			who += " failed"
		}
		list = append(list, fmt.Sprintf("%s %s(%s) %s", who, c.Name, strings.Join(c.Args, "|"), c.Value))
	})
	return list, err
}

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		record string
		want   []string
	}{
		"calls": {
			`10    execve("/bin/sh", ["sh", "-c", "a, (b"], 0x5 /* 2 vars */) = 0
10    rename("x, \"y) = 0", "z")         = -1 ENOENT (No such file or directory)
10    openat(AT_FDCWD</tmp/a, b)>, "c", O_RDONLY) = 3</tmp/a, b)/c>
10    +++ exited with 0 +++
`,
			[]string{
				`10 execve("/bin/sh"|["sh", "-c", "a, (b"]|0x5 /* 2 vars */) 0`,
				`10 failed rename("x, \"y) = 0"|"z") -1 ENOENT (No such file or directory)`,
				`10 openat(AT_FDCWD</tmp/a, b)>|"c"|O_RDONLY) 3</tmp/a, b)/c>`,
			},
		},
		"calls that return late, and not at all": {
			`10 unlink("a" <unfinished ...>
10 <... unlink resumed>)             = 0
10 openat(AT_FDCWD</>, "b", O_RDONLY <unfinished ...>
10 <... openat resumed>)             = ?
10 <... ??? resumed>)                = ?
10 unlink("c" <unfinished ...>
10 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---
10 +++ killed by SIGKILL +++
`,
			[]string{`10 unlink("a") 0`, `10 failed openat(AT_FDCWD</>|"b"|O_RDONLY) ?`},
		},
		"a child that runs before the call returns, in a namespace of its own": {
			`10 clone(flags=SIGCHLD <unfinished ...>
11 chdir("/")                        = 0
12 chdir("/")                        = 0
10 <... clone resumed>)              = 2 /* 11 in strace's PID NS */
11 vfork( <unfinished ...>
12 +++ exited with 0 +++
11 <... vfork resumed>)              = 3 /* 12 in strace's PID NS */
`,
			[]string{`11<10 chdir("/") 0`, `12<11<10 chdir("/") 0`, `10 clone(flags=SIGCHLD) 2 /* 11 in strace's PID NS */`,
				`11<10 vfork() 3 /* 12 in strace's PID NS */`},
		},
		"a number that is used again": {
			`10 vfork()                           = 11
11 vfork()                           = 12
11 +++ exited with 0 +++
12 vfork()                           = 11
11 chdir("a")                        = 0
`,
			[]string{`10 vfork() 11`, `11<10 vfork() 12`, `12<11<10 vfork() 11`, `11<12<11<10 chdir("a") 0`},
		},
		"a parent that is killed before the call returns": {
			`10 vfork()                           = 11
11 clone(flags=SIGCHLD <unfinished ...>
12 chdir("a")                        = 0
11 <... clone resumed> <unfinished ...>) = ?
11 +++ killed by SIGKILL +++
13 chdir("b")                        = 0
`,
			[]string{`10 vfork() 11`, `12<11<10 chdir("a") 0`, `11<10 failed clone(flags=SIGCHLD <unfinished ...>) ?`,
				`13<11<10 chdir("b") 0`},
		},
		"a thread that starts a program": {
			`10 clone(flags=CLONE_THREAD)         = 11
11 execve("/a", ["a"], 0x5 <unfinished ...>
10 +++ superseded by execve in pid 11 +++
10 <... execve resumed>)             = 0
10 vfork()                           = 11
11 chdir("a")                        = 0
`,
			[]string{`10 clone(flags=CLONE_THREAD) 11`, `10 execve("/a"|["a"]|0x5) 0`, `10 vfork() 11`, `11<10 chdir("a") 0`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := calls(t, tt.record)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	for name, record := range map[string]string{
		"a process that nobody made": "10 chdir(\"a\") = 0\n11 chdir(\"a\") = 0\n",
		"no call":                    "10 chdir(\"a\"\n",
		"no process":                 "chdir(\"a\") = 0\n",
	} {
		if got, err := calls(t, record); err == nil {
			t.Errorf("%s: read %q", name, got)
		}
	}
}

func TestArguments(t *testing.T) {
	for arg, want := range map[string]string{
		`"a\tb\"\\c"`: "a\tb\"\\c", `"\x61\x0a"`: "a\n", `"\74b\1"`: "<b\x01", `"cut"...`: "cut",
	} {
		if got, ok := Text(arg); got != want || !ok {
			t.Errorf("the text of %s is %q, %v", arg, got, ok)
		}
	}
	for arg, want := range map[string]string{
		"3</a/b>":                "/a/b",
		`AT_FDCWD</a\74b>`:       "/a<b",
		`3<\x2f\x61>`:            "/a",
		"3</a>(deleted)":         "/a",
		"AT_FDCWD</a (deleted)>": "/a",
		"3<pipe:[12]>":           "",
		"NULL":                   "",
		"3":                      "",
	} {
		if got := File(arg); got != want {
			t.Errorf("the file of %s is %q, want %q", arg, got, want)
		}
	}
	if diff := cmp.Diff([]string{"sh", "-c", "a, b]"}, Words(`["sh", "-c", "a, b]"]`)); diff != "" {
		t.Error(diff)
	}
	for arg, want := range map[string]int{
		"12":                             12,
		"2 /* 12 in strace's PID NS */":  12,
		"-2 /* 12 in strace's PID NS */": 12,
	} {
		if got, _ := PID(arg); got != want {
			t.Errorf("the process of %s is %d", arg, got)
		}
	}
}
