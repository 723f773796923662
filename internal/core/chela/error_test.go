package chela_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	base := &chela.Error{Code: chela.CodeFull, Message: "no space", Hint: "free some", Err: fs.ErrExist}
	for _, tt := range []struct {
		name, text string
		err        error
		code       chela.Code
		hint       string
		is         error
	}{
		{"a message", "bad name", &chela.Error{Code: chela.CodeInvalid, Message: "bad name"}, chela.CodeInvalid, "", nil},
		{"a message and a cause", "no space: file already exists", base, chela.CodeFull, "free some", fs.ErrExist},
		{"a cause alone", "file already exists", &chela.Error{Code: chela.CodeConflict, Err: fs.ErrExist},
			chela.CodeConflict, "", fs.ErrExist},
		{"formatted", "bad name x", chela.Errorf(chela.CodeInvalid, "bad name %s", "x"), chela.CodeInvalid, "", nil},
		{"formatted with a cause", "open x: file already exists", chela.Errorf(chela.CodeNotFound, "open x: %w", fs.ErrExist),
			chela.CodeNotFound, "", fs.ErrExist},
		{"the hint of the cause", "store: no space: file already exists",
			chela.Errorf(chela.CodeUnavailable, "store: %w", base), chela.CodeUnavailable, "free some", fs.ErrExist},
		{"the outer hint", "", &chela.Error{Hint: "outer", Err: fmt.Errorf("inner: %w", base)}, "", "outer", base},
		{"wrapped by another package", "again: no space: file already exists", fmt.Errorf("again: %w", base),
			chela.CodeFull, "free some", base},
		{"another error", "file already exists", fs.ErrExist, chela.CodeInternal, "", fs.ErrExist},
	} {
		if got := tt.err.Error(); tt.text != "" && got != tt.text {
			t.Errorf("%s: text %q, want %q", tt.name, got, tt.text)
		}
		if code, hint := chela.CodeOf(tt.err), chela.HintOf(tt.err); code != tt.code || hint != tt.hint {
			t.Errorf("%s: code %q, hint %q; want %q, %q", tt.name, code, hint, tt.code, tt.hint)
		}
		if tt.is != nil && !errors.Is(tt.err, tt.is) {
			t.Errorf("%s: does not wrap %v", tt.name, tt.is)
		}
	}
	if chela.HintOf(nil) != "" {
		t.Error("no error has a hint")
	}
}
