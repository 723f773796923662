package browser_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
)

// holdEnv makes the test program a gateway that holds a browser open; see hold.
const holdEnv = "CHELA_TEST_HOLD_BROWSER"

// hold starts a browser in a state directory, says so, and waits to be killed.
func hold(state string) {
	files, err := media.Open(filepath.Join(state, media.Dir), 0)
	if err == nil {
		b := browser.New(browser.Options{
			Log:     slog.New(slog.DiscardHandler),
			State:   state,
			Broker:  host.Broker{},
			Environ: os.Environ(),
			Files:   files,
		})
		c, _ := browser.ParseConfig([]byte(settings("")))
		b.Use(c)
		_, err = b.Do(context.Background(), browser.Input{Args: browser.Args{Action: "open", URL: "about:blank"}})
	}
	fmt.Println("held", err)
	select {}
}

// own returns a session with browsers of its own.
func own(t *testing.T, section string) *session {
	t.Helper()
	w := open(t)
	state := t.TempDir()
	b, files := newBrowsers(t, state, section)
	t.Cleanup(func() {
		b.Close(context.Background())
		files.Close()
	})
	return &session{&shared{
		browsers: b,
		files:    files,
		state:    state,
		site:     w.site,
		tool:     newTool(t, b, section),
		dir:      w.dir,
	}, t, "agent:main:main"}
}

// processes returns how many processes have a folder in their arguments.
func processes(t *testing.T, dir string) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		needtest.Missing(t, "/proc")
	}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if argv, err := os.ReadFile(p); err == nil && strings.Contains(string(argv), dir) {
			n++
		}
	}
	return n
}

func TestLife(t *testing.T) {
	t.Parallel()
	t.Run("BR-08 the processes end with the gateway", func(t *testing.T) {
		s := own(t, settings(""))
		s.open("/cart")
		if processes(t, s.state) == 0 {
			t.Fatal("no process")
		}
		info, err := os.Stat(filepath.Join(s.state, "browser", "chela", "user-data"))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
		s.browsers.Close(t.Context())
		if n := processes(t, s.state); n > 0 {
			t.Errorf("%d processes are left", n)
		}
		s.fails(`{"action":"open","url":"about:blank"}`, "the gateway is stopping")
	})
	t.Run("BR-08 the processes end with a gateway that is killed", func(t *testing.T) {
		open(t)
		state := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), holdEnv+"="+state)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "held <nil>\n" {
			t.Errorf("%q, %v", line, err)
		}
		if processes(t, state) == 0 {
			t.Error("no process")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out) // the browser may hold it
		_ = cmd.Wait()                  // it was killed
		waittest.Until(t, "the end of all processes", func() bool { return processes(t, state) == 0 })
	})
	t.Run("a crash is told, and the next page starts the browser again", func(t *testing.T) {
		s := own(t, settings(""))
		s.open("/shop")
		out, err := s.browsers.Do(t.Context(), browser.Input{Args: browser.Args{Action: "status"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(out.Details["pid"].(int))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the crash", func() bool {
			_, err := s.try(`{"action":"snapshot"}`)
			return err != nil &&
				strings.Contains(err.Error(), "the browser has ended (the browser was ended by the signal SIGKILL)")
		})
		has(t, s.open("/cart"), "The browser was started again", "1 open tab", "It is empty.")
		hasNot(t, s.call(`{"action":"snapshot"}`), "started again")
	})
	t.Run("an unused browser is stopped", func(t *testing.T) {
		s := own(t, settings(`,"tabCleanup":{"idleMinutes":0.005}`))
		s.open("/cart")
		waittest.Until(t, "the end of the browser", func() bool { return processes(t, s.state) == 0 })
		s.fails(`{"action":"snapshot"}`, "no tab is open")
	})
	t.Run("other settings take effect at once", func(t *testing.T) {
		s := own(t, settings(""))
		s.open("/cart")
		c, err := browser.ParseConfig([]byte(`{"noSandbox":true,"headless":true}`))
		if err != nil {
			t.Fatal(err)
		}
		s.browsers.Use(c)
		s.fails(`{"action":"open","url":"`+s.site.URL+`/cart"}`, "127.0.0.1 is not allowed")
	})
	t.Run("two gateways do not share a profile", func(t *testing.T) {
		s := own(t, settings(""))
		s.open("/cart")
		b, files := newBrowsers(t, s.state, settings(""))
		defer files.Close()
		defer b.Close(t.Context())
		_, err := b.Do(t.Context(), browser.Input{Args: browser.Args{Action: "open", URL: "about:blank"}})
		if err == nil || !strings.Contains(err.Error(), "browser profile chela is in use by another gateway") {
			t.Error(err)
		}
	})
	t.Run("locks of a browser that is gone", func(t *testing.T) {
		s := own(t, settings(""))
		data := filepath.Join(s.state, "browser", "chela", "user-data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("another-host-1", filepath.Join(data, "SingletonLock")); err != nil {
			t.Fatal(err)
		}
		has(t, s.open("/cart"), "It is empty.")
		if _, err := s.browsers.Do(t.Context(), browser.Input{Args: browser.Args{Action: "resetprofile"}}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(data); err == nil || processes(t, s.state) > 0 {
			t.Error("the profile was not put aside")
		}
		s.fails(`{"action":"resetprofile"}`, "only the person")
	})
	t.Run("BR-04 there is no browser", func(t *testing.T) {
		s := own(t, settings(`,"executablePath":"/no/such/chromium"`))
		s.fails(`{"action":"open","url":"about:blank"}`, "browser.executablePath: /no/such/chromium is not a program")
		if _, err := browser.Find("", []string{"PATH=/no/such/folder"}); err != nil {
			for _, want := range []string{"chromium", "apt install chromium", "chela config set browser.executablePath"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %s", err, want)
				}
			}
		}
		s.call(`{"action":"status"}`)
	})
	t.Run("a browser that does not start says why", func(t *testing.T) {
		dir := t.TempDir()
		program := filepath.Join(dir, "chromium")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho cannot open the thing >&2\nexit 3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := own(t, settings(`,"executablePath":"`+program+`"`))
		s.fails(`{"action":"open","url":"about:blank"}`, "exit code 3; it said: cannot open the thing")
	})
}

func TestUDP(t *testing.T) {
	t.Parallel()
	s := open(t).session(t)
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		buf := make([]byte, 100)
		if n, from, err := l.ReadFrom(buf); err == nil {
			got <- fmt.Sprint(n, " bytes from ", from)
		}
	}()
	s.open("/cart")
	// The page asks the browser to find its addresses with the help of the listener.
	text := s.call(fmt.Sprintf(`{"action":"act","kind":"evaluate","fn":"async () => { const c = new RTCPeerConnection({iceServers: [{urls: 'stun:%s'}]}); c.createDataChannel('x'); const done = new Promise(ok => c.onicegatheringstatechange = () => c.iceGatheringState === 'complete' && ok('gathered')); await c.setLocalDescription(await c.createOffer()); return done }"}`, l.LocalAddr()))
	has(t, text, "gathered")
	select {
	case m := <-got:
		t.Errorf("the browser sent UDP past the proxy: %s", m)
	default:
	}
}
