package logfile

import (
	"errors"
	"strings"
	"testing"
)

func TestTee(t *testing.T) {
	full := errors.New("disk full")
	var screen strings.Builder
	n, err := Tee(broken{full}, &screen).Write([]byte("line\n"))
	if n != 5 || !errors.Is(err, full) || screen.String() != "line\n" {
		t.Errorf("%d, %v, %q; the second writer must get the line even if the first fails", n, err, screen.String())
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
