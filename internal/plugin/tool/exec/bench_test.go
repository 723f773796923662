//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// BenchmarkIdle reports the cost of 50 idle background commands in percent of
// a core. One iteration takes a second.
func BenchmarkIdle(b *testing.B) {
	c := exec.NewCommands(exec.CommandOptions{})
	tl, err := exec.New(exec.Options{Broker: host.Broker{}, Rules: mode("full"), Commands: c})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for _, command := range []string{`{"command":"exec sleep 1000","background":true}`,
		`{"command":"exec sleep 1000","pty":true,"background":true}`} {
		for range 25 {
			if _, err := tl.Run(b.Context(),
				tool.Call{Args: json.RawMessage(command), Dir: dir, Update: func(string) {}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	time.Sleep(time.Second)
	before, n := used(b), 0
	for b.Loop() {
		time.Sleep(time.Second)
		n++
	}
	b.ReportMetric(100*(used(b)-before).Seconds()/float64(n), "%core")
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_ = c.Run(ctx) // the error is that of ctx
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkYielding runs a command that ends before it goes to the
// background.
func BenchmarkYielding(b *testing.B) {
	benchmarkRun(b, exec.Options{Broker: host.Broker{}, Commands: exec.NewCommands(exec.CommandOptions{})})
}

// BenchmarkPlanAndRun runs a command that cannot go to the background.
func BenchmarkPlanAndRun(b *testing.B) {
	benchmarkRun(b, exec.Options{Broker: host.Broker{}})
}

func benchmarkRun(b *testing.B, o exec.Options) {
	tl, err := exec.New(o)
	if err != nil {
		b.Fatal(err)
	}
	c := tool.Call{Args: json.RawMessage(`{"command":"echo hello"}`), Dir: b.TempDir(), Update: func(string) {}}
	for b.Loop() {
		p, err := tl.(tool.Planner).Plan(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		c.Plan = &p
		if _, err := tl.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
