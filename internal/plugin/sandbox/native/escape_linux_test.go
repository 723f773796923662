package native_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestEscapes attacks the sandbox, as this user and, if that is root, as
// nobody.
func TestEscapes(t *testing.T) {
	for name, write := range map[string]bool{"look": false, "work": true} {
		t.Run("E1 "+name, func(t *testing.T) {
			t.Parallel()
			if race && !write {
				t.Skip("not run: the race detector makes each act slow")
			}
			if !write && os.Getuid() == 0 && os.Getenv("CHELA_TEST_CAGE") == "" {
				t.Skip("run as nobody; make cage runs it as root too")
			}
			escapes(t, write)
		})
	}
	t.Run("E1 as nobody", func(t *testing.T) {
		t.Parallel()
		if race {
			t.Skip("not run: the race detector makes each act slow")
		}
		run := "^TestEscapes$/^E1_(look|work)$"
		if testing.Short() {
			run = "^TestEscapes$/^E1_work$"
		}
		asNobody(t, run)
	})
}

func escapes(t *testing.T, write bool) {
	sandboxtest.NeedsNamespaces(t)
	r := sandboxtest.RunEscapes(t, sandboxtest.Escapes{Write: write, Host: host.Broker{}, Broker: cageIn})
	t.Logf("uid %d: %v", os.Getuid(), r)
	for _, name := range r.NotRun {
		t.Logf("not run: %s", name)
	}
	for _, name := range r.Escaped {
		t.Errorf("escaped: %s", name)
	}
	for _, name := range r.Missed {
		t.Errorf("it has an effect outside, but was not tried inside: %s", name)
	}
	if r.Effective < 150 {
		t.Errorf("%d acts have an effect outside, want at least 150: this machine shows too little", r.Effective)
	}
}

// cageIn returns a broker for the arena of an attack.
func cageIn(t testing.TB, a sandboxtest.Arena, upstream string) sandbox.Broker {
	b := native.New(native.Options{Home: a.Home, Layers: filepath.Join(a.State, "layers"), Never: func() []string {
		return []string{a.State}
	}, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.HasPrefix(addr, "allowed.test:") {
			return nil, errors.New("the name means an address that is not public") // package egress does this
		}
		return (&net.Dialer{}).DialContext(ctx, network, upstream)
	}})
	t.Cleanup(b.Close)
	return b
}

// asNobody runs tests of this program again as nobody, who owns nothing.
func asNobody(t *testing.T, run string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: only root can become another user")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Another process copies it: a program that this one writes can be busy, because a
	// child that another test starts holds the descriptor for a moment.
	if out, err := exec.CommandContext(t.Context(), "cp", program, filepath.Join(dir, "test")).CombinedOutput(); err !=
		nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.run="+run, "-test.v",
		fmt.Sprintf("-test.short=%t", testing.Short()))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "CHELA_TEST_CAGE=" +
		os.Getenv("CHELA_TEST_CAGE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("as nobody: %v", err)
	}
}
