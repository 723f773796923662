//go:build linux || darwin

package native

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// text is a string in a profile. Other atoms are of type string.
type profileText string

// readProfile reads a profile strictly: lists, names, and strings with the
// escapes \\ and \" only.
func readProfile(s string) (list []any, err error) {
	stack := [][]any{nil}
	for i := 0; i < len(s); {
		top := len(stack) - 1
		switch c := s[i]; {
		case strings.ContainsRune(" \t\n", rune(c)):
			i++
		case c == '(':
			stack = append(stack, nil)
			i++
		case c == ')':
			if top == 0 {
				return nil, fmt.Errorf("at %d: unexpected )", i)
			}
			stack[top-1] = append(stack[top-1], stack[top])
			stack = stack[:top]
			i++
		case c == '"' || strings.HasPrefix(s[i:], `#"`):
			raw := c == '#'
			if raw {
				i++
			}
			var b strings.Builder
			for i++; ; i++ {
				if i >= len(s) {
					return nil, fmt.Errorf("a string does not end")
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && !raw {
					if i++; i >= len(s) || s[i] != '\\' && s[i] != '"' {
						return nil, fmt.Errorf("at %d: unknown escape", i)
					}
				}
				b.WriteByte(s[i])
			}
			i++
			stack[top] = append(stack[top], profileText(b.String()))
		default:
			j := i
			for j < len(s) && !strings.ContainsRune(" \t\n()\"", rune(s[j])) {
				j++
			}
			if strings.Trim(s[i:j], "abcdefghijklmnopqrstuvwxyz-*01") != "" {
				return nil, fmt.Errorf("unknown name %q", s[i:j])
			}
			stack[top] = append(stack[top], s[i:j])
			i = j
		}
	}
	if len(stack) != 1 {
		return nil, fmt.Errorf("%d lists do not end", len(stack)-1)
	}
	return stack[0], nil
}

// rules is a profile that was read.
type rules struct {
	t    *testing.T
	list []any
}

func readRules(t *testing.T, text string) rules {
	t.Helper()
	list, err := readProfile(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, r := range list {
		l, ok := r.([]any)
		if !ok || len(l) < 2 || !slices.Contains([]any{"version", "allow", "deny"}, l[0]) {
			t.Fatalf("not a rule: %v", r)
		}
	}
	if l := list[1].([]any); len(l) != 2 || l[0] != "deny" || l[1] != "default" {
		t.Fatalf("the profile does not begin with (deny default): %v", l)
	}
	return rules{t, list}
}

// allows reports whether the last rule about an operation on a path allows it.
func (r rules) allows(op, path string) bool {
	allowed := false
	for _, rule := range r.list[2:] {
		l := rule.([]any)
		about, filtered, hit := false, false, false
		for _, x := range l[1:] {
			switch x := x.(type) {
			case string:
				prefix, wild := strings.CutSuffix(x, "*")
				about = about || x == op || wild && strings.HasPrefix(op, prefix)
			case []any:
				filtered = true
				if arg, ok := x[len(x)-1].(profileText); ok && len(x) == 2 {
					to := string(arg)
					hit = hit || x[0] == "literal" && path == to || x[0] == "subpath" && (path == to || strings.HasPrefix(path, to+"/"))
				}
			}
		}
		if about && (hit || !filtered) {
			allowed = l[0] == "allow"
		}
	}
	return allowed
}

// check compares what is allowed with want: the letters of r (read), w (write, also
// what does not exist) and m (remove or rename) for each path.
func (r rules) check(want map[string]string) {
	r.t.Helper()
	for path, letters := range want {
		got := ""
		for _, op := range []string{"r file-read-data", "w file-write-data", "m file-write-unlink"} {
			if letter, op, _ := strings.Cut(op, " "); r.allows(op, path) {
				got += letter
			}
		}
		if got != letters {
			r.t.Errorf("%s: %q, want %q", path, got, letters)
		}
	}
}

// macWorkspace makes a home folder with a workspace.
func macWorkspace(t *testing.T) (home, ws string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(home, `code "x" \y`)
	for _, name := range []string{"a/b/.env", "a/plain", ".git/config", ".git/hooks/x", ".VSCode/settings.json", "sub/.GIT/config", "shown/.env"} {
		name = filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, ws
}

func TestProfile(t *testing.T) {
	t.Parallel()
	home, ws := macWorkspace(t)
	never := filepath.Join(ws, "a", "state")
	read := func(t *testing.T, r sandbox.Rights, port int) rules {
		t.Helper()
		found, err := findPrivate(t.Context(), r.Workspace, "", []string{never}, false)
		if err != nil {
			t.Fatal(err)
		}
		return readRules(t, profile(macLayout(home, r, []string{"/usr/bin"}, &found, "/private/var/folders/x/chela-1"), port))
	}
	everywhere := map[string]string{
		"/usr/bin/env": "r", "/System/Library/x": "r", "/private/etc/hosts": "r", "/private/etc/ssh/key": "", "/private/etc/master.passwd": "", "/opt/homebrew/var/db": "",
		"/System/Volumes/Data/Users/x": "", "/private/tmp/x": "", "/Users/other/x": "", "/Library/Keychains/x": "", home: "", home + "/.ssh/id": "", home + "/Library/x": "",
		home + "/.cargo/bin/x": "r", home + "/.cargo/credentials.toml": "", home + "/go/pkg/x": "r", "/dev/null": "rwm", "/dev/disk0": "", "/dev/ttys001": "", "/": "r",
		"/private/var/folders/x/chela-1": "rw", "/private/var/folders/x/chela-1/new": "rwm", "/private/var/folders/x/chela-2": "",
	}
	t.Run("a command that changes things", func(t *testing.T) {
		r := read(t, sandbox.Rights{Workspace: ws, Write: true, Read: []string{ws + "/shown/.env", "/srv/data"}, Change: []string{"/srv/out"}}, 4711)
		r.check(everywhere)
		r.check(map[string]string{
			ws: "rw", ws + "/new": "rwm", ws + "/a/plain": "rwm",
			ws + "/a": "rw", ws + "/a/b": "rw", ws + "/a/b/.env": "", ws + "/a/b/new": "rwm", never: "", never + "/db": "", // the folders above cannot be renamed
			ws + "/.git": "rw", ws + "/.git/config": "r", ws + "/.git/hooks/new": "r", ws + "/.git/hooks": "r", ws + "/.git/index": "rwm",
			ws + "/sub/.GIT/config": "r", ws + "/sub/.GIT": "rw", ws + "/sub": "rw",
			ws + "/.VSCode/settings.json": "r", ws + "/.vscode/tasks.json": "r", ws + "/.mcp.json": "r", ws + "/.github/workflows/x": "r", ws + "/.github/x": "rwm", ws + "/.github": "rw",
			ws + "/shown/.env": "r", "/srv/data/x": "r", "/srv/out": "rw", "/srv/out/x": "rwm", "/srv/other": "",
		})
		if !slices.ContainsFunc(r.list, func(x any) bool {
			return cmp.Equal(x, []any{"allow", "network-outbound", []any{"remote", "ip", profileText("localhost:4711")}})
		}) {
			t.Error("the proxy cannot be reached")
		}
		for _, dir := range []string{home, filepath.Dir(home), "/srv", "/private/var/folders"} {
			if !r.allows("file-read-metadata", dir) || r.allows("file-read-data", dir) {
				t.Errorf("%s: it is not certain that it exists, or it can be listed", dir)
			}
		}
	})
	t.Run("a command that only looks", func(t *testing.T) {
		r := read(t, sandbox.Rights{Workspace: ws}, 0)
		r.check(everywhere)
		r.check(map[string]string{ws: "r", ws + "/new": "r", ws + "/a/plain": "r", ws + "/a/b/.env": "", ws + "/shown/.env": "", ws + "/.git/config": "r", "/srv/data/x": ""})
	})
	t.Run("only these operations are allowed", func(t *testing.T) {
		ops := map[string]bool{}
		for _, x := range read(t, sandbox.Rights{Workspace: ws, Write: true}, 0).list[2:] {
			l := x.([]any)
			for _, op := range l[1:] {
				if op, ok := op.(string); ok && l[0] == "allow" {
					ops[op] = true
				}
			}
		}
		want := []string{
			"file-ioctl", "file-map-executable", "file-read*", "file-read-metadata", "file-write*", "file-write-data", "ipc-posix-sem", "mach-lookup",
			"process-exec", "process-fork", "process-info*", "pseudo-tty", "signal", "sysctl-read",
		}
		if diff := cmp.Diff(want, slices.Sorted(func(yield func(string) bool) {
			for op := range ops {
				if !yield(op) {
					return
				}
			}
		})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"/plain", `/with "quotes"`, `/back\slash`, `\`, `"`, "/new\nline)", "/tab\t;x", `/#"raw"`, "/\xff\xfe", `/\"`, "/é/)(allow default)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := readProfile("(literal " + quote(path) + ")")
		if want := []any{[]any{"literal", profileText(path)}}; err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", path, got, err)
		}
	})
}

// fakeSandboxExec returns the path of a program that takes the arguments of
// sandbox-exec, runs a script with the command as arguments, and keeps the profile.
func fakeSandboxExec(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sandbox-exec")
	script = "#!/bin/sh\n[ \"$1\" = -p ] || exit 64\nprintf %s \"$2\" > \"$0.profile\"\nshift 2\n" + script + "\n"
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// without starts programs without one of the connections that the trial needs.
type without struct{ host.Broker }

func (w without) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	p.Argv = slices.Clone(p.Argv)
	if p.Argv[0] == "bash" {
		p.Argv[len(p.Argv)-1] = "1" // a port on which nothing listens
	}
	return w.Broker.Start(ctx, p, out)
}

func TestSeatbeltLevel(t *testing.T) {
	t.Parallel()
	held := `for n in 1 2 3 4 5 6; do echo "held $n"; done`
	for _, c := range []struct{ name, script, level, reason string }{
		{"nothing is confined", `exec "$@"`, "none", "a program could see files outside, change files outside, read private files of the workspace, change the workspace, signal other processes, connect to other programs of this machine"},
		{"one thing is open", held + `| sed 's/held 3/open 3/'`, "none", "a program could 3"},
		{"the profile is refused", `echo "unbound variable" >&2; exit 65`, "none", "unbound variable"},
		{"the trial ends early", `echo "held 1"`, "none", "ended early"},
		{"all is confined", held, "seatbelt", "has not been able to verify"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSeatbelt(Options{Host: host.Broker{}, Layers: t.TempDir()}, fakeSandboxExec(t, c.script))
			if l := s.Level(t.Context()); l.Name != c.level || l.Complete != (c.level != "none") || !strings.Contains(l.Reason, c.reason) {
				t.Errorf("%+v", l)
			}
		})
	}
	t.Run("the trial shows nothing, because acts fail without the sandbox too", func(t *testing.T) {
		t.Parallel()
		s := newSeatbelt(Options{Host: without{}, Layers: t.TempDir()}, fakeSandboxExec(t, held))
		if l := s.Level(t.Context()); l.Name != "none" || !strings.Contains(l.Reason, "shows nothing") {
			t.Errorf("%+v", l)
		}
	})
	t.Run("there is no sandbox-exec", func(t *testing.T) {
		t.Parallel()
		s := newSeatbelt(Options{Host: host.Broker{}, Layers: t.TempDir()}, "/usr/bin/no-such-program")
		if l := s.Level(t.Context()); l.Name != "none" || l.Complete || l.Reason == "" {
			t.Errorf("%+v", l)
		}
	})
}

