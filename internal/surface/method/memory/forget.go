package memory

import (
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	topics "github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/engine/forget"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Forgetter finds and removes what is known about a topic; see [forget.Forgetter].
type Forgetter interface {
	Find(context.Context, topics.Topic) (forget.Report, error)
	Remove(context.Context, topics.Topic) (forget.Report, error)
}

func (o Options) forget(ctx context.Context, p rpc.Peer, in wire.MemoryForget) (wire.MemoryForgotten, error) {
	out := wire.MemoryForgotten{Removed: in.Remove, Findings: []wire.MemoryFinding{}}
	t, err := topics.Parse(in.Topic)
	if err != nil {
		return out, chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	p.Yield()
	var r forget.Report
	if in.Remove {
		r, err = o.Forget.Remove(ctx, t)
		out.Text = r.Removed(t)
	} else {
		r, err = o.Forget.Find(ctx, t)
		out.Text = r.Found("")
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, wire.MemoryFinding{
			Location: string(f.Location),
			Name:     f.Name,
			Count:    f.Count,
			Sample:   f.Sample,
			Stays:    f.Stays,
		})
	}
	return out, err
}
