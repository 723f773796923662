package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// manager is the service manager of systemd for a gateway that runs in this process.
type manager struct {
	daemon.Env
	start func() (stop func())
	stop  func() // nil: it does not run
}

func (m *manager) run(_ context.Context, name string, args ...string) (string, error) {
	line := name + " " + strings.Join(args, " ")
	end := func() {
		if m.stop != nil {
			m.stop()
			m.stop = nil
		}
	}
	switch {
	case strings.Contains(line, " restart "):
		end()
		m.stop = m.start()
	case strings.Contains(line, " start ") && m.stop == nil:
		m.stop = m.start()
	case strings.Contains(line, " stop "), strings.Contains(line, " disable --now "):
		end()
	case strings.Contains(line, " show --property"):
		if m.stop != nil {
			return "ActiveState=active\nMainPID=4711\n", nil
		}
		return "ActiveState=inactive\nMainPID=0\n", nil
	case name == "loginctl":
		return "Linger=no\n", nil
	}
	return "", nil
}

// captured returns what f writes to standard output.
func captured(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = old }()
	done := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		done <- b.String()
	}()
	f()
	w.Close()
	return <-done
}

// TestService installs, stops, starts and removes the gateway as a service, with a service
// manager that runs it in this process.
func TestService(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("CHELA_STATE_DIR", filepath.Join(dir, "state"))
	a := app.Build(standard.New())
	m := &manager{Env: daemon.Env{OS: "linux", Home: dir, Getenv: func(string) string { return "" }}}
	m.Env.Run = m.run
	m.start = func() func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cli.Main(ctx, []string{"gateway", "run", "--port", "0"}, a)
		}()
		return func() { cancel(); <-ended }
	}
	a.Program = "/opt/chela"
	a.Services = func() (daemon.Manager, error) { return daemon.Open(m.Env) }
	t.Cleanup(func() {
		if m.stop != nil {
			m.stop()
		}
	})
	type status struct {
		Running bool          `json:"running"`
		Service *daemon.State `json:"service"`
	}
	do := func(want int, args ...string) (st status) {
		t.Helper()
		out := captured(t, func() {
			if code := cli.Main(t.Context(), args, a); code != want {
				t.Errorf("%q: exit code %d, want %d", args, code, want)
			}
		})
		if i := strings.LastIndex(out, "{\n  \"running\""); i >= 0 {
			if err := json.Unmarshal([]byte(out[i:strings.LastIndexByte(out, '}')+1]), &st); err != nil {
				t.Errorf("%q: %v in %s", args, err, out)
			}
		}
		return st
	}
	do(1, "gateway", "stop") // it is no service
	if st := do(1, "gateway", "status", "--json"); st.Running || st.Service == nil || st.Service.Installed {
		t.Errorf("before: %+v", st)
	}
	if st := do(0, "gateway", "install", "--json"); !st.Running || st.Service == nil || !st.Service.Running ||
		st.Service.PID != 4711 {
		t.Errorf("installed: %+v", st)
	}
	unit, err := os.ReadFile(filepath.Join(dir, ".config", "systemd", "user", "chela-gateway.service"))
	if err != nil || !strings.Contains(string(unit), `"gateway" "run" "--state-dir" "`+filepath.Join(dir, "state")+`"`) {
		t.Errorf("%v: %s", err, unit)
	}
	if st := do(0, "gateway", "stop", "--json"); st.Running || !st.Service.Installed || st.Service.Running {
		t.Errorf("stopped: %+v", st)
	}
	if out := captured(t, func() { cli.Main(t.Context(), []string{"doctor"}, a) }); !strings.Contains(out,
		"which does not exist") {
		t.Errorf("doctor: %s", out)
	}
	if st := do(0, "gateway", "start", "--json"); !st.Running {
		t.Errorf("started: %+v", st)
	}
	if st := do(0, "gateway", "restart", "--json"); !st.Running {
		t.Errorf("restarted: %+v", st)
	}
	t.Run("DR-01 a service whose program is gone is repaired", func(t *testing.T) {
		file := filepath.Join(dir, ".config", "systemd", "user", "chela-gateway.service")
		unit := strings.Replace(string(unit), `"run"`, `"run" "--port" "18800"`, 1) // as it was installed once
		if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := captured(t, func() { cli.Main(t.Context(), []string{"doctor"}, a) }); !strings.Contains(out,
			"systemd runs /opt/chela, which does not exist") {
			t.Errorf("doctor: %s", out)
		}
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		a.Program = program
		do(0, "doctor", "--fix")
		now, err := os.ReadFile(file)
		if want := strings.Replace(unit, "/opt/chela", program, 1); err != nil || string(now) != want {
			t.Errorf("the unit is %s, %v; want %s", now, err, want)
		}
		if out := captured(t, func() { cli.Main(t.Context(), []string{"doctor"}, a) }); strings.Contains(out,
			"does not exist: ") {
			t.Errorf("afterwards: %s", out)
		}
	})
	t.Run("UN-01 uninstall removes the service and keeps the state", func(t *testing.T) {
		do(1, "uninstall") // there is no terminal to ask
		if out := captured(t, func() { do(0, "uninstall", "--dry-run") }); strings.Contains(out, "removed") {
			t.Error(out)
		}
		if st := do(0, "gateway", "status", "--json"); !st.Service.Installed {
			t.Error("it was removed without consent")
		}
		do(0, "uninstall", "--yes")
		if st := do(1, "gateway", "status", "--json"); st.Running || st.Service.Installed {
			t.Errorf("%+v", st)
		}
		if _, err := os.Stat(filepath.Join(dir, "state", "chela.db")); err != nil {
			t.Errorf("the state: %v", err)
		}
		do(0, "gateway", "install")
		do(0, "uninstall", "--all", "--yes")
		if list, err := os.ReadDir(filepath.Join(dir, "state")); err == nil {
			t.Errorf("left: %v", list)
		}
		do(0, "gateway", "install") // as it was
	})
	do(0, "gateway", "uninstall")
	if st := do(1, "gateway", "status", "--json"); st.Running || st.Service.Installed {
		t.Errorf("removed: %+v", st)
	}
	do(0, "gateway", "uninstall")
}
