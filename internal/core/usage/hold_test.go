package usage

import (
	"errors"
	"testing"
	"time"
)

// memory is an in-memory table.
type memory struct {
	Table
	spent map[string]int64
	holds []Hold
	rows  []Row
	cost  map[string]int64
}

func (m *memory) Committed(scope string) (int64, error) { return m.spent[scope], nil }
func (m *memory) PutHold(h Hold) error                  { m.holds = append(m.holds, h); return nil }
func (m *memory) Add(r Row) error                       { m.rows = append(m.rows, r); return nil }
func (m *memory) SettleHold(id string, nano int64) error {
	m.cost[id] = nano
	return nil
}

func TestReserve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		scopes []Scope
		over   string
	}{
		{"no scope", nil, ""},
		{"without a limit", []Scope{{"day", 0}}, ""},
		{"exactly the limit", []Scope{{"day", 100}}, ""},
		{"above the limit", []Scope{{"day", 99}}, "day"},
		{"above the limit of the second scope", []Scope{{"day", 1000}, {"tree:r", 39}}, "tree:r"},
		{"another scope", []Scope{{"day", 1000}, {"tree:other", 10}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memory{spent: map[string]int64{"day": 90, "tree:r": 30}}
			err := Reserve(m, Hold{ID: "h", Scopes: c.scopes, Nano: 10})
			over, _ := errors.AsType[*BudgetError](err)
			if (err == nil) != (c.over == "") || over != nil && (over.Scope.Name != c.over || over.Nano != 10) {
				t.Errorf("error %v, want one about %q", err, c.over)
			}
			if stored := len(m.holds) == 1; stored != (err == nil) {
				t.Errorf("stored: %v", stored)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	h := Hold{ID: "h", Nano: 10}
	for _, c := range []struct {
		row  Row
		want int64
	}{
		{Row{NanoUSD: 3, Priced: true}, 3},
		{Row{NanoUSD: 0, Priced: true}, 0},
		{Row{}, 10},
	} {
		m := &memory{cost: map[string]int64{}}
		if err := h.Settle(m, c.row); err != nil || m.cost["h"] != c.want || len(m.rows) != 1 {
			t.Errorf("%+v: cost %d, %d rows, %v; want %d", c.row, m.cost["h"], len(m.rows), err, c.want)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 23, 30, 0, 0, time.FixedZone("east", 3600))
	for got, want := range map[string]string{
		DayScope(at): "day:2026-11-22", AgentScope("main", at): "agent:main:2026-11-22", TreeScope("run-1"): "tree:run-1",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
