package app

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/process"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// stranger starts another program that listens on a port.
func stranger(t *testing.T) (pid, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the other process has its own copy
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needtest.Program(t, "sleep")
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid, l.Addr().(*net.TCPAddr).Port
}

func TestPortBusy(t *testing.T) {
	pid, port := stranger(t)
	s := home(t, offlineConf)
	who := fmt.Sprintf("port %d is used by process %d (sleep 600)", port, pid)
	t.Run("GW-03 the message names the process", func(t *testing.T) {
		_, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: port})
		if err == nil || err.Error() != who || chela.HintOf(err) != fmt.Sprintf("chela gateway run --port %d", port+1) {
			t.Errorf("%v (%s), want %s", err, chela.HintOf(err), who)
		}
	})
	t.Run("GW-03 another program is not ended", func(t *testing.T) {
		_, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: port, Force: true})
		if err == nil || !strings.Contains(err.Error(), who+"; --force does not end it") {
			t.Errorf("%v", err)
		}
		if process.Of(pid).Command == "" {
			t.Error("it was ended")
		}
	})
	t.Run("GW-03 the owner of the directory is named", func(t *testing.T) {
		e, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		_, err = standardBuild.serve(t.Context(), s, cli.Listen{Port: -1})
		if want := fmt.Sprintf("process %d (", os.Getpid()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("%v, want %s…", err, want)
		}
	})
}
