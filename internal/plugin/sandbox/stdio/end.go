package stdio

import (
	"cmp"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// DefaultGrace is the time between TERM and KILL for plans that name none.
const DefaultGrace = 2 * time.Second

// Grace returns the time between TERM and KILL for a plan.
func Grace(p sandbox.Plan) time.Duration { return cmp.Or(p.Grace, DefaultGrace) }

// KillAfter calls kill when the time is over, unless ended was closed before.
func KillAfter(grace time.Duration, ended <-chan struct{}, kill func()) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		kill()
	}
}
