package policy

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/tool"
)

// Direct returns the step for calls from outside a conversation, configured by
// gateway.tools. It denies the tools that are for runs only, which run commands, control other
// sessions or change the gateway. deny adds to them; allow removes from them, for the
// owner only.
func (k Catalog) Direct(deny, allow []string, owner bool) Step {
	s := Step{Label: "direct", Key: "gateway.tools.deny", Deny: k.Expand(deny)}
	allowed := k.Expand(allow)
	for _, n := range k.where(func(t *tool.Spec) bool { return t.InRuns }) {
		if !slices.Contains(s.Deny, n) && (!owner || match(allowed, n) == "") {
			s.Deny = append(s.Deny, n)
		}
	}
	return s
}
