package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// TestStart tests which calls are recorded before they run: those that recovery
// must not repeat, keyed ones, and those that were approved.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, effect := range []tool.Effect{tool.Reads, tool.Writes, tool.Acts} {
		for _, keyed := range []bool{false, true} {
			for _, approved := range []bool{false, true} {
				var want []string
				switch {
				case !keyed && effect != tool.Reads:
					want = []string{"start " + effect.String()}
				case keyed && effect != tool.Reads, approved:
					want = []string{"start reads"}
				}
				t.Run(fmt.Sprintf("%s, keyed %v, approved %v", effect, keyed, approved), func(t *testing.T) {
					p := &planner{fake: fake{spec: tool.Spec{Name: "x", Effect: effect, Keyed: keyed}},
						plan: func() (tool.Plan, error) {
							return tool.Plan{Effect: effect, Ask: approved, Hash: "h"}, nil
						}}
					l := &ledger{req: approval.Request{ID: "a", Decision: approval.AllowOnce, Hash: "h"}}
					s := scope(p)
					s.Ledger = l
					do(t, invoke.New(invoke.Options{}).For(s), call("x", "{}"))
					if diff := cmp.Diff(want, l.log); diff != "" || len(p.args) != 1 {
						t.Errorf("run %d times, ledger (-want +got):\n%s", len(p.args), diff)
					}
				})
			}
		}
	}
	t.Run("a tool gets the id of the record", func(t *testing.T) {
		f := open("x", func(_ context.Context, c tool.Call) (tool.Result, error) { return tool.Text(c.ID), nil })
		s := scope(f)
		s.Ledger = &ledger{}
		if got := text(do(t, invoke.New(invoke.Options{}).For(s), call("x", "{}"))); got != "record-c1" {
			t.Errorf("id %q", got)
		}
	})
}

// caged is a tool that needs the rights in needs. Its plan contains the rights of
// the call.
type caged struct {
	spec   tool.Spec
	needs  []string
	again  bool
	out    string // what it returns until it is stopped
	ignore bool   // the plan does not depend on the rights
	reads  bool   // effect Reads instead of Acts
	ran    []string
}

func (c *caged) Spec() tool.Spec { return c.spec }

func (c *caged) Plan(_ context.Context, k tool.Call) (tool.Plan, error) {
	hash := "h"
	if !c.ignore {
		hash += strings.Join(k.Rights, ",")
	}
	return tool.Plan{Effect: c.spec.Effect, Hash: hash, Text: "run with " + strings.Join(k.Rights, ",")}, nil
}

func (c *caged) Run(_ context.Context, k tool.Call) (tool.Result, error) {
	c.ran = append(c.ran, strings.Join(k.Rights, ","))
	for _, r := range c.needs {
		if !slices.Contains(k.Rights, r) {
			return tool.Result{}, fmt.Errorf("exec: %w", &tool.Blocked{Rights: []string{r}, Again: c.again, Ran: c.out})
		}
	}
	return tool.Text("done"), nil
}

// unplanned is a caged tool without a plan.
type unplanned struct{ c *caged }

func (u unplanned) Spec() tool.Spec { return u.c.Spec() }
func (u unplanned) Run(ctx context.Context, k tool.Call) (tool.Result, error) {
	return u.c.Run(ctx, k)
}

