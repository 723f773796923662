package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
)

// TestMemo checks that a cached session equals the decoded one, including its times.
func TestMemo(t *testing.T) {
	t.Parallel()
	var k Memo
	m := Meta{Key: "s", Title: "a"}
	v := reflect.ValueOf(&m).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Type == reflect.TypeFor[time.Time]() {
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(time.Now()))
		}
	}
	encode := func(m Meta) string {
		t.Helper()
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := encode(m)
	read := func(text string) Meta {
		got, err := k.Read("s", text)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	decoded := read(text)
	k.Store(m, text)
	got := read(text)
	if diff := cmp.Diff(decoded, got); diff != "" {
		t.Errorf("(-decoded +cached)\n%s", diff)
	}
	if s := fmt.Sprintf("%+v", got); strings.Contains(s, "m=+") {
		t.Errorf("a monotonic clock reading was cached: %s", s)
	}
	if len(k.sessions) != 1 {
		t.Errorf("%d sessions are cached, want 1", len(k.sessions))
	}
	m.Title = "b"
	if got := read(encode(m)); got.Title != "b" {
		t.Errorf("changed JSON: title %q", got.Title)
	}
	if _, err := k.Read("s", "{"); err == nil {
		t.Error("no error for invalid JSON")
	}
	for n := range 3 * maxMemo {
		k.Store(Meta{Key: chela.SessionKey(fmt.Sprint(n))}, "{}")
	}
	if len(k.sessions) > maxMemo {
		t.Errorf("%d sessions are cached", len(k.sessions))
	}
}
