package native_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// work is a cage for the commands of a test.
type work struct {
	t      *testing.T
	broker *native.Broker
	home   string
	layers string
	rights sandbox.Rights
}

func newWork(t *testing.T, o native.Options) *work {
	t.Helper()
	if os.Getenv(noNamespaces) == "" {
		sandboxtest.NeedsNamespaces(t)
	}
	w := &work{t: t, home: t.TempDir(), rights: sandbox.Rights{Workspace: t.TempDir(), Write: true}}
	o.Home, w.layers = w.home, t.TempDir()
	o.Layers, o.Watch = w.layers, 1
	w.broker = native.New(o)
	t.Cleanup(w.broker.Close)
	return w
}

// write writes a file of the host.
func (w *work) write(dir, name, text string) {
	w.t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a shell script and returns its output and how it ended.
func (w *work) run(script string) (string, sandbox.Exit) {
	w.t.Helper()
	var out bytes.Buffer
	p, err := w.broker.Start(w.t.Context(), sandbox.Plan{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: w.rights.Workspace, Rights: &w.rights,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home},
	}, &out)
	if err != nil {
		w.t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		w.t.Fatal(err)
	}
	return out.String(), exit
}

// expect runs a script that succeeds and checks its output.
func (w *work) expect(script, want string) {
	w.t.Helper()
	if got, exit := w.run(script); got != want || exit.Code != 0 {
		w.t.Errorf("%s: %q, exit code %d; want %q", script, got, exit.Code, want)
	}
}

