package signal

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpool(t *testing.T) {
	t.Parallel()
	s := spool{path: filepath.Join(t.TempDir(), "a", "pending.json")}
	for i := range maxPending - 9 { // without the file, which takes long
		e := fmt.Append(nil, i)
		s.events, s.bytes = append(s.events, e), s.bytes+len(e)
	}
	for i := range 9 {
		if err := s.add(fmt.Append(nil, maxPending-9+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.add([]byte("1")); err == nil {
		t.Error("there is no limit of events")
	}
	again := spool{path: s.path}
	if err := again.load(); err != nil || len(again.events) != maxPending || string(again.events[7]) != "7" ||
		again.bytes != s.bytes {
		t.Errorf("load: %v, %d events", err, len(again.events))
	}
	again.events, again.bytes = again.events[:9], 9
	for range 9 {
		if err := again.drop(); err != nil {
			t.Fatal(err)
		}
	}
	if again.bytes != 0 {
		t.Errorf("%d bytes in no events", again.bytes)
	}
	large := []byte(`"` + strings.Repeat("x", maxPendingBytes/2) + `"`)
	if err := again.add(large); err != nil {
		t.Fatal(err)
	}
	if err := again.add(large); err == nil {
		t.Error("there is no limit of bytes")
	}
	if err := again.add([]byte("{")); err == nil {
		t.Error("what is no JSON was added")
	}
}
