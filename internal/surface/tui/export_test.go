package tui

// Exports for the external tests, which run a whole application behind the
// screen.

// New returns the model that Run runs.
var New = newScreen

// Left reports whether the screen has quit, and with which error.
func (s *screen) Left() (bool, error) { return s.quitting, s.failed }

// Busy reports whether something is in progress.
func (s *screen) Busy() bool { return s.inProgress() || len(s.live) > 0 || s.lost }