// fails runs a script that fails.
func (w *work) fails(script string) {
	w.t.Helper()
	if got, exit := w.run(script); exit.Code == 0 {
		w.t.Errorf("%s succeeded: %q", script, got)
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	if l := w.broker.Level(t.Context()); !l.Complete {
		t.Errorf("%+v", l)
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	ws := w.rights.Workspace
	w.write(ws, "a.txt", "one\n")
	w.write(ws, ".env", "KEY=1\n")
	w.write(ws, "sub/id_rsa", "key\n")
	w.write(ws, ".git/config", "[core]\n")
	w.write(ws, ".git/hooks/pre-commit", "#!/bin/sh\n")
	w.expect("cat a.txt; echo two > b.txt; cat b.txt", "one\ntwo\n")
	if b, err := os.ReadFile(filepath.Join(ws, "b.txt")); err != nil || string(b) != "two\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
	for _, script := range []string{
		"cat .env", "cat sub/id_rsa", "mv .env x", "rm -f .env", "ln .env x", "echo x >> .git/config",
		"rm .git/hooks/pre-commit", "echo x > .git/hooks/post-commit", "mv .git/hooks .git/h",
	} {
		w.fails(script)
	}
	w.fails("mv .git g")
	// as git init does
	w.expect("mkdir new; mkdir new/.git; echo '[core]' > new/.git/config; cat new/.git/config", "[core]\n")
	w.broker.Settle()
	outside(t, ws, "mv new other; echo >> other/.git/config")
	w.fails("echo x >> other/.git/config")
	w.fails("mv other/.git x")
	w.expect("mv other new; cat new/.git/config", "[core]\n\n")
	w.fails("echo x >> new/.git/config")
	t.Run("E1 public certificates of a package are not private, keys are", func(t *testing.T) {
		const cert = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
		w.write(ws, ".venv/lib/site-packages/certifi/cacert.pem", cert)
		w.write(ws, "env2/lib/site-packages/x/server.pem",
			cert+"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n")
		w.broker.Forget()
		w.expect("cat .venv/lib/site-packages/certifi/cacert.pem && rm -r .venv && test ! -e .venv && echo gone",
			cert+"gone\n")
		w.fails("rm -r env2")
		w.fails("cat env2/lib/site-packages/x/server.pem")
	})
	t.Run("a private file that appears while a cage is ready", func(t *testing.T) {
		w.broker.Settle()
		w.write(ws, "deep/er/.env", "KEY=2\n")
		w.write(ws, "sub/server.pem", "key\n")
		w.fails("cat deep/er/.env")
		w.fails("cat sub/server.pem")
	})
	t.Run("a private file in a folder in place of another one", func(t *testing.T) {
		w.expect("mkdir -p p/q; echo x > p/q/x", "")
		w.broker.Settle()
		w.expect("mv p r; mkdir -p p/q; rm -r r", "")
		w.broker.Settle()
		w.expect("cat b.txt", "two\n")
		w.broker.Settle()
		w.write(ws, "p/q/.env", "KEY=5\n")
		w.fails("cat p/q/.env")
	})
	t.Run("a private file that was restored with its folder's time", func(t *testing.T) {
		w.write(ws, "old/.env", "KEY=3\n")
		long := time.Now().Add(-time.Hour)
		restore := func() {
			file := filepath.Join(ws, "old", ".env")
			err := errors.Join(os.Remove(file), os.WriteFile(file, []byte("KEY=4\n"), 0o600),
				os.Chtimes(filepath.Dir(file), long, long))
			if err != nil {
				t.Fatal(err)
			}
		}
		restore()
		w.fails("cat old/.env")
		w.broker.Settle()
		restore()
		w.fails("cat old/.env")
	})
	t.Run("read only", func(t *testing.T) {
		w.rights.Write = false
		w.expect("cat a.txt", "one\n")
		w.fails("echo x > c.txt")
		w.fails("rm a.txt")
	})
}

func TestHome(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.home, "letter.txt", "private\n")
	w.write(w.home, "go/pkg/mod/m.txt", "module\n")
	w.write(w.home, ".cargo/credentials.toml", "token\n")
	w.write(w.home, ".gem/deploy.key", "key\n")
	w.write(w.home, ".yarn/berry/.npmrc", "token\n")
	w.write(w.home, ".cargo/bin/tool", "tool\n")
	w.write(w.home, ".gitconfig", "[user]\n\tname = Anna\n[github]\n\ttoken = canary\n")
	w.fails("cat ~/letter.txt")
	w.fails("cat ~/.cargo/credentials.toml")
	w.fails("cat ~/.gem/deploy.key")
	w.fails("cat ~/.yarn/berry/.npmrc")
	w.expect("cat ~/.cargo/bin/tool ~/go/pkg/mod/m.txt ~/.gitconfig", "tool\nmodule\n[user]\n\tname = Anna\n")
	w.expect("echo changed > ~/go/pkg/mod/m.txt; echo new > ~/go/new", "")
	w.expect("cat ~/go/pkg/mod/m.txt ~/go/new", "changed\nnew\n") // it is kept for the workspace
	if b, err := os.ReadFile(filepath.Join(w.home, "go/pkg/mod/m.txt")); err != nil || string(b) != "module\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
	w.expect("mkdir ~/.cache/go-build/x; echo kept > ~/.cache/go-build/x/a", "") // home has no such cache
	w.expect("cat ~/.cache/go-build/x/a", "kept\n")
	if _, err := os.Lstat(filepath.Join(w.home, ".cache")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside: %v", err)
	}
	w.rights.Workspace = t.TempDir()
	w.expect("cat ~/go/pkg/mod/m.txt", "module\n") // not in another workspace
	w.fails("cat ~/.cache/go-build/x/a")
}

// A workspace can be the home folder, and a person can allow to change it. No folder
// is made there.
func TestWorkspaceAtHome(t *testing.T) {
	t.Parallel()
	for _, write := range []bool{true, false} {
		w := newWork(t, native.Options{})
		w.rights.Workspace, w.rights.Write = w.home, write
		w.expect("ls -A", "")
		w.rights.Workspace, w.rights.Change = t.TempDir(), []string{w.home}
		w.expect("ls -A ~", "")
		if list, err := os.ReadDir(w.home); err != nil || len(list) > 0 {
			t.Errorf("in home: %v, %v", list, err)
		}
	}
}

// A workspace can be in the folder of a toolchain.
func TestWorkspaceInToolchain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"go", "go/src/x"} {
		w := newWork(t, native.Options{})
		w.rights.Workspace = filepath.Join(w.home, name)
		w.write(w.rights.Workspace, ".env", "canary\n")
		w.write(w.rights.Workspace, ".git/config", "[core]\n")
		w.write(w.home, "go/pkg/mod/m.txt", "module\n")
		w.write(w.home, ".cargo/bin/tool", "tool\n")
		w.fails("grep canary .env")
		w.fails("echo x >> .git/config")
		w.expect("echo two > b.txt; cat b.txt ~/go/pkg/mod/m.txt ~/.cargo/bin/tool", "two\nmodule\ntool\n")
		if b, err := os.ReadFile(filepath.Join(w.rights.Workspace, "b.txt")); err != nil || string(b) != "two\n" {
			t.Errorf("outside: %q, %v", b, err)
		}
		w.rights.Write = false
		w.fails("echo x > b.txt")
		w.fails("grep canary .env")
	}
}

