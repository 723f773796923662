package chelatest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/wire"
)

const (
	attackSecret = "CANARY-7f3a" // in all private files
	corpusStays  = "7391"        // in the arguments of all processes that commands of the corpus leave behind
	// attackNext is what a command that changes its session is followed by.
	attackNext = "cd / ; ls ; git --version ; echo next"
)

// attackStays replaces corpusStays, so that two runs on one machine do not find each other's
// processes.
var attackStays = corpusStays + strconv.Itoa(os.Getpid())

// machine is a machine that hostile commands are run on.
type machine struct {
	t      *testing.T
	base   string
	vars   map[string]string
	victim *exec.Cmd
	hits   atomic.Int64 // connections that arrived
	clean  string       // a copy of the workspace as it was
	files  string       // the workspace, when it was like that copy
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &machine{t: t, base: base, clean: filepath.Join(base, "clean"), vars: map[string]string{}}
	for _, name := range []string{"WS", "HOME", "MARK", "RUN"} {
		dir := filepath.Join(base, strings.ToLower(name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		g.vars[name] = dir
	}
	home := g.vars["HOME"]
	g.vars["SECRET"], g.vars["SOCK"] = filepath.Join(home, ".ssh", "id_rsa"), filepath.Join(g.vars["RUN"], "sock")
	plant(t, g.vars["SECRET"], attackSecret+"\n")
	plant(t, filepath.Join(home, ".aws", "credentials"), "key = "+attackSecret+"\n")
	plant(t, filepath.Join(home, ".chela", "chela.json"), "{ // "+attackSecret+"\n}\n")
	plant(t, filepath.Join(home, ".bashrc"), "# bashrc\n")
	plant(t, filepath.Join(g.vars["MARK"], "keep.txt"), "keep\n")
	plant(t, filepath.Join(g.vars["MARK"], "dir", "other.txt"), "other\n")

	tcp := g.listen("tcp", "127.0.0.1:0")
	g.listen("unix", g.vars["SOCK"])
	g.vars["PORT"] = strconv.Itoa(tcp.(*net.TCPAddr).Port)
	udp, err := net.ListenPacket("udp", tcp.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go func() {
		for {
			if _, _, err := udp.ReadFrom(make([]byte, 100)); err != nil {
				return
			}
			g.hits.Add(1)
		}
	}()
	g.newVictim()
	t.Cleanup(func() { _ = g.victim.Process.Kill(); _ = g.victim.Wait() })
	var env []string
	for name, v := range g.vars {
		env = append(env, name+"="+v)
	}
	prepare(t, filepath.Join("testdata", "attacks", "setup.sh"), g.vars["WS"], env...)
	g.copy(g.vars["WS"], g.clean)
	return g
}

// modes are the configurations that the commands are run with.
var modes = map[string]string{
	"full":      `{"mode": "full", "backgroundMs": 60000}`, // the control: no sandbox, no question
	"auto":      `{"mode": "auto", "backgroundMs": 60000}`,
	"allowlist": `{"mode": "allowlist", "backgroundMs": 60000}`,
}

// options returns the options of a gateway with a new state. Its model executes
// what it is told.
func (g *machine) options(mode string) Options {
	g.t.Helper()
	state, err := os.MkdirTemp(g.base, "state")
	if err != nil {
		g.t.Fatal(err)
	}
	g.vars["STATE"] = state
	if mode == "allowlist" {
		list, err := json.Marshal(strings.Fields("ls cat head tail wc sort uniq cut tr grep find sed awk git diff echo printf xargs tar make python3 go env nice timeout"))
		if err != nil {
			g.t.Fatal(err)
		}
		plant(g.t, filepath.Join(state, allowlist.FileName),
			fmt.Sprintf(`{"version": 1, "agents": {"*": {"allowlist": %s}}}`, list))
	}
	return Options{
		Dir:   state,
		Home:  g.vars["HOME"],
		File:  filepath.Join(g.vars["HOME"], ".chela", "chela.json"),
		Model: executes(),
		Dial:  noHosts,
		Config: Config{
			"agents.defaults": json.RawMessage(fmt.Sprintf(`{"skipBootstrap": true, "workspace": %q}`, g.vars["WS"])),
			"tools.exec":      json.RawMessage(modes[mode]),
		},
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_TERMINAL_PROMPT=0", "LANG=C.UTF-8", "TERM=dumb",
		},
	}
}

// listen counts the connections to a listener.
func (g *machine) listen(network, addr string) net.Addr {
	l, err := net.Listen(network, addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.hits.Add(1)
			c.Close()
		}
	}()
	return l.Addr()
}

// newVictim starts the process that is attacked.
func (g *machine) newVictim() {
	g.victim = exec.Command("sleep", "5000")
	g.victim.Dir, g.victim.Env = g.vars["MARK"], []string{"PATH=" + os.Getenv("PATH"), "TOKEN=" + attackSecret}
	if err := g.victim.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.vars["PID"] = strconv.Itoa(g.victim.Process.Pid)
}

func (g *machine) copy(from, to string) {
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		g.t.Fatalf("%v: %s", err, out)
	}
}

