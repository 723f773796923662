//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// person is a user of OpenClaw's command line: a home directory with a
// configuration, and a version of the program.
type person struct {
	t    testing.TB
	Home string
	node string
	main string // the program
}

// answer is the result of a command.
type answer struct {
	Code     int
	Out, Err string
}

// newPerson returns a person with the kit's openclaw and a configuration.
func newPerson(t testing.TB, k kit, conf section) *person {
	t.Helper()
	p := &person{t: t, Home: t.TempDir(), node: node(t), main: filepath.Join(packages(t, k), "openclaw", "openclaw.mjs")}
	b, err := json.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(p.Home, ".openclaw")
	if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(filepath.Join(state, "openclaw.json"), b, 0o600)); err !=
		nil {
		t.Fatal(err)
	}
	return p
}

// localConfig returns the configuration of a person on the gateway's machine,
// remoteConfig that of a person who connects to its address.
func (s *gateway) localConfig() section {
	return section{"gateway": section{"mode": "local", "port": s.Port, "auth": section{"mode": "token", "token": token}}}
}

func (s *gateway) remoteConfig() section {
	return section{"gateway": section{"mode": "remote", "remote": section{"url": s.URL(), "token": token}}}
}

// command returns the person's program, ready to run.
func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.node, append([]string{p.main}, args...)...)
	cmd.Dir, cmd.Env = p.Home, p.env()
	cmd.WaitDelay = time.Second
	return cmd
}

// env returns the environment of the person's program. Files that it caches for
// later runs are stored localConfig its packages.
func (p *person) env() []string {
	kept := filepath.Dir(filepath.Dir(filepath.Dir(p.main)))
	return []string{
		"PATH=" + filepath.Dir(p.node) + ":" + os.Getenv("PATH"), "HOME=" + p.Home, "TERM=xterm-256color",
		"NO_COLOR=1", "LANG=C.UTF-8",
		"NODE_COMPILE_CACHE=" + filepath.Join(kept, "compiled"), "TMPDIR=" + filepath.Join(kept, "tmp"),
		"OPENCLAW_HIDE_BANNER=1",
	}
}

// Run runs a command to its end. A command that hangs is killed after a long
// time limit, because the program takes seconds to load on a busy machine.
func (p *person) Run(args ...string) answer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ctx.Err() != nil {
		p.t.Fatalf("openclaw %s: %v\n%s%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), out.String(), errs.String())
	}
	return answer{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errs.String()}
}

// TestGateway checks what the other tests depend on.
func TestGateway(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	if out := s.Chela("agent", "-m", "count"); !strings.Contains(out, strings.TrimSpace(counted())) {
		t.Errorf("the model answered %q", out)
	}
	s.Stop()
	s.Start()
	if a := newPerson(t, current(), s.localConfig()).Run("gateway", "call", "health"); a.Code != 0 ||
		!strings.Contains(a.Out, `"ok": true`) {
		t.Errorf("gateway call health: %+v", a)
	}
}
