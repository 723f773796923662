package tui

import (
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// prepare sets the modes of the terminal, and returns a function that restores them.
func prepare(in io.Reader, out io.Writer) (restore func(), err error) {
	var undo []func()
	restore = func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		state, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		undo = append(undo, func() { _ = term.Restore(int(f.Fd()), state) }) // it worked before
	}
	if f, ok := out.(*os.File); ok {
		reset, err := enableSequences(f)
		if err != nil {
			restore()
			return nil, err
		}
		undo = append(undo, reset)
	}
	if _, err := io.WriteString(out, modesOn); err != nil {
		restore()
		return nil, err
	}
	undo = append(undo, func() { _, _ = io.WriteString(out, modesOff) }) // the terminal may be gone
	return restore, nil
}

// reflows reports whether a terminal that becomes narrower breaks its lines again, as most
// do. It goes by the name: there is nothing to ask.
func reflows(getenv func(string) string) bool {
	name, _, _ := strings.Cut(getenv("TERM"), "-")
	switch {
	case getenv("TMUX") != "":
		return true
	case getenv("XTERM_VERSION") != "" && getenv("VTE_VERSION") == "":
		return false
	}
	return !slices.Contains([]string{"linux", "screen", "st", "eterm", "vt100", "vt102", "vt220", "vt320"}, name)
}

// size returns the size of a terminal; false: it is not known.
func size(out io.Writer) (width, height int, ok bool) {
	f, ok := out.(*os.File)
	if !ok {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return width, height, err == nil && width > 0 && height > 0
}
