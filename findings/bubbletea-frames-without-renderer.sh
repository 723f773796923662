#!/bin/sh
# charm.land/bubbletea/v2 v2.0.9: a program made WithoutRenderer still runs the ticker of
# the renderer, 60 times a second by default. An idle program that draws nothing keeps
# waking its process; WithFPS(1) is what stops it. The documentation of WithoutRenderer
# says only that nothing is drawn.
# Seen: "wakes in 3 s, one of eight counted: 23, with WithFPS(1): 1" (ends of waits of
# goroutines, of which the runtime counts every eighth: /sched/latencies:seconds).
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"time"

	tea "charm.land/bubbletea/v2"
)

type idle struct{}

func (idle) Init() tea.Cmd                       { return nil }
func (i idle) Update(tea.Msg) (tea.Model, tea.Cmd) { return i, nil }
func (idle) View() tea.View                      { return tea.NewView("") }

// wakes returns how often goroutines have been scheduled.
func wakes() (n uint64) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, c := range s[0].Value.Float64Histogram().Counts {
		n += c
	}
	return n
}

// run returns the wakes of a program in 3 s in which nothing happens.
func run(more ...tea.ProgramOption) uint64 {
	in, _ := io.Pipe() // nobody types
	ctx, cancel := context.WithCancel(context.Background())
	opts := append([]tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithoutRenderer(), tea.WithoutSignalHandler()}, more...)
	p := tea.NewProgram(idle{}, opts...)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = p.Run() }()
	time.Sleep(time.Second) // it has started
	from := wakes()
	time.Sleep(3 * time.Second)
	n := wakes() - from
	cancel()
	<-done
	return n
}

func main() {
	usual, once := run(), run(tea.WithFPS(1))
	fmt.Printf("wakes in 3 s, one of eight counted: %d, with WithFPS(1): %d\n", usual, once)
	if usual < 12 || once > usual/4 {
		os.Exit(1)
	}
}
GO
go mod init example.com/frames >/dev/null 2>&1
go get charm.land/bubbletea/v2@v2.0.9 >/dev/null 2>&1
go run .