// A workspace can be in the memory that people use as a disk.
func TestWorkspaceInMemory(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "chela-*")
	if err != nil {
		t.Skip("needs a folder in /dev/shm: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, write := range []bool{true, false} {
		w := newWork(t, native.Options{})
		w.rights.Workspace, w.rights.Write = filepath.Join(dir, "work"), write
		w.write(w.rights.Workspace, "a.txt", "one\n")
		w.write(dir, "beside.txt", "canary\n")
		w.expect("cat a.txt", "one\n")
		w.fails("cat ../beside.txt")
		if write {
			w.expect("echo two > a.txt; cat a.txt", "two\n")
		} else {
			w.fails("echo three > a.txt")
		}
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	w := newWork(t, native.Options{})
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(w.rights.Workspace, "host.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const python = "PATH=/usr/bin:/usr/local/bin python3 -c 'import socket as s\n"
	w.expect(python+
		`a = s.socket(s.AF_UNIX); a.bind("/tmp/x"); a.listen(); b = s.socket(s.AF_UNIX); b.connect("/tmp/x"); print("ok")'`,
		"ok\n")
	w.expect(python+`print(s.if_nameindex()[0][1])'`, "lo\n")
	w.expect(python+`s.socketpair(); print("ok")'`, "ok\n")
	w.fails(python + `s.socket(s.AF_UNIX).connect("host.sock")'`) // a program of the host listens there
	w.fails(python + `s.socket(s.AF_NETLINK, s.SOCK_RAW, 15)'`)
	w.fails(python + `s.socket(s.AF_PACKET, s.SOCK_RAW)'`)
	w.fails(python + `s.socket(s.AF_VSOCK, s.SOCK_STREAM)'`)
	const pair = python + `s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); print("ok")'`
	w.fails(pair) // it could send to the sockets in the workspace
	w.rights.Write = false
	w.fails(python + `s.socket(s.AF_UNIX)'`)
	w.fails(pair)
	w.expect(python+`s.socketpair(); print("ok")'`, "ok\n")
}

func TestHosts(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "curl")
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Write([]byte("hello from " + r.Host))
	}))
	defer site.Close()
	var asked []string
	w := newWork(t, native.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		asked = append(asked, addr)
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(site.URL, "http://"))
	}})
	w.rights.Hosts = []string{"example.org", "*.example.com", "port.example.net:8080"}
	for _, url := range []string{"http://example.org/", "http://a.example.com/x", "http://port.example.net:8080/"} {
		if out, exit := w.run("curl -sS " + url); !strings.HasPrefix(out, "hello from ") ||
			exit.Code != 0 || exit.Refused != nil {
			t.Errorf("%s: %q, %+v", url, out, exit)
		}
	}
	w.expect("curl -sS --socks5-hostname 127.0.0.1:3128 --noproxy '' http://example.org/", "hello from example.org")
	if want := []string{"example.org:80", "a.example.com:80", "port.example.net:8080",
		"example.org:80"}; !slices.Equal(asked, want) {
		t.Errorf("dialed %q, want %q", asked, want)
	}
	asked = nil
	for _, tt := range []struct{ url, refused string }{
		{"http://example.net/", "net:example.net"}, {"http://example.com/", "net:example.com"},
		{"http://example.org:81/", "net:example.org:81"},
		{"http://xexample.org/", "net:xexample.org"}, {"http://example.org.evil.net/", "net:example.org.evil.net"},
		{"http://port.example.net/", "net:port.example.net"},
		{"http://169.254.169.254/", "net:169.254.169.254"}, {site.URL, "net:" + strings.TrimPrefix(site.URL, "http://")},
	} {
		if out, exit := w.run("curl -sS --fail --noproxy '' " + tt.url); exit.Code == 0 ||
			!slices.Equal(exit.Refused, []string{tt.refused}) {
			t.Errorf("%s: %q, %+v, want refused %s", tt.url, out, exit, tt.refused)
		}
	}
	if _, exit := w.run(`curl -s "http://a.test/[1-20]" http://z.test/`); !slices.Equal(exit.Refused,
		[]string{"net:a.test", "net:z.test"}) {
		t.Errorf("one host many times, and another: refused %q", exit.Refused)
	}
	if _, exit := w.run(`curl -s "http://h[01-20].test/"`); len(exit.Refused) != 16 {
		t.Errorf("20 hosts: refused %q", exit.Refused)
	}
	if len(asked) > 0 {
		t.Errorf("dialed %q", asked)
	}
	for name, ask := range map[string]string{
		"a control character": `\x05\x01\x00\x05\x01\x00\x03\x0aevil\x1b[2Jok\x01\xbb`,
		"a blank":             `\x05\x01\x00\x05\x01\x00\x03\x09a allowed\x01\xbb`,
		"no name":             `\x05\x01\x00\x05\x01\x00\x03\x00\x01\xbb`,

		"text with other letters": `\x05\x01\x00\x05\x01\x00\x03\x06\xe2\x80\xaeabc\x01\xbb`,
		"255 bytes":               `\x05\x01\x00\x05\x01\x00\x03\xff` + strings.Repeat("a", 255) + `\x01\xbb`,

		"port 0":       `\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x00`,
		"another form": `CONNECT a%20b:443 HTTP/1.1\r\n\r\n`,

		"a port with a sign":     `CONNECT a.test:+443 HTTP/1.1\r\nHost: a.test:+443\r\n\r\n`,
		"an address with a zone": `CONNECT [fe80::1%25evil]:443 HTTP/1.1\r\n\r\n`,
	} {
		_, exit := w.run(`PATH=/usr/bin:/bin bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "` + ask +
			`" >&3; timeout 1 cat <&3 >/dev/null'; true`)
		if len(exit.Refused) > 0 {
			t.Errorf("%s: refused %q", name, exit.Refused)
		}
	}
	if _, exit := w.run(`PATH=/usr/bin:/bin bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "\x05\x01\x00\x05\x01\x00\x03\x06b.test\x01\xbb" >&3; head -c 12 <&3 >/dev/null'`); !slices.Equal(exit.Refused, []string{"net:b.test"}) {
		t.Errorf("refused %q", exit.Refused)
	}
	if len(asked) > 0 {
		t.Errorf("dialed %q", asked)
	}
	w.fails("curl -sS --noproxy '*' " + site.URL) // the host's loopback is not the cage's
}

