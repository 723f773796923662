package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	startTime = 30 * time.Second // until a browser answers
	stopTime  = 5 * time.Second  // to end by itself
	stopGrace = 2 * time.Second  // between TERM and KILL
	maxStderr = 16 << 10
)

// own are the switches that Chela sets, and that extraArgs cannot change.
var own = [...]string{
	"--remote-debugging-pipe", "--remote-debugging-port", "--remote-debugging-address", "--remote-allow-origins",
	"--user-data-dir", "--proxy-server", "--proxy-bypass-list", "--proxy-pac-url", "--proxy-auto-detect",
	"--no-proxy-server", "--host-resolver-rules", "--host-rules", "--force-webrtc-ip-handling-policy",
	"--webrtc-ip-handling-policy", "--enable-quic", "--disable-quic", "--origin-to-force-quic-on",
	"--disable-web-security",
	"--allow-file-access-from-files", "--headless", "--no-sandbox", "--single-process",
}

// reserved returns the switch of an argument that Chela sets; "": the argument is allowed.
func reserved(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	switch {
	case !strings.HasPrefix(arg, "-"):
		return fmt.Sprintf("%q, which is no switch,", arg)
	case slices.Contains(own[:], "--"+strings.TrimLeft(name, "-")):
		return name
	}
	return ""
}

// arguments returns the arguments of the browser.
func arguments(c *Config, data, proxy string, headless bool) []string {
	args := slices.Clone(c.ExtraArgs)
	args = append(args,
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--disable-default-apps", "--disable-sync", "--disable-breakpad",
		"--disable-crash-reporter", "--disable-dev-shm-usage", "--disable-domain-reliability", "--metrics-recording-only",
		"--no-pings", "--password-store=basic", "--use-mock-keychain", "--hide-crash-restore-bubble",
		"--disable-features=Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints", "--window-size=1280,900",
		"--remote-debugging-pipe", "--user-data-dir="+data,
		"--proxy-server=http://"+proxy, "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--disable-quic",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
	)
	if headless {
		args = append(args, "--headless")
	}
	if c.NoSandbox {
		args = append(args, "--no-sandbox")
	}
	return append(args, "about:blank")
}

// headless reports whether the browser has no window.
func headless(set *bool, environ []string) bool {
	switch {
	case set != nil:
		return *set
	case runtime.GOOS != "linux":
		return false
	}
	return sandbox.Variable(environ, "DISPLAY") == "" && sandbox.Variable(environ, "WAYLAND_DISPLAY") == ""
}

// desktop are the variables that a browser needs to show a window, besides those that
// every program gets.
var desktop = [...]string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE",
	"DBUS_SESSION_BUS_ADDRESS", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "LD_LIBRARY_PATH"}

// problem returns why a browser cannot be started with a configuration here; nil: it can.
func problem(c *Config) error {
	switch {
	case runtime.GOOS == "windows":
		return errors.New("the browser is not supported on Windows yet; in WSL it is")
	case runtime.GOOS == "linux" && os.Geteuid() == 0 && !c.NoSandbox:
		return errors.New("as root, Chromium refuses to run with its sandbox. Run Chela as another user, or accept pages without a sandbox: chela config set browser.noSandbox true")
	}
	return nil
}

// process is a browser that runs.
type process struct {
	conn     *conn
	proxy    *proxy
	headless bool
	path     string
	pid      int
	version  string

	lock   *flock.Flock
	kill   context.CancelFunc // ends the process
	ended  chan struct{}      // closed when all its processes have ended
	errors *beginning
}

// beginning keeps the first bytes that are written to it. It is written to before the
// process ends and read afterwards.
type beginning struct{ b []byte }

func (w *beginning) Write(p []byte) (int, error) {
	w.b = append(w.b, p[:min(len(p), maxStderr-len(w.b))]...)
	return len(p), nil
}

// last returns the last line that says something.
func (w *beginning) last() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(w.b), "\uFFFD")), "\n")
	return humanize.Truncate(lines[len(lines)-1], 300)
}

