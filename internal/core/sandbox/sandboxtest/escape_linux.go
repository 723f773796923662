package sandboxtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// Arena is a part of a host that a caged program must neither read nor change,
// and the folders that it may use.
type Arena struct {
	Root      string // holds all of them
	Kit       string // readable: the acts and the program that makes system calls
	Workspace string
	Outside   string // not for the program
	Home      string // home folder of the person
	State     string // state of the gateway
}

// Escapes describe a broker under attack.
type Escapes struct {
	// Broker returns the broker for an arena. The broker connects allowed.test to
	// Upstream and no other host.
	Broker func(t testing.TB, a Arena, upstream string) sandbox.Broker
	// Host runs plans without Rights. Each act is tried there too, because an act
	// that fails there shows nothing.
	Host sandbox.Broker
	// Write lets the program change the workspace.
	Write bool
}

// Report is the result of an attack.
type Report struct {
	Acts      int // for a sandbox with this right
	Inside    int // of these, carried out in the sandbox
	Effective int // of these acts, with an effect outside of the sandbox
	Tried     int // in the sandbox, with an effect outside or here
	Held      int // of these, without an effect
	Escaped   []string
	Missed    []string // acts with an effect outside that were not carried out in the sandbox, each with the reason
	NotRun    []string // acts that show nothing here, each with the reason
}

func (r Report) String() string {
	return fmt.Sprintf("%d acts: %d carried out inside; %d have an effect outside, of which %d were missed; %d held, %d escaped; %d show nothing on this machine",
		r.Acts, r.Inside, r.Effective, len(r.Missed), r.Held, len(r.Escaped), len(r.NotRun))
}

// canary is the content of what a caged program must not read.
const canary = "canary-3f9c51e0"

// RunEscapes tries all acts inside and outside of a sandbox.
func RunEscapes(t *testing.T, e Escapes) Report {
	t.Helper()
	all := escapeActs()
	var inside map[int]outcome
	t.Run("places", func(t *testing.T) { // at the same time: many acts wait for an answer that does not come
		t.Run("sandbox", func(t *testing.T) {
			t.Parallel()
			inside = attack(t, e, all, "")
		})
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			controls.Do(func() {
				controls.host, controls.box = attack(t, e, all, onHost), attack(t, e, all, inBox)
			})
		})
	})
	var r Report
	for i, a := range all {
		if !a.suits(e.Write) {
			continue
		}
		r.Acts++
		name, in := a.class+": "+a.name, inside[i]
		if in.ran {
			r.Inside++
		}
		outside := controls.host
		if a.where() == inBox {
			outside = controls.box
		}
		out, hasControl := outside[i]
		if out.worked {
			r.Effective++
		}
		switch {
		case in.worked:
			r.Tried++
			r.Escaped = append(r.Escaped, name+" ("+in.text+")")
		case !in.ran && out.worked:
			r.Missed = append(r.Missed, name+": "+in.text)
		case !in.ran:
			r.NotRun = append(r.NotRun, name+": it did not start in the sandbox: "+in.text)
		case !hasControl:
			r.NotRun = append(r.NotRun, name+": "+a.control)
		case !out.ran:
			r.NotRun = append(r.NotRun, name+": it could not be tried outside: "+out.text)
		case !out.worked:
			r.NotRun = append(r.NotRun, name+": it does not work outside either: "+out.text)
		default:
			r.Tried++
			r.Held++
		}
	}
	return r
}

// controls are the outcomes outside of a sandbox by the number of the act. They
// are the same for all sandboxes that a process tries.
var controls struct {
	sync.Once
	host, box map[int]outcome
}

// Where the control of an act runs.
const (
	onHost = "host"
	inBox  = "box" // in namespaces of its own with all rights there
)

// act is an attempt to get out. It worked if its script ended with 0 or, if
// trace is set, if the file or folder with that name has changed. In the
// script and in trace, names are those of variables.
type act struct {
	class, name, script string
	trace               string
	control             string // onHost if empty, inBox, or why it is not tried outside
	only                string // "look" or "work"
	alone               bool   // it may end the other acts of its cage
}

func (a act) where() string {
	if a.control == "" {
		return onHost
	}
	return a.control
}

// suits reports whether an act is one for a sandbox with this right.
func (a act) suits(write bool) bool { return a.only == "" || (a.only == "work") == write }

// outcome is what came of an act.
type outcome struct {
	ran, worked bool
	text        string
}