// A launcher that is killed while it builds the cage does not leave anybody
// waiting for it.
func TestLauncherDies(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	died := 0
	for i := 0; i < 60 && died < 10; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
		if err := w.broker.Build(ctx, w.rights); err != nil {
			died++
		}
		cancel()
	}
	if died == 0 {
		t.Error("no launcher died")
	}
	w.expect("echo ok", "ok\n")
}

// TestNever puts files of the gateway where a program could find them.
func TestNever(t *testing.T) {
	t.Parallel()
	t.Run("E1 what is never shown is hidden in the workspace, and nothing takes its place", func(t *testing.T) {
		t.Parallel()
		ws := t.TempDir()
		at := func(names ...string) (out []string) {
			for _, name := range names {
				out = append(out, filepath.Join(ws, name))
			}
			return out
		}
		never := at("a/b/chela.json", "a/b/chela.json.bak", "a/state", "link")
		w := newWork(t, native.Options{Never: func() []string { return never }})
		w.rights.Workspace = ws
		for _, name := range []string{"a/b/chela.json", "a/state/db", "late.json"} {
			w.write(ws, name, "private")
		}
		if err := os.Symlink("a/b", filepath.Join(ws, "link")); err != nil {
			t.Fatal(err)
		}
		w.write(ws, "a/b/plain", "plain\n")
		w.expect("cat a/b/plain", "plain\n")
		for _, script := range []string{
			"cat a/b/chela.json | grep .", "cat link/chela.json", "cat a/state/db", "ls a/state | grep .", "grep -r private a",
			"cat a/*/*.json | grep .", "echo x >a/b/chela.json", "echo x >a/state/new",
			"mv a/b/chela.json x", "rm -f a/b/chela.json", "ln a/b/chela.json x", "rm link", "ln -sfn /tmp link", "mv link x",
			"mv a x", "mv a/b x", "mv a/state x", "rm -rf a && mkdir a",
		} {
			w.fails(script)
		}
		w.broker.Settle()
		w.write(ws, "a/b/chela.json.bak", "private") // after the next cage was built
		w.fails("cat a/b/chela.json.bak")
		w.broker.Settle()
		if err := os.WriteFile(filepath.Join(ws, "new"), []byte("private"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(ws, "new"), never[0]); err != nil { // as the gateway writes it
			t.Fatal(err)
		}
		w.fails("cat a/b/chela.json")
		w.expect("cat late.json", "private")
		never = append(never, at("late.json")...) // the configuration includes it now
		w.fails("cat late.json")
		for _, name := range at("a/b/chela.json", "a/state/db", "late.json", "link/chela.json") {
			if b, err := os.ReadFile(name); err != nil || string(b) != "private" {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		w.rights.Read = never[:1]
		if err := w.broker.Build(t.Context(), w.rights); err == nil {
			t.Error("a right to the configuration was given")
		}
	})
	t.Run("E1 a workspace in a folder that is never shown is shown alone, also where the system is", func(t *testing.T) {
		t.Parallel()
		state, err := os.MkdirTemp("/opt", "chela-test-")
		if err != nil {
			t.Skip("needs a folder in /opt: ", err)
		}
		defer os.RemoveAll(state)
		conf := filepath.Join(state, "conf.json")
		w := newWork(t, native.Options{Never: func() []string { return []string{state, "/etc/hostname"} }})
		w.rights.Workspace = filepath.Join(state, "ws")
		w.write(state, "conf.json", "private")
		w.write(w.rights.Workspace, "plain", "plain")
		w.expect("cat "+state+"/ws/plain", "plain")
		w.expect("ls "+state, "ws\n")
		w.fails("cat " + conf)
		w.fails("cat /etc/hostname")
		w.rights.Workspace = t.TempDir()
		w.fails("cat " + conf)
		w.fails("cat " + state + "/ws/plain")
	})
}
