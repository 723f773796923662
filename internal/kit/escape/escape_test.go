package escape

import (
	"strings"
	"testing"
)

func TestLen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind     byte
		rest     string
		n        int
		complete bool
	}{
		{'[', "1;31mred", 5, true},
		{'[', "1;31", 4, false},
		{'[', "1\nm", 1, true},
		{'[', strings.Repeat("1", MaxControl+9), MaxControl, true},
		{']', "0;title\x07x", 8, true},
		{']', "0;title\x1b\\x", 9, true},
		{']', "0;title\u009cx", 9, true},
		{']', "0;title\x1b[", 7, true},
		{'P', "0;title\x1b", 8, false},
		{'X', strings.Repeat("x", MaxText+9), MaxText, true},
		{'^', "0;title\x07x", 8, true},
		{'_', "0;title\x07x", 8, true},
		{'[', "1 @x", 3, true},
		{'[', "1~x", 2, true},
		{'[', "1\x7fm", 1, true},
		{'(', "Bx", 1, true},
		{'/', "0x", 1, true},
		{0x1f, "Bx", 0, true},
		{' ', "", 0, false},
		{'c', "x", 0, true},
	} {
		if n, complete := Len(tt.kind, []byte(tt.rest)); n != tt.n || complete != tt.complete {
			t.Errorf("ESC %c %.20q: %d, %v; want %d, %v", tt.kind, tt.rest, n, complete, tt.n, tt.complete)
		}
	}
}