// attack carries out the acts in an arena of their own. where is the place of a
// control, or empty for the sandbox.
func attack(t *testing.T, e Escapes, list []act, where string) map[int]outcome {
	t.Helper()
	a := newArena(t, list)
	env, upstream, received := a.serve(t, e.Host)
	b := e.Host
	if where == "" {
		b = e.Broker(t, a, upstream)
	}
	all := map[int]outcome{}
	var together, alone []int
	for i, x := range list {
		switch {
		case where != "" && x.where() != where, where == "" && !x.suits(e.Write):
		case x.alone:
			alone = append(alone, i)
		default:
			together = append(together, i)
		}
	}
	a.try(t, e, b, where, env, received, list, together, all)
	for _, i := range alone {
		a.try(t, e, b, where, env, received, list, []int{i}, all)
	}
	return all
}

// notEnded is the exit code of an act that was ended because it exceeded actLimit.
const notEnded = 124

// actLimit is how long an act may take. What is tried within it must not depend on how
// busy the machine is.
const actLimit = waittest.Limit

// drive runs acts, one after the other, and prints how each ended. It is itself run
// where the acts are to be tried.
func drive(numbers []string) {
	temp := cmp.Or(os.Getenv("TMPDIR"), "/tmp") + "/act-"
	if dir := os.Getenv("A") + "/tmp/"; unix.Access(dir, unix.W_OK) == nil {
		temp = dir
	}
	for _, n := range numbers {
		dir := temp + n
		_ = os.Mkdir(dir, 0o755) // it may be there
		out, err := os.Create(dir + ".out")
		if err != nil || unix.Access(dir, unix.W_OK) != nil {
			fmt.Printf("@ %s 127 no folder for what it writes\n", n)
			continue
		}
		cmd := exec.Command("sh", os.Getenv("KIT")+"/acts/"+n+".sh")
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Getenv("WS"), out, out, &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(os.Environ(), "N="+n, "T="+dir, "D="+os.Getenv("OUT")+"/"+n, "L="+os.Getenv("WS")+"/d/"+n)
		code := 126
		if err = cmd.Start(); err == nil {
			late := time.AfterFunc(actLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			_ = cmd.Wait() // its status says more
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if code = status.ExitStatus(); status.Signaled() {
				code = 128 + int(status.Signal())
			}
			if !late.Stop() {
				code = notEnded
			}
		}
		text := make([]byte, 160)
		k, _ := out.ReadAt(text, max(0, sizeOf(out)-int64(len(text)))) // there may be no output
		fmt.Printf("@ %s %d\n%s\n", n, code, text[:k])
		_ = out.Close() // what was written has been read
	}
}

// sizeOf returns the size of a file.
func sizeOf(f *os.File) int64 {
	n, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0
	}
	return n
}

// try carries out some acts in one program. received waits until the host has received
// what they have sent.
func (a Arena) try(t *testing.T, e Escapes, b sandbox.Broker, where string, env []string, received func(), list []act,
	numbers []int, all map[int]outcome) {
	t.Helper()
	if len(numbers) == 0 {
		return
	}
	before := map[int]string{}
	argv := []string{filepath.Join(a.Kit, "x"), actArg, "drive"}
	for _, i := range numbers {
		argv = append(argv, strconv.Itoa(i))
		before[i] = a.trace(env, list[i], i)
	}
	p := sandbox.Plan{Path: argv[0], Argv: argv, Dir: a.Workspace, Env: env}
	switch where {
	case "":
		p.Rights = &sandbox.Rights{Workspace: a.Workspace, Write: e.Write, Read: []string{a.Kit},
			Hosts: []string{"allowed.test", "loopback.test", "metadata.test"}}
	case onHost:
		p.Env = append(slices.Clone(env), "HTTP_PROXY=http://"+openProxy(t))
	case inBox:
		p.Path, p.Argv = "/usr/bin/unshare", slices.Concat([]string{"unshare", "-Urmpfniu", "--mount-proc"}, argv)
	}
	var out bytes.Buffer
	pr, err := b.Start(t.Context(), p, &out) // each act has a limit, together they have none
	if err != nil {
		if where != inBox {
			t.Fatalf("start: %v", err)
		}
		for _, i := range numbers { // what a user may do in namespaces depends on the machine
			all[i] = outcome{text: err.Error()}
		}
		return
	}
	if _, err := pr.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	received()
	last := -1
	for line := range strings.Lines(out.String()) {
		var i, code int
		if n, _ := fmt.Sscanf(line, "@ %d %d", &i, &code); n == 2 && slices.Contains(numbers, i) {
			last = i
			all[i] = outcome{ran: code != 126 && code != 127, worked: code == 0 && list[i].trace == "",
				text: fmt.Sprintf("exit %d:", code)}
			if code == notEnded { // so it is not known what it would have done
				all[i] = outcome{text: fmt.Sprintf("it did not end within %v:", actLimit)}
			}
		} else if text := strings.TrimSpace(line); text != "" && last >= 0 {
			o := all[last]
			o.text += " " + text
			all[last] = o
		}
	}
	for _, i := range numbers {
		o, ok := all[i]
		switch {
		case !ok && list[i].alone:
			o.ran = true // it ended the driver with it
		case !ok && last < 0 && where == inBox: // the box was not made
			o.text = strings.TrimSpace(out.String())
		case !ok:
			o.text = "the programs that carry out the acts ended before"
		}
		if list[i].trace != "" {
			o.worked = a.trace(env, list[i], i) != before[i]
		}
		if all[i] = o; where == onHost && o.text != "" && !o.ran && !strings.HasPrefix(o.text, "exit ") {
			t.Errorf("outside: %s: %s: %s", list[i].class, list[i].name, o.text)
		}
	}
}

