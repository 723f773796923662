package repl

import "os"

// Interrupt acts like an interrupt signal.
func (c *Chat) Interrupt() { c.stop <- os.Interrupt }
