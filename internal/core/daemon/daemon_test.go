package daemon_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/daemon"
)

// machine is a machine whose service manager records what it is told.
type machine struct {
	told    []string
	answers map[string]string // by the beginning of a command
	fails   map[string]string
}

func (m *machine) run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	m.told = append(m.told, line)
	for start, text := range m.fails {
		if strings.HasPrefix(line, start) {
			return text, errors.New("exit status 1")
		}
	}
	for start, text := range m.answers {
		if strings.HasPrefix(line, start) {
			return text, nil
		}
	}
	return "", nil
}

func (m *machine) open(t *testing.T, system string) (daemon.Manager, string) {
	t.Helper()
	home := t.TempDir()
	d, err := daemon.Open(daemon.Env{
		OS:     system,
		Home:   home,
		UID:    501,
		Getenv: func(string) string { return "" },
		Run:    m.run,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, home
}

// spec has every character that a service file could take for something else.
func spec() daemon.Spec {
	return daemon.Spec{
		Name:    "chela-gateway-work",
		Title:   "Chela 100% <gateway>",
		Program: `/opt/my "apps"/chela`,
		Args:    []string{"gateway", "run", "--state-dir", `/home/a b/50%/$HOME\x`},
		Path:    "/usr/bin:/opt/$x/%h",
		Logs:    "/home/a b/logs",
	}
}

func TestSystemd(t *testing.T) {
	t.Parallel()
	t.Run("GW-01 install", func(t *testing.T) {
		t.Parallel()
		var m machine
		d, home := m.open(t, "linux")
		if err := d.Install(t.Context(), spec()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(home, ".config", "systemd", "user", "chela-gateway-work.service"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"\nDescription=Chela 100%% <gateway>\n",
			"\nExecStart=\"/opt/my \\\"apps\\\"/chela\" \"gateway\" \"run\" \"--state-dir\" \"/home/a b/50%%/$$HOME\\\\x\"\n",
			"\nEnvironment=\"PATH=/usr/bin:/opt/$x/%%h\"\n", "\nRestart=always\nRestartSec=5\nRestartPreventExitStatus=78\n",
			"\nWantedBy=default.target\n",
		} {
			if !strings.Contains(string(b), want) {
				t.Errorf("no %q in\n%s", want, b)
			}
		}
		want := []string{
			"systemctl --user show-environment", "systemctl --user daemon-reload",
			"systemctl --user enable chela-gateway-work.service", "systemctl --user restart chela-gateway-work.service",
		}
		if diff := cmp.Diff(want, m.told); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("GW-02 state and uninstall", func(t *testing.T) {
		t.Parallel()
		m := machine{
			answers: map[string]string{
				"systemctl --user show --property": "MainPID=42\nActiveState=active\nSubState=running\nResult=success\n"}}
		d, _ := m.open(t, "linux")
		const name = "chela-gateway-work"
		if st, err := d.State(t.Context(), name); err != nil || st.Installed || st.Running || len(m.told) > 0 {
			t.Errorf("before: %+v, %v, told %q", st, err, m.told)
		}
		if err := d.Install(t.Context(), spec()); err != nil {
			t.Fatal(err)
		}
		if st, err := d.State(t.Context(), name); err != nil || !st.Installed || !st.Running || st.PID != 42 ||
			st.Detail != "active" {
			t.Errorf("%+v, %v", st, err)
		}
		m.answers = map[string]string{
			"systemctl --user show --property": "MainPID=0\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\n"}
		if st, err := d.State(t.Context(), name); err != nil || st.Running || st.Detail != "activating, exit-code" {
			t.Errorf("one that ends: %+v, %v", st, err)
		}
		for range 2 { // the second finds nothing
			if err := d.Uninstall(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if st, _ := d.State(t.Context(), name); st.Installed ||
			!slices.Contains(m.told, "systemctl --user disable --now chela-gateway-work.service") {
			t.Errorf("after: %+v, told %q", st, m.told)
		}
	})
	t.Run("without a manager of the user nothing is written", func(t *testing.T) {
		t.Parallel()
		m := machine{fails: map[string]string{"systemctl": "Failed to connect to bus: No medium found\n"}}
		d, home := m.open(t, "linux")
		err := d.Install(t.Context(), spec())
		if !errors.Is(err, daemon.ErrNone) || !strings.Contains(err.Error(), "Failed to connect to bus: No medium found") {
			t.Errorf("%v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(home, ".config")); left != nil {
			t.Errorf("left %q", left)
		}
	})
	t.Run("whether it stays", func(t *testing.T) {
		t.Parallel()
		for answer, want := range map[string]bool{"Linger=yes\n": true, "Linger=no\n": false} {
			m := machine{answers: map[string]string{"loginctl show-user 501": answer}}
			d, _ := m.open(t, "linux")
			if ok, how := d.Stays(t.Context()); ok != want || how != "loginctl enable-linger" {
				t.Errorf("%q: %v, %q", answer, ok, how)
			}
		}
	})
	// The unit is checked by systemd itself where it is there. The name of the program is
	// one that exists.
	t.Run("systemd accepts the unit", func(t *testing.T) {
		t.Parallel()
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			return
		}
		var m machine
		d, home := m.open(t, "linux")
		s := spec()
		s.Program = filepath.Join(home, "a b 50%", "chela")
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.Program), 0o700),
			os.WriteFile(s.Program, []byte("#!/bin/sh\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := d.Install(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), analyze, "verify", "--user", "--man=no",
			filepath.Join(home, ".config", "systemd", "user", s.Name+".service"))
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "HOME="+home)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), s.Name) || err != nil && !strings.Contains(string(out), "Failed to") {
			t.Errorf("%v: %s", err, out) // it exits with 0 after warnings
		}
	})
}

func TestLaunchd(t *testing.T) {
	t.Parallel()
	t.Run("GW-23 a launchd agent", func(t *testing.T) {
		t.Parallel()
		m := machine{fails: map[string]string{"launchctl bootout": "", "launchctl print": "Could not find service\n"}}
		d, home := m.open(t, "darwin")
		if err := d.Install(t.Context(), spec()); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(home, "Library", "LaunchAgents", "ai.chela.chela-gateway-work.plist")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"<key>Label</key>\n\t<string>ai.chela.chela-gateway-work</string>",
			"<string>/opt/my &#34;apps&#34;/chela</string><string>gateway</string>",
			"<key>RunAtLoad</key>\n\t<true/>", "<key>KeepAlive</key>\n\t<true/>",
			"<string>/home/a b/logs/chela-gateway-work.out</string>",
			"<key>PATH</key><string>/usr/bin:/opt/$x/%h</string>",
		} {
			if !strings.Contains(string(b), want) {
				t.Errorf("no %q in\n%s", want, b)
			}
		}
		if got := m.told[len(m.told)-1]; got != "launchctl bootstrap gui/501 "+file {
			t.Errorf("told %q", m.told)
		}
		m.fails, m.answers = nil,
			map[string]string{"launchctl print gui/501/ai.chela.chela-gateway-work": "{\n\tstate = running\n\tpid = 77\n}\n"}
		if st, err := d.State(t.Context(), spec().Name); err != nil || !st.Running || st.PID != 77 {
			t.Errorf("%+v, %v", st, err)
		}
		m.answers, m.fails = nil, map[string]string{"launchctl print": "Could not find service\n"}
		if err := d.Stop(t.Context(), spec().Name); err != nil ||
			!slices.Contains(m.told, "launchctl bootout gui/501/ai.chela.chela-gateway-work") {
			t.Errorf("%v, told %q", err, m.told)
		}
		if st, err := d.State(t.Context(), spec().Name); err != nil || st.Running || !st.Installed {
			t.Errorf("stopped: %+v, %v", st, err)
		}
		if err := d.Uninstall(t.Context(), spec().Name); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestTasks(t *testing.T) {
	t.Parallel()
	m := machine{answers: map[string]string{"schtasks /Query": "\"\\chela-gateway-work\",\"N/A\",\"Running\"\r\n"}}
	d, home := m.open(t, "windows")
	if err := d.Install(t.Context(), spec()); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(home, "AppData", "Local", "chela", "chela-gateway-work.xml"))
	if err != nil ||
		!strings.Contains(string(have), `<Arguments>gateway run --state-dir &#34;/home/a b/50%/$HOME\x&#34;</Arguments>`) {
		t.Errorf("%v: %s", err, have)
	}
	if got := m.told[0]; !strings.HasPrefix(got, "schtasks /Create /F /TN chela-gateway-work /XML ") {
		t.Errorf("told %q", m.told)
	}
	if st, err := d.State(t.Context(), spec().Name); err != nil || !st.Running || !st.Installed {
		t.Errorf("%+v, %v", st, err)
	}
	if err := d.Uninstall(t.Context(), spec().Name); err != nil ||
		!slices.Contains(m.told, "schtasks /Delete /F /TN chela-gateway-work") {
		t.Errorf("%v, told %q", err, m.told)
	}
}