func TestSeatbeltStart(t *testing.T) {
	t.Parallel()
	home, ws := macWorkspace(t)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = me\n[credential]\n\thelper = evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dialed := make(chan string, 1)
	s := newSeatbelt(Options{Host: host.Broker{}, Home: home, Layers: t.TempDir(), Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialed <- addr
		a, b := net.Pipe()
		_ = b.Close()
		return a, nil
	}}, fakeSandboxExec(t, `exec "$@"`))
	run := func(script string, w bool, vars ...string) (string, sandbox.Exit) {
		t.Helper()
		var out bytes.Buffer
		pr, err := s.Start(t.Context(), sandbox.Plan{
			Path: "/bin/bash", Argv: []string{"bash", "-c", script}, Dir: ws, Env: append([]string{"PATH=/usr/bin:/bin", "HOME=" + home}, vars...),
			Rights: &sandbox.Rights{Workspace: ws, Write: w, Hosts: []string{"allowed.test"}},
		}, &out)
		if err != nil {
			t.Fatal(err)
		}
		exit, err := pr.Wait()
		if err != nil || exit.Code != 0 {
			t.Fatalf("%s: %+v, %v: %s", script, exit, err, &out)
		}
		return out.String(), exit
	}
	out, _ := run(`cat "$GIT_CONFIG_GLOBAL"; echo "$TMPDIR"; touch "$TMPDIR/x" "$GOCACHE.x"; echo "$HTTPS_PROXY"`, false, "TMPDIR=/elsewhere", "HTTPS_PROXY=other")
	lines := strings.Split(out, "\n")
	if len(lines) != 5 || lines[0] != "[user]" || strings.Contains(out, "evil") || strings.Contains(out, "other") {
		t.Fatalf("got %q", out)
	}
	tmp, proxy := lines[2], lines[3]
	if _, err := os.Stat(tmp); tmp == "/elsewhere" || !os.IsNotExist(err) {
		t.Errorf("the folder %s was not removed: %v", tmp, err)
	}
	text, err := os.ReadFile(s.program + ".profile")
	if err != nil {
		t.Fatal(err)
	}
	r := readRules(t, string(text))
	r.check(map[string]string{tmp + "/x": "rwm", ws + "/a/plain": "r", ws + "/a/b/.env": ""})
	if _, port, _ := net.SplitHostPort(proxy[strings.Index(proxy, "@")+1:]); !strings.Contains(string(text), `(remote ip "localhost:`+port+`")`) {
		t.Errorf("the profile does not allow the proxy %s", proxy)
	}

	// A request over the proxy, as HTTP and as SOCKS, with and without its password.
	const ask = `
		at=${http_proxy#http://}; secret=${at%@*}; at=${at#*@}
		web() { exec 3<>/dev/tcp/${at%:*}/${at#*:}; printf 'CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n%s\r\n' "$1" "$2" >&3; head -1 <&3; exec 3>&-; }
		socks() { exec 3<>/dev/tcp/${at%:*}/${at#*:}; printf "$1" >&3; od -An -tx1 <&3; exec 3>&-; }
		password=${secret#*:}
	`
	out, exit := run(ask+`web refused.test; web refused.test "Proxy-Authorization: Basic $(printf chela:wrong | base64)
"; web refused.test "Proxy-Authorization: Basic $(printf %s "$secret" | base64 -w0 2>/dev/null || printf %s "$secret" | base64)
"
		socks '\5\1\0'; socks "\\5\\1\\2\\1\\5chela\\5wrong\\5\\1\\0\\3\\4vile\\1\\273"; socks "\\5\\1\\2\\1\\5chela\\x1a$password\\5\\1\\0\\3\\4evil\\1\\273"`, false)
	want := "407 Proxy Authentication Required, 407 Proxy Authentication Required, 403 Forbidden, 05 ff, 05 02 01 01, 05 02 01 00 05 02 00 01 00 00 00 00 00 00"
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.TrimSpace(strings.TrimPrefix(line, "HTTP/1.1 ")))
	}
	if g := strings.Join(got, ", "); g != want || !slices.Equal(exit.Refused, []string{"net:evil", "net:refused.test"}) {
		t.Errorf("got %s\nwant %s\nrefused %q", g, want, exit.Refused)
	}
	run(ask+`web allowed.test "Proxy-Authorization: Basic $(printf %s "$secret" | base64 -w0 2>/dev/null || printf %s "$secret" | base64)
"`, false)
	if addr := <-dialed; addr != "allowed.test:443" {
		t.Errorf("connected to %s", addr)
	}

	_, exit = run("mkdir .idea new && git init -q new 2>/dev/null || mkdir -p new/.git/hooks; mkdir -p new/.git/hooks; echo evil > new/.git/hooks/post-checkout", true)
	if want := []string{".idea", "new/.git/hooks/post-checkout"}; !slices.Equal(exit.Blocked, want) {
		t.Errorf("blocked %q, want %q", exit.Blocked, want)
	}
}