// trace describes the file or folder that an act would change.
func (a Arena) trace(env []string, x act, number int) string {
	if x.trace == "" {
		return ""
	}
	root := os.Expand(x.trace, func(name string) string {
		switch name {
		case "D":
			return filepath.Join(a.Outside, strconv.Itoa(number))
		case "L":
			return filepath.Join(a.Workspace, "d", strconv.Itoa(number))
		}
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	})
	var b strings.Builder
	_ = filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(name)
		if err != nil || statErr != nil {
			fmt.Fprintln(&b, name, "missing")
			return nil
		}
		var content []byte
		if info.Mode().IsRegular() {
			content, _ = os.ReadFile(name) // its mode may forbid it, which shows
		}
		fmt.Fprintln(&b, name, info.Mode(), info.Size(), info.ModTime().UnixNano(), string(content))
		return nil
	})
	return b.String()
}

// newArena makes the files of an arena.
func newArena(t *testing.T, list []act) Arena {
	t.Helper()
	root, err := os.MkdirTemp("", "escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatal(err)
	}
	a := Arena{
		Root:      root,
		Kit:       filepath.Join(root, "kit"),
		Workspace: filepath.Join(root, "ws"),
		Outside:   filepath.Join(root, "outside"),
		Home:      filepath.Join(root, "home"),
		State:     filepath.Join(root, "state"),
	}
	files := map[string]string{
		"tmp/x":                 "",
		"outside/secret":        canary,
		"outside/held":          "",
		"other/notes":           canary,
		"ws/notes":              "notes",
		"ws/.env":               canary,
		"ws/sub/.env":           canary,
		"ws/deep/er/.env.local": canary,
		"ws/keys/server.pem":    canary,
		"ws/id_rsa":             canary,
		"ws/.npmrc":             canary,
		"ws/.aws/credentials":   canary,

		"ws/.git/HEAD":                    "ref: refs/heads/main\n",
		"ws/.git/config":                  "[core]\n\tbare = false\n",
		"ws/.git/hooks/pre-commit.sample": "",
		"ws/.git/objects/x":               "",

		"ws/.git/refs/heads/x":    "",
		"ws/.git/info/attributes": "",
		"ws/bare/.git/HEAD":       "ref: refs/heads/main\n",
		"ws/bare/.git/objects/x":  "",
		"ws/bare/.git/refs/x":     "",

		"ws/lib/.git/config":          "[core]\n",
		"ws/lib/.git/hooks/x.sample":  "",
		"ws/tree/.git":                "gitdir: ../.git/worktrees/tree\n",
		"ws/.vscode/settings.json":    "{}",
		"ws/.husky/pre-commit":        "",
		"ws/.github/workflows/ci.yml": "on: push\n",
		"ws/.mcp.json":                "{}",
		"ws/.gitmodules":              "",
		"ws/script":                   "#!/bin/sh\n",
		"home/.ssh/id_rsa":            canary,
		"home/.bashrc":                "",
		"home/.config/app/token":      canary,
		"home/.bash_history":          canary,

		"home/.netrc":                  canary,
		"home/.docker/config.json":     canary,
		"home/.cargo/credentials.toml": canary,
		"home/.cargo/config.toml":      "",
		"home/go/bin/tool":             "#!/bin/sh\n",

		"home/.local/bin/tool":  "#!/bin/sh\n",
		"home/.m2/settings.xml": canary,
		"state/chela.json":      canary,
		"state/chela.db":        canary,
		"state/credentials/key": canary,
	}
	for i, x := range list {
		files[fmt.Sprintf("kit/acts/%d.sh", i)] = x.script
		files[fmt.Sprintf("outside/%d/old", i)] = "old"
		files[fmt.Sprintf("ws/d/%d/old", i)] = "old"
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	err = errors.Join(err, os.Chmod(root, 0o755), os.Symlink(a.Outside, filepath.Join(a.Workspace, "out")),
		os.Symlink("../outside/secret", filepath.Join(a.Workspace, "plain")),
		os.Symlink("sub/.env", filepath.Join(a.Workspace, "config-link")),
		copyFile(filepath.Join(a.Kit, "x"), "/proc/self/exe"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// copyFile makes an executable copy.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// serve starts what the programs of the host offer: listeners, which greet with
// the canary, sockets for datagrams, and a process. It returns the environment of
// the acts, the address that allowed.test stands for, and a function that waits until
// all datagrams that were sent have been received.
func (a Arena) serve(t *testing.T, host sandbox.Broker) (env []string, upstream string, received func()) {
	t.Helper()
	abstract := "escape-" + filepath.Base(a.Root)
	env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + a.Home, "A=" + a.Root, "WS=" + a.Workspace, "OUT=" + a.Outside,
		"STATE=" + a.State, "KIT=" + a.Kit,
		"X=" + filepath.Join(a.Kit, "x") + " " + actArg, "CANARY=" + canary, "ABS=@" + abstract,
	}
	greet := func(network, address, name string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Logf("no listener on %s %s: %v", network, address, err)
			return ""
		}
		answer(t, l, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n"+name+" "+canary+"\n") // the other side may be gone
			_ = c.(interface{ CloseWrite() error }).CloseWrite()                     // as above
			_ = c.SetReadDeadline(time.Now().Add(actLimit))
			_, _ = io.Copy(io.Discard, c) // as above
		})
		return l.Addr().String()
	}
	port := func(addr string) string { _, p, _ := net.SplitHostPort(addr); return p }
	env = append(env, "PORT="+port(greet("tcp4", "127.0.0.1:0", "host")), "PORT6="+port(greet("tcp6", "[::1]:0", "host")))
	upstream = greet("tcp4", "127.0.0.1:0", "upstream")
	greet("unix", "@"+abstract, "abstract")
	greet("unix", filepath.Join(a.Workspace, "s.sock"), "workspace")
	greet("unix", filepath.Join(a.Outside, "s.sock"), "outside")
	greet("unix", filepath.Join(a.State, "gateway.sock"), "gateway")
	const last = "the last datagram"
	var waits []func()
	received = func() {
		for _, wait := range waits {
			wait()
		}
	}
	datagram := func(network, address, file string) string {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			t.Logf("no socket on %s %s: %v", network, address, err)
			return ""
		}
		t.Cleanup(func() { _ = c.Close() })
		own, err := net.Dial(network, c.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = own.Close() })
		lasts := make(chan struct{})
		waits = append(waits, func() { // what was sent before was received before
			if _, err := io.WriteString(own, last); err != nil {
				t.Fatal(err)
			}
			waittest.For(t, "the last datagram of "+file, lasts)
		})
		go func() {
			b := make([]byte, 1500)
			for {
				n, _, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				if string(b[:n]) == last {
					lasts <- struct{}{}
					continue
				}
				_ = os.WriteFile(filepath.Join(a.Outside, file), b[:n], 0o644) // what the act's trace shows
			}
		}()
		return c.LocalAddr().String()
	}
	env = append(env, "UDP="+port(datagram("udp4", "127.0.0.1:0", "udp")))
	datagram("unixgram", filepath.Join(a.Workspace, "d.sock"), "dgram-ws")
	datagram("unixgram", filepath.Join(a.Workspace, "pair.sock"), "dgram-pair")
	datagram("unixgram", filepath.Join(a.Outside, "d.sock"), "dgram-out")
	datagram("unixgram", "@"+abstract+"-d", "dgram-abs")
	ctx, cancel := context.WithCancel(context.Background())
	victim, err := host.Start(ctx, sandbox.Plan{
		Path: "/bin/sh", Argv: []string{"sh", "-c", `exec 7>>"$0/held" 8<"$0/secret"; exec sleep 600`, a.Outside},
		Dir: a.Outside, Env: []string{"PATH=/usr/bin:/bin", "SECRET=" + canary},
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		victim.Kill()
		_, _ = victim.Wait()
	})
	return append(env, "VICTIM="+strconv.Itoa(victim.PID())), upstream, received
}
