package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/methods"
	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

func init() { startLimit = waittest.Limit }

// home returns a state directory with a configuration.
func home(t *testing.T, text string) cli.Start {
	t.Helper()
	dir := t.TempDir()
	s := cli.Start{
		State: dir, Config: filepath.Join(dir, "chela.json"), LastGood: filepath.Join(dir, "last-good"),
		Log: slog.New(slog.DiscardHandler),
	}
	write(t, s.Config, text)
	return s
}

const offlineConf = `{agents: {defaults: {model: "offline/assistant", skipBootstrap: true}}}`

func begun(t *testing.T, s cli.Start) cli.Engine {
	t.Helper()
	e, err := standardBuild.start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	return e
}

func health(t *testing.T, e cli.Engine) {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Dial: e.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(t.Context(), wire.MethodHealth, nil, nil); err != nil {
		t.Error(err)
	}
}

// closer closes an engine.
type closer struct {
	e interface{ Close(context.Context) error }
}

func (c closer) Close() error { return c.e.Close(context.Background()) }

func TestStart(t *testing.T) {
	t.Run("a second start attaches to the first engine, and starts an engine when that has ended", func(t *testing.T) {
		s := home(t, offlineConf)
		first, second := begun(t, s), begun(t, s)
		if _, ok := first.(*Engine); !ok {
			t.Errorf("the first is a %T", first)
		}
		if _, ok := second.(*attached); !ok {
			t.Errorf("the second is a %T", second)
		}
		health(t, second)
		if err := second.Close(t.Context()); err != nil {
			t.Error(err)
		}
		health(t, first) // it was not the second's to close
		if err := first.Close(t.Context()); err != nil {
			t.Error(err)
		}
		third := begun(t, s)
		if _, ok := third.(*Engine); !ok {
			t.Errorf("the third is a %T", third)
		}
		health(t, third)
	})
	t.Run("LOOP-14 an owner that does not answer is reported", func(t *testing.T) {
		s := home(t, offlineConf)
		l, err := statedir.Own(s.State)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = standardBuild.start(ctx, s)
		if err == nil || !strings.Contains(err.Error(), " owns "+s.State+" and does not answer") ||
			chela.HintOf(err) != "chela doctor" {
			t.Errorf("%v (%s)", err, chela.HintOf(err))
		}
	})
	t.Run("a child of a killed owner that has its lock and socket for a moment is waited for", func(t *testing.T) {
		for name, start := range map[string]func(cli.Start) (io.Closer, error){
			"an engine": func(s cli.Start) (io.Closer, error) {
				e, err := standardBuild.start(t.Context(), s)
				if _, ok := e.(*attached); ok {
					err = errors.New("it attached to the child")
				}
				return closer{e}, err
			},
			"a gateway": func(s cli.Start) (io.Closer, error) {
				e, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: -1})
				return closer{e}, err
			},
			"work without an engine": func(s cli.Start) (io.Closer, error) {
				return statedir.OwnIdle(waittest.Context(t), s.State)
			},
		} {
			s := home(t, offlineConf)
			l, err := statedir.Own(s.State)
			if err != nil {
				t.Fatal(err)
			}
			socket, err := statedir.Listen(s.State)
			if err != nil {
				t.Fatal(err)
			}
			go func() { // the child runs its program after it was asked
				conn, err := socket.Accept()
				if err == nil {
					_, _ = conn.Read(make([]byte, 1))
					conn.Close()
				}
				socket.Close()
				l.Unlock()
			}()
			e, err := start(s)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := e.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("an owner that answers is not waited for", func(t *testing.T) {
		s := home(t, offlineConf)
		begun(t, s)
		_, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: -1})
		if err == nil || !strings.Contains(err.Error(), "already serves "+s.State) {
			t.Errorf("a gateway: %v", err)
		}
		if _, err := statedir.OwnIdle(waittest.Context(t), s.State); !errors.Is(err, statedir.ErrOwned) {
			t.Errorf("work without an engine: %v", err)
		}
	})
	t.Run("attaching says why it failed, unless nobody listens", func(t *testing.T) {
		s := home(t, offlineConf)
		const none = "no gateway is running"
		if _, err := Attach(t.Context(), s); err == nil || err.Error() != none && runtime.GOOS != "windows" ||
			chela.HintOf(err) != "chela gateway run" {
			t.Errorf("%v (%s)", err, chela.HintOf(err))
		}
		l, err := statedir.Listen(s.State)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // it accepts connections and never answers
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := Attach(ctx, s); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), none+": ") {
			t.Errorf("an owner that does not answer: %v", err)
		}
		l.Close()
		begun(t, s)
		e, err := Attach(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		health(t, e)
	})
	t.Run("GW-08 a broken configuration is replaced by the last good one and reported", func(t *testing.T) {
		s := home(t, offlineConf)
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, s.Config, `{agents: {`)
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		e, ok := begun(t, s).(*Engine)
		if !ok {
			t.Fatalf("%T", e)
		}
		if ref, why := e.now().Models.Default(); ref != model.Offline || why != "configured" {
			t.Errorf("%s (%s)", ref, why)
		}
		if !strings.Contains(log.String(), "configuration is broken") || strings.Count(log.String(), s.Config) != 1 {
			t.Errorf("log: %s", log.String())
		}
	})
	t.Run("an emptied configuration drops no restriction, and the way back is said", func(t *testing.T) {
		s := home(t, strings.Replace(offlineConf, "{agents", `{tools: {deny: ["exec"]}, agents`, 1))
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(s.LastGood)
		if err != nil {
			t.Fatal(err)
		}
		write(t, s.Config, "")
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		e := begun(t, s).(*Engine)
		if !slices.Equal(e.now().Settings.Tools.Deny, []string{"exec"}) {
			t.Errorf("denied are %q", e.now().Settings.Tools.Deny)
		}
		if said := log.String(); !strings.Contains(said, "the file is empty") || !strings.Contains(said, "cp "+s.LastGood) {
			t.Errorf("log: %s", said)
		}
		if now, err := os.ReadFile(s.LastGood); err != nil || !bytes.Equal(now, good) {
			t.Errorf("the last good configuration is now %s, %v", now, err)
		}
	})
	t.Run("a start says in a line what it allows more than the one before", func(t *testing.T) {
		s := home(t, strings.Replace(offlineConf, "{agents", `{tools: {deny: ["exec"], exec: {mode: "deny"}}, agents`, 1))
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, s.Config, offlineConf)
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		const want = `msg="the configuration allows more than before"`
		if said := log.String(); strings.Count(said, want) != 1 ||
			!strings.Contains(said, `keys="tools.deny, tools.exec.mode"`) {
			t.Errorf("log: %s", said)
		}
		log.Reset()
		if begun(t, s); strings.Contains(log.String(), want) {
			t.Errorf("the next start says it again: %s", log.String())
		}
	})
	t.Run("a start with an unusable configuration leaves nothing behind", func(t *testing.T) {
		s := home(t, `{agents: {defaults: {userTimezone: "Mars/Base"}}}`)
		if _, err := standardBuild.start(t.Context(), s); err == nil {
			t.Fatal("it started")
		}
		l, err := statedir.Own(s.State)
		if err != nil {
			t.Fatalf("the lock is still held: %v", err)
		}
		l.Unlock()
	})
	t.Run("the socket of a dead process is replaced", func(t *testing.T) {
		s := home(t, offlineConf)
		path, err := statedir.Socket(s.State)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, "")
		begun(t, s)
		health(t, begun(t, s))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv("CHELA_TEST_HERE", "process")
	t.Setenv("CHELA_TEST_EMPTY", "")
	env := settings.Environ(conf{
		"env": `{"CHELA_TEST_BARE": "bare", "CHELA_TEST_BOTH": "bare", "shellEnv": {"enabled": true}, "vars": {}}`,
		"env.vars": `{"CHELA_TEST_HERE": "file", "CHELA_TEST_EMPTY": "file", "CHELA_TEST_ONLY": "file", "CHELA_TEST_BOTH": "file",
			"CHELA_TEST_NUMBER": 5}`,
	})
	for name, want := range map[string]string{
		"CHELA_TEST_HERE": "process", "CHELA_TEST_EMPTY": "", "CHELA_TEST_ONLY": "file", "CHELA_TEST_BARE": "bare",
		"CHELA_TEST_BOTH": "file", "CHELA_TEST_NUMBER": "", "shellEnv": "", "CHELA_TEST_GONE": "",
	} {
		if got := env(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := settings.Environ(conf{})("CHELA_TEST_HERE"); got != "process" {
		t.Errorf("without configuration %q", got)
	}
}

func TestSaveKey(t *testing.T) {
	s := cli.Start{State: filepath.Join(t.TempDir(), "new")}
	if err := saveKey(s, "openai", "", "sk-canary\n"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.State, "credentials", "openai.key")
	for path, want := range map[string]os.FileMode{s.State: 0o700, filepath.Dir(file): 0o700, file: 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode().Perm(), err)
		}
	}
	for _, name := range []string{"", "../openai", "a/b", `a\b`, "a.b"} {
		if err := saveKey(s, name, "", "sk-canary"); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("provider %q: %v", name, err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Dir(file), "a file")
	if err := saveKey(s, "openai", "", "sk-canary"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
}

// TestFallback starts a gateway with a configuration that cannot be used.
func TestFallback(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, busy, _ := net.SplitHostPort(taken.Addr().String())
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, free, _ := net.SplitHostPort(other.Addr().String())
	other.Close()
	conf := func(port string) string {
		return strings.Replace(offlineConf, "{agents", "{gateway: {port: "+port+"}, agents", 1)
	}
	s := home(t, conf(free))
	serve := func(l cli.Listen) (*Engine, error) {
		t.Helper()
		g, err := standardBuild.serve(t.Context(), s, l)
		if err != nil {
			return nil, err
		}
		e := g.(*Engine) //nolint:forcetypeassert // it panics
		return e, nil
	}
	closed := func(e *Engine) {
		t.Helper()
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, err := serve(cli.Listen{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (configuration{first}).Rewrite(t.Context(),
		methods.Change{Text: "{gateway: {port: " + busy + "}}", Base: anyBase, Merge: true}); err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the request to restart", first.RestartRequested())
	closed(first)
	for name, l := range map[string]cli.Listen{"the restart": {Restart: true}, "a start after a kill": {}} {
		e, err := serve(l)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasSuffix(e.URL(), ":"+free) || e.tree().Broken() == nil ||
			!strings.Contains(e.tree().Broken().Error(), busy) {
			t.Errorf("%s: %s, %v", name, e.URL(), e.tree().Broken())
		}
		e.reread(t.Context())
		select {
		case <-e.RestartRequested():
			t.Errorf("%s: it restarts again", name)
		case <-time.After(2 * restartDelay):
		}
		closed(e)
	}
	if b, _ := os.ReadFile(s.Config); !strings.Contains(string(b), busy) {
		t.Errorf("the file is\n%s", b)
	}
	write(t, s.Config, conf(busy)+"// by hand")
	if e, err := serve(cli.Listen{}); err == nil {
		t.Errorf("it starts at %s with what a person wrote and cannot be used", e.URL())
	}
	last, err := serve(cli.Listen{Restart: true})
	if err != nil {
		t.Fatalf("a restart: %v", err)
	}
	closed(last)
}