func TestBlocked(t *testing.T) {
	t.Parallel()
	allowed := func(hash string) ledger {
		return ledger{rights: strings.Split(strings.TrimPrefix(hash, "h"), ","),
			req: approval.Request{ID: "a", Decision: approval.AllowOnce, Hash: hash}}
	}
	denied := allowed("hnet:a")
	denied.req.Decision = approval.Deny
	deniedAfter := denied
	deniedAfter.req.Ran = "half done"
	type want struct {
		err     error
		words   []string // in the error result
		log     string
		ran     string // the rights of each run
		outcome string
	}
	for _, tt := range []struct {
		name   string
		tool   caged
		ledger *ledger
		change func(*invoke.Scope)
		want   want
	}{
		{"suspended and planned again", caged{needs: []string{"net:a"}, again: true}, &ledger{}, nil,
			want{err: tool.ErrSuspended, log: "start acts, suspend hnet:a", ran: "[]"}},
		{"a call that reads", caged{reads: true, needs: []string{"net:a"}, again: true}, &ledger{}, nil,
			want{err: tool.ErrSuspended, log: "suspend hnet:a", ran: "[]"}},
		{"approved", caged{needs: []string{"net:a"}, again: true}, new(allowed("hnet:a")), nil,
			want{log: "start acts", ran: "[net:a]", outcome: "allowed approval ok"}},
		{"denied", caged{needs: []string{"net:a"}, again: true}, &denied, nil,
			want{words: []string{"denied"}, outcome: "denied approval error"}},
		{"denied after it ran", caged{needs: []string{"net:a"}, again: true}, &deniedAfter, nil,
			want{words: []string{"it ran, and was stopped", "denied by", "half done"}, outcome: "blocked approval error"}},
		{"nobody can be asked after it ran", caged{needs: []string{"net:a"}, again: true, out: "half done"}, &ledger{},
			func(s *invoke.Scope) { s.Unattended = true },
			want{words: []string{"it ran, and was stopped", "nobody can be asked", "half done"}, log: "start acts", ran: "[]",
				outcome: "blocked approval error"}},
		{"approved for other rights", caged{needs: []string{"net:a"}, again: true},
			new(ledger{rights: []string{"net:b"}, req: allowed("hnet:a").req}), nil,
			want{words: []string{"plan has changed"}, outcome: "denied approval error"}},
		{"approved, and blocked for another right", caged{needs: []string{"net:b", "net:a"}, again: true},
			new(allowed("hnet:b")), nil,
			want{err: tool.ErrSuspended, log: "start acts, suspend hnet:a,net:b", ran: "[net:b]"}},
		{"always allowed", caged{needs: []string{"net:a"}, again: true}, &ledger{always: "hnet:a"}, nil,
			want{log: "start acts", ran: "[ net:a]", outcome: "allowed allowed-always ok"}},
		{"the call cannot be repeated", caged{needs: []string{"net:a"}}, &ledger{}, nil,
			want{words: []string{"needs net:a"}, log: "start acts", ran: "[]", outcome: "blocked rights error"}},
		{"the plan ignores the rights", caged{needs: []string{"net:a"}, again: true, ignore: true}, &ledger{}, nil,
			want{words: []string{"needs net:a"}, log: "start acts", ran: "[]", outcome: "blocked rights error"}},
		{"nobody can be asked", caged{needs: []string{"net:a"}, again: true}, &ledger{},
			func(s *invoke.Scope) { s.Unattended = true },
			want{words: []string{"nobody can be asked", "needs net:a"}, log: "start acts", ran: "[]",
				outcome: "denied approval error"}},
		{"no ledger", caged{needs: []string{"net:a"}, again: true}, nil, nil,
			want{words: []string{"needs net:a"}, ran: "[]"}},
		{"no planner", caged{needs: []string{"net:a"}, again: true}, &ledger{}, func(s *invoke.Scope) {
			t, _ := s.Tools.Get("x")
			s.Tools = tool.NewSet(unplanned{t.(*caged)})
		}, want{words: []string{"needs net:a"}, log: "start acts", ran: "[]", outcome: "blocked rights error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool.spec = tool.Spec{Name: "x", Effect: tool.Acts}
			if tt.tool.reads {
				tt.tool.spec.Effect = tool.Reads
			}
			s := scope(&tt.tool)
			if tt.ledger != nil {
				s.Ledger = tt.ledger
			}
			if tt.change != nil {
				tt.change(&s)
			}
			notified := 0
			x := invoke.New(invoke.Options{Hooks: points(nil, nil, hook.After{Name: "f", Quick: true,
				Func: func(context.Context, hook.Done) (hook.None, error) {
					notified++
					return hook.None{}, nil
				}})})
			r, err := x.For(s).Invoke(t.Context(), call("x", "{}"), nil)
			if !errors.Is(err, tt.want.err) {
				t.Errorf("error %v, want %v", err, tt.want.err)
			}
			if tt.want.words != nil {
				failed(t, r, tt.want.words...)
			}
			if got := fmt.Sprint(tt.tool.ran); got != tt.want.ran && (tt.want.ran != "" || tt.tool.ran != nil) {
				t.Errorf("run with %s, want %s", got, tt.want.ran)
			}
			if want := min(len(tt.tool.ran), 1); err == nil && notified != want {
				t.Errorf("%d After hooks were called, want %d", notified, want)
			}
			if tt.ledger == nil {
				return
			}
			if got := strings.Join(tt.ledger.log, ", "); got != tt.want.log {
				t.Errorf("ledger %q, want %q", got, tt.want.log)
			}
			if got := strings.Join(tt.ledger.ended, ", "); got != tt.want.outcome {
				t.Errorf("outcome %q, want %q", got, tt.want.outcome)
			}
			if errors.Is(err, tool.ErrSuspended) {
				p := tt.ledger.plan
				if p.Hash != "h"+strings.Join(p.Rights, ",") || !p.Ask || p.Reason == "" {
					t.Errorf("requested %+v", p)
				}
			}
		})
	}
}
