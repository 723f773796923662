package stdio

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestInput(t *testing.T) {
	t.Parallel()
	in := NewInput()
	block := make([]byte, 1<<20)
	for range maxInput >> 20 {
		if _, err := in.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Write([]byte("x")); !errors.Is(err, ErrUnread) {
		t.Errorf("error %v, want %v", err, ErrUnread)
	}
	in.Close()
	if n, err := io.Copy(io.Discard, in); n != maxInput || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := in.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v after Close", err)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"a\nb\n\n", "b"},
		{strings.Repeat("x\n", 100_000) + "end", "end"},
	} {
		var all, parts Tail
		all.Write([]byte(tt.in))
		for i := range len(tt.in) {
			parts.Write([]byte(tt.in[i : i+1]))
		}
		if a, b := all.LastLine(), parts.LastLine(); a != tt.want || b != tt.want {
			t.Errorf("%.20q: %q, in parts %q", tt.in, a, b)
		}
		if len(parts.b) > 2*maxTail {
			t.Errorf("%d bytes are kept", len(parts.b))
		}
	}
}
