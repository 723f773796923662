package tui

// For the tests from outside, which have a whole application behind the
// screen.

// New returns the model that Run runs.
var New = newScreen

// Drawn is the message that the screen was drawn for the first time.
func Drawn() any { return drawn{} }

// Rest lets keys answer questions at once.
func (s *screen) Rest() {
	s.typed, s.pinged = s.typed.Add(-grace), s.pinged.Add(-grace)
}

// Left reports whether the screen was left, and why.
func (s *screen) Left() (bool, error) { return s.leaving, s.failed }

// Busy reports whether something is in progress.
func (s *screen) Busy() bool { return s.turn() || len(s.live) > 0 || s.lost }
