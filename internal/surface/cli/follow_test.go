package cli_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestFollow follows the log of a gateway that rotates it, stops, and is started
// again.
func TestFollow(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	ctx := waittest.Context(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "logs", "chela.log")
	conf := `{logging: {level: "debug", maxFileBytes: 3000}}`
	if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	chela := func(args ...string) (*exec.Cmd, <-chan string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, "chela", args...)
		cmd.Env = []string{"CHELA_STATE_DIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := make(chan string, 10_000)
		go func() {
			defer close(lines)
			for in := bufio.NewScanner(out); in.Scan(); {
				lines <- in.Text()
			}
		}()
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd, lines
	}
	// stored returns the lines of all files, the oldest first.
	stored := func() (lines []string, files int) {
		t.Helper()
		for n := 9; n >= 0; n-- {
			b, err := os.ReadFile(strings.TrimSuffix(fmt.Sprintf("%s.%d", log, n), ".0"))
			if err == nil {
				files++
				lines = append(lines, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
			}
		}
		return lines, files
	}

	var got []string
	var followed <-chan string
	for restart := range 2 {
		gateway, said := chela("gateway", "run", "--port", "0")
		if line := <-said; !strings.Contains(line, "listens on") {
			t.Fatalf("the gateway did not start: %q", line)
		}
		if restart == 0 {
			_, followed = chela("logs", "--follow", "--json")
			got = append(got, <-followed)
		}
		for _, files := stored(); files < 3+2*restart; _, files = stored() {
			_, err := client.Dial(ctx,
				client.Options{ID: "unknown", Once: true, Dial: func(ctx context.Context) (net.Conn, error) {
					return statedir.Dial(ctx, dir)
				}})
			if _, ok := errors.AsType[*wire.Error](err); !ok {
				t.Fatal(err) // the refusal is a line of the log
			}
		}
		if err := gateway.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := gateway.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	want, files := stored()
	if files > 6 || !strings.Contains(want[len(want)-1], "gateway stops") {
		t.Fatalf("%d files, so that some were deleted, or another end: %s", files, want[len(want)-1])
	}
	for len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
		line, ok := <-followed
		if !ok {
			t.Fatalf("%d lines were shown, and not the last of %d", len(got), len(want))
		}
		got = append(got, line)
	}
	t.Run("LG-03 each line of the log is shown once, in order", func(t *testing.T) {
		if !slices.Equal(got, want) {
			t.Errorf("%d lines were shown, want these %d:\n%s", len(got), len(want), strings.Join(want, "\n"))
		}
	})
}
