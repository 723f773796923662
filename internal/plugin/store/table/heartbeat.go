package table

import (
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
)

// heartbeats is the tables of wakes and of the states of heartbeats.
type heartbeats struct{ c *Tables }

var _ heartbeat.Table = heartbeats{}

const (
	wakeIntact  = "intact(n, session, due, wake, crc)"
	stateIntact = "intact(n, agent, state, crc)"
)

// Wakes returns the pending wakes, the one with the earliest Due first.
func (t heartbeats) Wakes() ([]heartbeat.Wake, error) { return t.wakes("TRUE") }

func (t heartbeats) wakes(where string, args ...any) ([]heartbeat.Wake, error) {
	return Collect(t.c, ScanJSON[heartbeat.Wake], "SELECT wake, "+wakeIntact+" FROM wake WHERE "+where+
		" ORDER BY due, n", args...)
}

// Wake returns the pending wake of a session.
func (t heartbeats) Wake(key chela.SessionKey) (heartbeat.Wake, error) {
	return get(t.wakes, "wake of session", "session = ?", string(key))
}

// PutWake inserts or replaces the pending wake of a session.
func (t heartbeats) PutWake(w heartbeat.Wake) error {
	wake, err := encode(w)
	if err != nil {
		return fmt.Errorf("wake of session %s: %w", w.Session, err)
	}
	_, err = t.c.Exec(`INSERT INTO wake (session, due, wake) VALUES (?, ?, ?)
ON CONFLICT (session) DO UPDATE SET due = excluded.due, wake = excluded.wake WHERE `+wakeIntact,
		str(w.Session), w.Due, wake)
	return err
}

// DeleteWake removes the pending wake of a session.
func (t heartbeats) DeleteWake(key chela.SessionKey) error {
	_, err := t.c.Exec("DELETE FROM wake WHERE session = ?", str(key))
	return err
}

// States returns the states of all agents.
func (t heartbeats) States() ([]heartbeat.State, error) { return t.states("TRUE") }

func (t heartbeats) states(where string, args ...any) ([]heartbeat.State, error) {
	return Collect(t.c, ScanJSON[heartbeat.State], "SELECT state, "+stateIntact+" FROM heartbeat WHERE "+where+
		" ORDER BY agent", args...)
}

// State returns the state of an agent.
func (t heartbeats) State(id chela.AgentID) (heartbeat.State, error) {
	s, err := get(t.states, "heartbeat of agent", "agent = ?", string(id))
	if errors.Is(err, chela.ErrNotFound) {
		return heartbeat.State{Agent: id}, nil
	}
	return s, err
}

// PutState inserts or replaces the state of an agent.
func (t heartbeats) PutState(s heartbeat.State) error {
	state, err := encode(s)
	if err != nil {
		return fmt.Errorf("heartbeat of agent %s: %w", s.Agent, err)
	}
	_, err = t.c.Exec(`INSERT INTO heartbeat (agent, state) VALUES (?, ?)
ON CONFLICT (agent) DO UPDATE SET state = excluded.state WHERE `+stateIntact, str(s.Agent), state)
	return err
}

// DeleteState removes the state of an agent.
func (t heartbeats) DeleteState(id chela.AgentID) error {
	_, err := t.c.Exec("DELETE FROM heartbeat WHERE agent = ?", str(id))
	return err
}
