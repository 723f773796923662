package repl

import (
	"context"
	"os"
)

// Interrupt acts like an interrupt signal.
func (c *Chat) Interrupt() { c.stop <- os.Interrupt }

// Missed takes a run for one in progress whose end was missed, asks for it, and reports
// whether the run still counts as in progress.
func (c *Chat) Missed(ctx context.Context, run string) (running bool, err error) {
	c.running[run] = true
	_, err = c.missed(ctx, run)
	return c.running[run], err
}
