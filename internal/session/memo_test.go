package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chela"
)

// TestMemo has a session with every time set kept and read: it is as if it had
// been decoded, also to those who compare with the clock.
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
	k.Keep(m, text)
	got := read(text)
	if diff := cmp.Diff(decoded, got); diff != "" {
		t.Errorf("decoded, kept:\n%s", diff)
	}
	if s := fmt.Sprintf("%+v", got); strings.Contains(s, "m=+") {
		t.Errorf("a reading of the monotonic clock was kept: %s", s)
	}
	m.Title = "b"
	if got := read(encode(m)); got.Title != "b" {
		t.Errorf("another text: %q", got.Title)
	}
	if _, err := k.Read("s", "{"); err == nil {
		t.Error("no JSON: no error")
	}
	for n := range 3 * maxMemo {
		k.Keep(Meta{Key: chela.SessionKey(fmt.Sprint(n))}, "{}")
	}
	if len(k.kept) > maxMemo {
		t.Errorf("%d are kept", len(k.kept))
	}
}
