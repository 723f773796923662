package runner

import (
	"cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
)

// Draft returns the run that answers the items, as far as the session and the
// items determine it; [queue.Lead] returns the item that does. [Runner.Begin] adds
// the time, the lease and the rights that the principal has by then.
func Draft(m session.Meta, items []queue.Item) run.Run {
	lead := queue.Lead(items)
	r := run.Run{
		ID: chela.RunID(lead.ID), Session: m.Key, SessionID: m.ID, Agent: m.Agent,
		Kind: run.Turn, Origin: lead.Origin, Parent: lead.Parent, Root: lead.Root,
		Lane: cmp.Or(lead.Overrides.Lane, m.Bounds.Lane, MainLane), State: run.Running,
		Principal: lead.Principal, Address: lead.Inbound.Address, Overrides: lead.Overrides, Attempts: 1,
	}
	if lead.Kind == queue.Compact {
		r.Kind = run.Compact
	}
	deliver := lead.Overrides.Deliver
	switch {
	case deliver.Mode == run.DeliverNowhere:
		r.Address = chela.Address{}
	case deliver.Mode == run.DeliverTo && !deliver.Last:
		r.Address = deliver.Address
	case deliver.Mode == run.DeliverTo, lead.Kind == queue.Event && lead.Inbound.Address == (chela.Address{}):
		r.Address = m.Address
	}
	return r
}