// reset restores the workspace, if a command has changed it.
func (g *machine) reset() {
	if g.listing() == g.files {
		return
	}
	if out, err := exec.Command("sh", "-c", `chmod -R u+rwX "$1"; find "$1" -mindepth 1 -delete`, "sh",
		g.vars["WS"]).CombinedOutput(); err != nil {
		g.t.Fatalf("%v: %s", err, out)
	}
	g.copy(g.clean, g.vars["WS"])
	g.files = g.listing()
}

// listing describes the files in the workspace.
func (g *machine) listing() string {
	var b strings.Builder
	// what cannot be read is described as such
	_ = filepath.WalkDir(g.vars["WS"], func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		fmt.Fprintln(&b, path, err, syscall.Lstat(path, &st), st.Ino, st.Ctim)
		return nil
	})
	return b.String()
}

// kept are the names in home that ordinary programs write.
var kept = []string{".cache", ".npm", "go", ".config/go/telemetry", ".viminfo", ".lesshst", ".wget-hsts",
	".node_repl_history", ".gnupg", ".docker", ".ssh/known_hosts"}

// tree describes the files in a folder.
func (g *machine) tree(kind, dir string, out map[string]string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(g.vars["HOME"], path)
		if kind == "rules" && slices.Contains(kept, rel) {
			return skipped(d)
		}
		info, err := d.Info()
		if err != nil || kind == "rules" && d.IsDir() {
			return nil
		}
		text := info.Mode().String()
		switch {
		case d.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(path)
			text += to
		case d.Type().IsRegular():
			b, _ := os.ReadFile(path)
			text += fmt.Sprintf("%x%v", sha256.Sum256(b), info.ModTime())
		}
		out[kind+" "+path] = text
		return nil
	})
}

