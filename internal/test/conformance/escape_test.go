//go:build conformance && linux

package conformance

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// wrapped runs the programs of a sandbox.Broker below another program.
type wrapped struct {
	host.Broker
	program []string
}

func (w wrapped) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	p.Rights = nil
	p.Argv = slices.Concat(w.program, []string{p.Path}, p.Argv[1:])
	p.Path = p.Argv[0]
	return w.Broker.Start(ctx, p, out)
}

// TestEscapesElsewhere attacks other sandboxes in the same way as Chela's. Each is configured to
// allow the same as far as it can be.
func TestEscapesElsewhere(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("not run: as root, an act that a sandbox does not hold changes this machine")
	}
	for name, program := range map[string]func(t testing.TB, a sandboxtest.Arena, write bool) []string{
		"bwrap":           bwrap,
		"sandbox-runtime": runtimeSandbox,
	} {
		for _, write := range []bool{false, true} {
			mode := map[bool]string{false: "look", true: "work"}[write]
			t.Run(name+" "+mode, func(t *testing.T) {
				r := sandboxtest.RunEscapes(t, sandboxtest.Escapes{Write: write, Host: host.Broker{},
					Broker: func(t testing.TB, a sandboxtest.Arena, _ string) sandbox.Broker {
						return wrapped{program: program(t, a, write)}
					}})
				t.Log(r)
				for _, e := range r.Escaped {
					t.Log("not held:", e)
				}
				for _, e := range r.NotRun {
					t.Log("not run:", e)
				}
				if r.Tried < 100 {
					t.Error("the sandbox was hardly attacked")
				}
			})
		}
	}
}

// bwrap is bubblewrap with the directories of the system, the workspace and
// nothing else.
func bwrap(t testing.TB, a sandboxtest.Arena, write bool) []string {
	path := needtest.Program(t, "bwrap")
	args := []string{path, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc",
		"--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", a.Home}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt"} {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	bind := "--ro-bind"
	if write {
		bind = "--bind"
	}
	return append(args, "--ro-bind", a.Kit, a.Kit, bind, a.Workspace, a.Workspace, "--chdir", a.Workspace)
}

// runtimeSandbox is npm's @anthropic-ai/sandbox-runtime in CHELA_TEST_SRT, the
// folder that it was installed in.
func runtimeSandbox(t testing.TB, a sandboxtest.Arena, write bool) []string {
	dir := os.Getenv("CHELA_TEST_SRT")
	if dir == "" {
		needtest.Missing(t, "sandbox-runtime (CHELA_TEST_SRT)")
	}
	const tmp = "/tmp/claude" // its TMPDIR
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	allow := []string{tmp}
	if write {
		allow = append(allow, a.Workspace)
	}
	b, err := json.Marshal(map[string]any{
		"network": map[string]any{"allowedDomains": []string{"allowed.test"}, "deniedDomains": []string{}},
		"filesystem": map[string]any{
			"denyRead":   []string{a.Home, a.State, a.Outside},
			"allowWrite": allow,
			"denyWrite":  []string{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "srt.json")
	if err := os.WriteFile(settings, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(dir, "node_modules", ".bin", "srt"), "--settings", settings, "--"}
}
