package session

import (
	"strconv"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestFocus(t *testing.T) {
	t.Parallel()
	since := time.Unix(0, 0)
	hours := func(n float64) *float64 { return &n }
	off := false
	for _, tc := range []struct {
		p    FocusPolicy
		used float64 // hours after since; 0: never
		now  float64
		want bool
	}{
		{FocusPolicy{}, 0, 23.9, false},
		{FocusPolicy{}, 0, 24, true},
		{FocusPolicy{}, 10, 33.9, false},
		{FocusPolicy{}, 10, 34, true},
		{FocusPolicy{IdleHours: hours(0)}, 0, 9999, false},
		{FocusPolicy{IdleHours: hours(0.5)}, 0, 0.5, true},
		{FocusPolicy{MaxAgeHours: 3}, 2.9, 2.95, false},
		{FocusPolicy{MaxAgeHours: 3}, 2.9, 3, true},
		{FocusPolicy{Enabled: &off}, 0, 0, true},
	} {
		at := func(h float64) time.Time { return since.Add(time.Duration(h * float64(time.Hour))) }
		var to Meta
		if tc.used > 0 {
			to.Active = at(tc.used)
		}
		if got := tc.p.Ended(Focus{Since: since}, to, at(tc.now)); got != tc.want {
			t.Errorf("%+v, used after %v h, at %v h: %v", tc.p, tc.used, tc.now, got)
		}
	}

	var m Meta
	chat := func(i int) chela.Address { return chela.Address{Channel: "x", Thread: strconv.Itoa(i)} }
	for i := range MaxFocus + 1 {
		m.SetFocus(Focus{Address: chat(i), Session: "a"})
	}
	before := m
	m.SetFocus(Focus{Address: chat(5), Session: "b"})
	m.SetFocus(Focus{Address: chat(6)})
	if len(before.Focus) != MaxFocus || before.Focused(chat(0)).Session != "" || before.Focused(chat(5)).Session != "a" {
		t.Errorf("%d chats: %+v", len(before.Focus), before.Focus)
	}
	if len(m.Focus) != MaxFocus-1 || m.Focused(chat(5)).Session != "b" || m.Focused(chat(6)).Session != "" {
		t.Errorf("%d chats: %+v", len(m.Focus), m.Focus)
	}
}