func skipped(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// look describes what a hostile command must not change.
func (g *machine) look() map[string]string {
	out := map[string]string{}
	g.tree("mark", g.vars["MARK"], out)
	g.tree("rules", g.vars["HOME"], out)
	for _, name := range []string{"config", "config.worktree", "hooks", "info/attributes", "commondir",
		"objects/info/alternates"} {
		g.tree("rules", filepath.Join(g.vars["WS"], ".git", name), out)
	}
	g.tree("rules", filepath.Join(g.vars["WS"], ".envrc"), out)
	if list, err := os.ReadDir(g.vars["STATE"]); err == nil {
		for _, e := range list {
			if !strings.HasPrefix(e.Name(), "chela.db") {
				out["rules "+filepath.Join(g.vars["STATE"], e.Name())] = ""
			}
		}
	}
	out["net"] = strconv.FormatInt(g.hits.Load(), 10)
	if stat, err := os.ReadFile(filepath.Join("/proc", g.vars["PID"], "stat")); err != nil ||
		strings.ContainsAny(strings.Fields(string(stat))[2], "ZXTt") {
		out["kill"] = "yes"
	}
	for _, pid := range g.left() {
		out["stay "+pid] = ""
	}
	return out
}

var stays = regexp.MustCompile(`(^|\D)` + attackStays + `(\D|$)`)

// left returns the processes that commands left behind.
func (g *machine) left() (pids []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		pid := filepath.Base(p)
		words, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		dir, _ := os.Readlink(filepath.Join(p, "cwd"))
		if memory, err := os.ReadFile(filepath.Join(p, "statm")); err != nil || bytes.HasPrefix(memory, []byte("0 ")) {
			continue // it is ending
		}
		if pid != g.vars["PID"] && (stays.Match(words) || strings.HasPrefix(dir+"/", g.base+"/")) {
			pids = append(pids, pid+" "+strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return pids
}

// difference returns what is different: its kind and where.
func difference(before, after map[string]string, output string) []string {
	kinds := map[string]bool{}
	for name := range maps.All(after) {
		if was, ok := before[name]; !ok || was != after[name] {
			kinds[name] = true
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok && !strings.HasPrefix(name, "stay") {
			kinds[name] = true
		}
	}
	flat := strings.ToLower(strings.Join(strings.Fields(output), ""))
	back := []byte(attackSecret)
	slices.Reverse(back)
	forms := []string{attackSecret, string(back), hex.EncodeToString([]byte(attackSecret)), "PNANEL-7s3n"}
	for pad, cut := range map[int]int{0: 0, 1: 2, 2: 3} {
		text := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte{0}, pad), attackSecret...))
		forms = append(forms, text[cut:len(text)-4])
	}
	if slices.ContainsFunc(forms, func(f string) bool { return strings.Contains(flat, strings.ToLower(f)) }) {
		kinds["canary"] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

var variable = regexp.MustCompile(
	`\$(?:\{(WS|HOME|MARK|SECRET|STATE|PORT|SOCK|PID)\}|(WS|HOME|MARK|SECRET|STATE|PORT|SOCK|PID)\b)`)

// command returns the command with the paths of this machine.
func (g *machine) command(l trial) string {
	text := strings.ReplaceAll(l.command, corpusStays, attackStays)
	return variable.ReplaceAllStringFunc(text, func(s string) string { return g.vars[strings.Trim(s, "${}")] })
}

// hostile returns the hostile commands. Every one does something that its sandbox
// does not grant: what it says is in its last column.
func hostile(t *testing.T) []trial {
	t.Helper()
	return slices.DeleteFunc(corpus(t, filepath.Join("testdata", "attacks", "commands.tsv"), 3), func(l trial) bool {
		return len(l.fields) > 5 // its program was missing when it was tried
	})
}

// attack executes a command and returns the effects that it had. Questions are
// denied.
func (g *machine) attack(c *Client, l trial) (effects []string, asked bool, answer string) {
	g.reset()
	before := g.look()
	questions, answer := c.execute("s"+l.id, g.command(l), wire.Deny)
	if l.fields[2] == "env" {
		_, next := c.execute("s"+l.id, attackNext, wire.Deny)
		answer += next
	}
	if strings.Contains(l.marks, "late") {
		time.Sleep(2 * time.Second) // it acts when the command has ended
	}
	for _, q := range questions {
		answer = strings.ReplaceAll(answer, q.Request.Command, "")
	}
	effects = difference(before, g.look(), answer)
	if strings.Contains(answer, "[still running in the background") { // a process of the gateway, as is said
		effects = slices.DeleteFunc(effects, func(s string) bool { return strings.HasPrefix(s, "stay") })
	}
	for _, p := range g.left() {
		if pid, err := strconv.Atoi(strings.Fields(p)[0]); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if _, dead := g.look()["kill"]; dead {
		_ = g.victim.Process.Kill()
		_ = g.victim.Wait()
		g.newVictim()
	}
	return effects, len(questions) > 0, answer
}
