package invoke_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// TestApprovalText checks that a request shows the whole plan, without invisible
// characters.
func TestApprovalText(t *testing.T) {
	t.Parallel()
	ask := func(text, reason string) (*ledger, tool.Result, error) {
		p := &planner{fake: fake{spec: tool.Spec{Name: "act", Effect: tool.Acts}}, plan: func() (tool.Plan, error) {
			return tool.Plan{Effect: tool.Acts, Ask: true, Text: text, Reason: reason, Hash: "h"}, nil
		}}
		l := &ledger{}
		s := scope(p)
		s.Ledger = l
		r, err := invoke.New(invoke.Options{}).For(s).Invoke(t.Context(), call("act", "{}"), nil)
		return l, r, err
	}
	long := strings.Repeat("a line of a plan\n", 3000)
	for _, tt := range []struct{ name, text, reason, wantText, wantReason string }{
		{"unchanged", "rm x\n  in /tmp", "outside", "rm x\n  in /tmp", "outside"},
		{"invisible characters are escaped", "rm \u202ex\x1b[8m", "a\u200b", `rm \u202ex\x1b[8m`, `a\u200b`},
		{"a long plan is complete", long, "", long, ""},
	} {
		l, _, err := ask(tt.text, tt.reason)
		if !errors.Is(err, tool.ErrSuspended) || l.plan.Text != tt.wantText || l.plan.Reason != tt.wantReason {
			t.Errorf("%s: requested with %.200q, %q, %v", tt.name, l.plan.Text, l.plan.Reason, err)
		}
	}
	l, r, err := ask(strings.Repeat(long, 2), "")
	if err != nil || len(l.log) != 0 {
		t.Errorf("a plan that is too long: %v, %v", err, l.log)
	}
	failed(t, r, "too long to be shown whole", "shorter")
}

func TestUnattended(t *testing.T) {
	t.Parallel()
	t.Run("AP-08 a call that needs an approval is denied where nobody can be asked", func(t *testing.T) {
		p := &planner{fake: fake{spec: tool.Spec{Name: "act", Effect: tool.Acts}}, plan: func() (tool.Plan, error) {
			return tool.Plan{Effect: tool.Acts, Ask: true, Text: "act", Reason: "it acts", Hash: "h"}, nil
		}}
		r, err := invoke.New(invoke.Options{}).For(scope(p)).Invoke(t.Context(), call("act", "{}"), nil)
		if err != nil || len(p.args) != 0 {
			t.Errorf("%v, run %d times", err, len(p.args))
		}
		failed(t, r, "nobody can be asked", "it acts")
	})
	t.Run("AP-08 unless its plan permits that", func(t *testing.T) {
		p := &planner{fake: fake{spec: tool.Spec{Name: "act", Effect: tool.Acts}}, plan: func() (tool.Plan, error) {
			return tool.Plan{Effect: tool.Acts, Ask: true, Unattended: true, Text: "act", Reason: "it acts", Hash: "h"}, nil
		}}
		if _, err := invoke.New(invoke.Options{}).For(scope(p)).Invoke(t.Context(), call("act", "{}"), nil); err != nil ||
			len(p.args) != 1 {
			t.Errorf("%v, run %d times", err, len(p.args))
		}
	})
}
