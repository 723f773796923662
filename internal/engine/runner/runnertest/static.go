// Package runnertest has profiles for tests.
package runnertest

import (
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Static is a [runner.Profiles] that resolves every run to the same profile.
type Static struct {
	Profile runner.Profile
	Queue   queue.Policy
}

// Resolve returns a copy of the profile.
func (s Static) Resolve(_ context.Context, m session.Meta, r run.Run) (*runner.Profile, error) {
	p := s.Profile
	p.For, p.Answer = runner.SettingsOf(m), run.AnswerTo(r.Origin)
	return &p, nil
}

// Ready returns a copy of the profile.
func (s Static) Ready(m session.Meta, r run.Run) (*runner.Profile, bool) {
	p, err := s.Resolve(context.Background(), m, r)
	return p, err == nil
}

// Policy returns the policy with the session's own preferences.
func (s Static) Policy(m session.Meta, _ chela.Address) queue.Policy { return s.Queue.With(m.Queue) }

// Sends reports whether the session sends to chats.
func (s Static) Sends(m session.Meta, to chela.Address) bool { return session.SendAlways(m, to) }

// Gen returns 0.
func (s Static) Gen() uint64 { return 0 }
