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
	long := func(n float64) *time.Duration { d := time.Duration(n * float64(time.Hour)); return &d }
	off := false
	for _, tc := range []struct {
		p    FocusPolicy
		f    Focus
		used float64 // hours after since; 0: never
		now  float64
		want bool
	}{
		{FocusPolicy{}, Focus{}, 0, 23.9, false},
		{FocusPolicy{}, Focus{}, 0, 24, true},
		{FocusPolicy{}, Focus{}, 10, 33.9, false},
		{FocusPolicy{}, Focus{}, 10, 34, true},
		{FocusPolicy{IdleHours: hours(0)}, Focus{}, 0, 9999, false},
		{FocusPolicy{IdleHours: hours(0.5)}, Focus{}, 0, 0.5, true},
		{FocusPolicy{MaxAgeHours: 3}, Focus{}, 2.9, 2.95, false},
		{FocusPolicy{MaxAgeHours: 3}, Focus{}, 2.9, 3, true},
		{FocusPolicy{Enabled: &off}, Focus{}, 0, 0, true},
		{FocusPolicy{MaxAgeHours: 3}, Focus{Idle: long(1), MaxAge: long(5)}, 4.5, 4.9, false},
		{FocusPolicy{MaxAgeHours: 3}, Focus{Idle: long(1), MaxAge: long(5)}, 4.5, 5, true},
		{FocusPolicy{MaxAgeHours: 3}, Focus{Idle: long(1)}, 1.5, 2.5, true},
		{FocusPolicy{MaxAgeHours: 3}, Focus{Idle: long(0), MaxAge: long(0)}, 0, 9999, false},
		{FocusPolicy{Enabled: &off}, Focus{Idle: long(0)}, 0, 0, true},
	} {
		at := func(h float64) time.Time { return since.Add(time.Duration(h * float64(time.Hour))) }
		tc.f.Since = since
		var to Meta
		if tc.used > 0 {
			to.Active = at(tc.used)
		}
		if got := tc.p.Ended(tc.f, to, at(tc.now)); got != tc.want {
			t.Errorf("%+v, %+v, used after %v h, at %v h: %v", tc.p, tc.f, tc.used, tc.now, got)
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
