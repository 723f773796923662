package media

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put := func(text string) string {
		t.Helper()
		ref, err := f.PutOutput(text)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	read := func(ref string) (string, error) {
		file, err := f.OpenOutput(ref)
		if err != nil {
			return "", err
		}
		defer file.Close()
		b, err := io.ReadAll(file)
		return string(b), err
	}
	a := put("a long output")
	if again := put("a long output"); again != a {
		t.Errorf("the same output has the references %s and %s", a, again)
	}
	if got, err := read(a); err != nil || got != "a long output" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := f.Open(a); err == nil {
		t.Error("an output is an attachment, too")
	}
	picture, err := f.Put([]byte("attached"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(picture); err != nil || got != "attached" {
		t.Errorf("an attachment: %q, %v", got, err)
	}
	for _, ref := range []string{strings.Repeat("0", 32), "../x", ""} {
		if _, err := read(ref); err == nil {
			t.Errorf("%q was opened", ref)
		}
	}
	if _, err := read(strings.Repeat("0", 32)); !errors.Is(err, ErrRemoved) {
		t.Errorf("%v", err)
	}
	t.Run("an output is removed with the last row that refers to it", func(t *testing.T) {
		b := put("another output")
		old := time.Now().Add(-2 * time.Hour)
		for _, ref := range []string{a, b} {
			if err := os.Chtimes(filepath.Join(dir, ref+"-output"), old, old); err != nil {
				t.Fatal(err)
			}
		}
		n, err := f.Sweep(t.Context(), func(context.Context) ([]string, error) { return []string{b, picture}, nil })
		if err != nil || n != 1 {
			t.Errorf("%d files removed, %v", n, err)
		}
		if _, err := read(a); err == nil {
			t.Error("an output without a row is still there")
		}
		young := time.Now().Add(-59 * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, b+"-output"), young, young); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Sweep(t.Context(), func(context.Context) ([]string, error) { return []string{picture}, nil }); err !=
			nil || n != 0 {
			t.Errorf("%d files of the last hour removed, %v", n, err)
		}
		if err := os.Chtimes(filepath.Join(dir, b+"-output"), old, old); err != nil {
			t.Fatal(err)
		}
		if _, err := read(b); err != nil {
			t.Error(err)
		}
	})
	t.Run("all outputs together have a maximum size", func(t *testing.T) {
		refs := []string{picture}
		for i := range 4 { // sparse files
			ref := put(strings.Repeat("x", i+1))
			refs = append(refs, ref)
			name := filepath.Join(dir, ref+"-output")
			at := time.Now().Add(time.Duration(i-10) * Grace)
			if err := errors.Join(os.Truncate(name, MaxOutputs/3), os.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		// with the one without a row
		if n, err := f.Sweep(t.Context(), func(context.Context) ([]string, error) { return refs, nil }); err != nil ||
			n != 2 {
			t.Errorf("%d files removed, %v", n, err)
		}
		if _, err := f.OpenOutput(refs[1]); !errors.Is(err, ErrRemoved) {
			t.Errorf("the oldest one: %v", err)
		}
		for _, ref := range refs[2:] {
			file, err := f.OpenOutput(ref)
			if err != nil {
				t.Fatal(err)
			}
			file.Close()
		}
	})
	t.Run("the end of a huge output is not stored", func(t *testing.T) {
		ref := put(strings.Repeat("ä", MaxOutput/2+10))
		file, err := f.OpenOutput(ref)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil || info.Size() > MaxOutput {
			t.Errorf("%d bytes, %v", info.Size(), err)
		}
		end := make([]byte, 100)
		if _, err := file.ReadAt(end, info.Size()-100); err != nil ||
			!strings.Contains(string(end), "the end of the output is not stored") {
			t.Errorf("it ends with %q, %v", end, err)
		}
	})
}
