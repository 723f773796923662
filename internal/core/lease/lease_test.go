package lease_test

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/lease"
)

func TestBeat(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	wall := sent.Round(0) // without the monotonic clock
	for _, c := range []struct {
		name string
		beat lease.Beat
		now  time.Time
		want bool
	}{
		{"just sent", lease.Beat{Sent: sent, TTL: time.Minute}, sent, true},
		{"before its end", lease.Beat{Sent: sent, TTL: time.Minute}, sent.Add(59 * time.Second), true},
		{"at its end", lease.Beat{Sent: sent, TTL: time.Minute}, sent.Add(time.Minute), false},
		{"the process was stopped for longer", lease.Beat{Sent: sent, TTL: time.Minute}, sent.Add(time.Hour), false},
		{"the machine was suspended: only the wall clock advanced", lease.Beat{Sent: sent, TTL: time.Minute},
			wall.Add(time.Hour), false},
		{"never sent", lease.Beat{}, sent, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.beat.Valid(c.now); got != c.want {
				t.Errorf("valid: %v, want %v", got, c.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got := lease.Session("agent:main:main"); got != "session:agent:main:main" {
		t.Error(got)
	}
	if got := lease.Channel("telegram", "bot"); got != "channel:telegram:bot" {
		t.Error(got)
	}
}
