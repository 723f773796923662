package session

import (
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// Fork is what the system prompt and the list of tools of a run depend on, besides the
// configuration. A session that was forked from a run keeps that of the run, so that
// its requests begin with the same bytes and are read from the provider's cache.
type Fork struct {
	Session    chela.SessionKey `json:"sessionKey"`
	Transcript string           `json:"transcript"` // its id names the prompt cache
	Bounds     Bounds           `json:"bounds,omitzero"`
	Prompt     string           `json:"prompt,omitempty"`
	Address    chela.Address    `json:"address,omitzero"`
	Group      string           `json:"group,omitempty"`
	Overrides  run.Overrides    `json:"overrides,omitzero"`

	// Over is set when the beginning of the inherited history is no longer sent. The
	// session then has a system prompt and tools of its own.
	Over bool `json:"over,omitempty"`
}

// ForkOf returns what the prompt of a run of the session depends on.
func (m Meta) ForkOf(r run.Run) Fork {
	if m.Forked() {
		return *m.Fork
	}
	return Fork{
		Session:    m.Home(),
		Transcript: r.SessionID,
		Bounds:     m.Bounds,
		Prompt:     m.Prompt,
		Address:    r.Address,
		Group:      m.Group,
		Overrides:  r.Overrides,
	}
}

// Forked reports whether requests of the session begin like those of the run that it
// was forked from.
func (m Meta) Forked() bool { return m.Fork != nil && !m.Fork.Over }

// Home returns the key of the session whose sandbox this one uses: its own, or that of
// the session that it was forked from.
func (m Meta) Home() chela.SessionKey {
	if m.Fork != nil {
		return m.Fork.Session
	}
	return m.Key
}

// EndFork gives a session that was forked a prompt of its own. It is called when the
// messages that are sent do not begin with the inherited ones any more. It reports
// whether the session changed.
func (m *Meta) EndFork() bool {
	if !m.Forked() {
		return false
	}
	f := *m.Fork // the old value is shared with other copies of m
	f.Over, f.Prompt, f.Overrides = true, "", run.Overrides{}
	m.Fork = &f
	return true
}
