package memo

import "testing"

func TestMap(t *testing.T) {
	m := Map[int, int]{Most: 3}
	for i := range 10 {
		m.Put(i, i)
		m.Put(i, i*2)
	}
	if len(m.m) != 3 || len(m.order) != 3 {
		t.Errorf("%d values, %d keys", len(m.m), len(m.order))
	}
	if v, ok := m.Get(9); !ok || v != 18 {
		t.Error(v, ok)
	}
	if _, ok := m.Get(6); ok {
		t.Error("the oldest ones are remembered")
	}
}
