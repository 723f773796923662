package session

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Block moves a call from one of the given states to Waiting: before it starts, when
// its plan needs an approval, or from Started, when rights were missing. The rights
// are part of its plan, and approval is the id of the request about that plan. Block
// fails with a chela.CodeConflict error if the call is in another state, so that a
// call with a known outcome cannot run again.
func Block(t Calls, id, approval string, rights []string, now time.Time, from ...CallState) (Call, error) {
	c, err := t.Call(id)
	if err != nil {
		return c, err
	}
	if !slices.Contains(from, c.State) {
		return c, chela.Errorf(chela.CodeConflict, "tool call %s is %s already", id, c.State)
	}
	c.State, c.Approval, c.Rights, c.Updated = Waiting, approval, rights, now
	return c, t.Put(c)
}
