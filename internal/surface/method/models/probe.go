package models

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Key is a key of a provider with a model to probe it.
type Key struct {
	ID       string
	Saved    bool // stored by Chela, and can be deleted
	Model    llm.Model
	Provider llm.Provider
}

// Limits of a probe.
const (
	defaultTimeout = 20 * time.Second
	minTimeout     = 5 * time.Second
	maxTimeout     = time.Minute
	probeTokens    = 16 // the minimum that all services accept
)

// probe sends a request with each key of a provider. It neither respects nor
// changes cooldowns.
func (o Options) probe(ctx context.Context, p rpc.Peer, in wire.ModelsProbe) (wire.ModelsProbed, error) {
	in.Provider, in.Key = strings.TrimSpace(in.Provider), strings.TrimSpace(in.Key)
	if in.Provider == "" || in.Timeout < 0 {
		return wire.ModelsProbed{}, rpc.Invalid("provider must not be blank, and timeoutMs must be >= 1")
	}
	if err := o.known(in.AgentID, ""); err != nil {
		return wire.ModelsProbed{}, err
	}
	p.Yield()
	keys := o.Keys(in.Provider)
	if in.Key != "" {
		keys = slices.DeleteFunc(keys, func(k Key) bool { return k.ID != in.Key })
	}
	wait := defaultTimeout
	if in.Timeout > 0 {
		wait = min(max(time.Duration(in.Timeout)*time.Millisecond, minTimeout), maxTimeout)
	}
	out := wire.ModelsProbed{Provider: in.Provider, Status: wire.ProbeUnknown, Results: make([]wire.ProbedKey, len(keys))}
	var all sync.WaitGroup
	for i, k := range keys {
		all.Go(func() { out.Results[i] = k.probe(ctx, wait) })
	}
	all.Wait()
	if len(keys) == 0 {
		out.Error = "no key to probe for provider " + in.Provider
	}
	sum(&out)
	return out, nil
}

// probe sends a minimal request.
func (k Key) probe(ctx context.Context, wait time.Duration) wire.ProbedKey {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out := wire.ProbedKey{Label: k.ID + " · " + k.Model.Ref()}
	if k.Saved {
		out.Key = k.ID
	}
	began := time.Now()
	var err error
	for _, err = range k.Provider.Stream(ctx, &llm.Request{
		Model: k.Model.ID, Messages: []*llm.Message{llm.User("Reply with OK.")}, MaxTokens: probeTokens,
	}) {
		if err != nil {
			break
		}
	}
	ms := time.Since(began).Milliseconds()
	out.Status, out.Latency = status(err), &ms
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// status returns the probe status of an error.
func status(err error) string {
	switch c := llm.ClassOf(err); {
	case err == nil:
		return wire.ProbeOK
	case errors.Is(err, context.DeadlineExceeded), c == llm.ClassTimeout:
		return wire.ProbeTimeout
	case c == llm.ClassAuth:
		return wire.ProbeAuth
	case c == llm.ClassRate, c == llm.ClassOverload:
		return wire.ProbeRate
	case c == llm.ClassBilling:
		return wire.ProbeBilling
	case c == llm.ClassFormat, c == llm.ClassContext:
		return wire.ProbeFormat
	case c == llm.ClassNoModel:
		return wire.ProbeNoModel
	}
	return wire.ProbeUnknown
}

// sum sets the overall status: the best result, or else the one a person should
// fix first.
func sum(p *wire.ModelsProbed) {
	for _, s := range [...]string{
		wire.ProbeOK, wire.ProbeAuth, wire.ProbeBilling, wire.ProbeRate, wire.ProbeTimeout, wire.ProbeFormat,
		wire.ProbeNoModel, wire.ProbeUnknown,
	} {
		found := false
		for _, r := range p.Results {
			if r.Status != s {
				continue
			}
			if p.Status, found = s, true; p.Latency == nil || *r.Latency < *p.Latency {
				p.Latency, p.Error = r.Latency, r.Error
			}
		}
		if found {
			return
		}
	}
}
