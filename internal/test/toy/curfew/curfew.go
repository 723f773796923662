// Package curfew is a hook with configuration, for tests of the registry: it
// refuses the calls of some tools.
package curfew

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chela-ai/chela/internal/core/hook"
)

// options is the hook's section.
type options struct {
	Tools []string `json:"tools"`
}

// New returns the hook.
func New(raw json.RawMessage) (hook.Before, error) {
	var o options
	if raw != nil {
		if err := json.Unmarshal(raw, &o); err != nil {
			return hook.Before{}, err
		}
	}
	return hook.Before{Name: "curfew", Quick: true, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		return hook.Verdict{Block: slices.Contains(o.Tools, c.Tool), Reason: "not after midnight"}, nil
	}}, nil
}