// start starts a browser for a profile with a folder.
func (b *Browsers) start(ctx context.Context, c *Config, name string, p Profile, show *bool) (_ *process, err error) {
	if err := problem(c); err != nil {
		return nil, err
	}
	path, err := Find(p.Executable, b.o.Environ)
	if err != nil {
		return nil, err
	}
	data := b.folder(name, p)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("browser profile %s: %w", name, err)
	}
	lock := flock.New(filepath.Join(data, "chela.lock"), flock.SetPermissions(0o600))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("browser profile %s: %w", name, err)
	case !ok:
		return nil, fmt.Errorf("browser profile %s is in use by another gateway", name)
	}
	defer func() {
		if err != nil {
			_ = lock.Close() // nothing was done under it
		}
	}()
	base := filepath.Join(b.o.State, "browser", name)
	for _, pattern := range [...]string{"upload-*", "download-*"} { // copies that were left
		old, _ := filepath.Glob(filepath.Join(base, pattern)) // a correct pattern
		for _, dir := range old {
			_ = os.RemoveAll(dir) // it is tried again at the next start
		}
	}
	if err := freeFolder(ctx, data, name); err != nil {
		return nil, err
	}
	gate, err := newProxy(c)
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		gate.close()
		return nil, fmt.Errorf("browser: %w", err)
	}
	defer in.Close()
	show = cmp.Or(show, p.Headless)
	pr := &process{
		conn:     newConn(out),
		proxy:    gate,
		headless: headless(show, b.o.Environ),
		path:     path,
		lock:     lock,
		ended:    make(chan struct{}),
		errors:   &beginning{},
	}
	env := map[string]string{"BREAKPAD_DUMP_LOCATION": filepath.Join(data, "Crash Reports")} // else in the home folder
	for _, v := range desktop {
		if value := sandbox.Variable(b.o.Environ, v); value != "" {
			env[v] = value
		}
	}
	// The pipes are descriptors 3 and 4 of the browser. Its parent is a shell, which
	// makes them of the standard ones.
	argv := append([]string{"sh", "-c", `exec "$0" "$@" 3<&0 4>&1 </dev/null >&2`, path},
		arguments(c, data, gate.address(), pr.headless)...)
	running, kill := context.WithCancel(context.Background())
	pr.kill = kill
	child, err := b.o.Broker.Start(running, sandbox.Plan{
		Path:   "/bin/sh",
		Argv:   argv,
		Dir:    data,
		Env:    sandbox.Environment(b.o.Environ, env),
		Stdin:  in,
		Stderr: pr.errors,
		Grace:  stopGrace,
	}, pr.conn)
	if err != nil {
		kill()
		pr.conn.close(err)
		gate.close()
		return nil, fmt.Errorf("browser: %w", err)
	}
	pr.pid = child.PID()
	go pr.wait(child)
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the browser did not answer within %v", startTime))
	defer cancel()
	var v struct {
		Product string `json:"product"`
	}
	if err := pr.conn.call(ctx, "", "Browser.getVersion", nil, &v); err != nil {
		kill()
		<-pr.ended
		if line := pr.errors.last(); line != "" {
			err = fmt.Errorf("%w; it said: %s", err, line)
		}
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	pr.version = v.Product
	return pr, nil
}

// wait waits for the end of the process and all that belongs to it.
func (p *process) wait(child sandbox.Process) {
	exit, err := child.Wait()
	switch {
	case err != nil:
	case exit.Signal != "":
		err = fmt.Errorf("the browser was ended by the signal %s", exit.Signal)
	default:
		err = fmt.Errorf("the browser ended with exit code %d", exit.Code)
	}
	p.kill() // releases the context
	p.conn.close(err)
	p.proxy.close()
	_ = p.lock.Close() // the next start tries again
	close(p.ended)
}

// stop ends the browser: it may save its profile, and is killed if that takes long.
func (p *process) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = p.conn.call(ctx, "", "Browser.close", nil, nil) // it may have ended
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	p.kill()
	<-p.ended
}

// freeFolder removes what a browser left that did not end properly. It returns an error if a
// browser runs with the folder.
func freeFolder(ctx context.Context, data, name string) error {
	link := filepath.Join(data, "SingletonLock")
	for {
		owner, err := os.Readlink(link)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		i := strings.LastIndexByte(owner, '-')
		host, _ := os.Hostname()
		pid, convErr := strconv.Atoi(owner[i+1:])
		if err != nil || convErr != nil || owner[:max(i, 0)] != host || !runs(pid, data) {
			for _, n := range [...]string{"SingletonLock", "SingletonSocket", "SingletonCookie"} {
				if err := os.Remove(filepath.Join(data, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("browser profile %s: %w", name, err)
				}
			}
			return nil
		}
		// The browser of a gateway that was killed ends when it notices.
		wait, cancel := context.WithTimeout(ctx, stopTime)
		for wait.Err() == nil && runs(pid, data) {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-wait.Done():
			}
		}
		cancel()
		if runs(pid, data) {
			return fmt.Errorf("browser profile %s is in use by another browser (process %d); close it first", name, pid)
		}
	}
}

// runs reports whether a process exists that is a browser with the folder. Where that cannot
// be found out, every process counts as one.
func runs(pid int, data string) bool {
	p, err := os.FindProcess(pid)
	if err != nil || !alive(p) {
		return false
	}
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || strings.Contains(string(argv), data)
}
