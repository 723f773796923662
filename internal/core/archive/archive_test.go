package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/archive"
)

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// tree makes a folder with files, folders and links.
func tree(t *testing.T) string {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "first", 0o644)
	put(t, filepath.Join(dir, "sub", "run.sh"), "#!/bin/sh", 0o700)
	put(t, filepath.Join(dir, "sub", "empty"), "", 0o600)
	put(t, filepath.Join(dir, "large"), strings.Repeat("0123456789abcdef", 300_000), 0o600)
	put(t, filepath.Join(dir, "cache", "x"), "left out", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "nothing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{
			"in":       "sub/run.sh",
			"sub/up":   "../a.txt",
			"absolute": filepath.Join(dir, "a.txt"),
			"out":      "../x",
			"far":      "/etc/passwd",
			"sub/sly":  "../../y",
		} {
			if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func source(dir string) []archive.Source {
	return []archive.Source{{Kind: "state", Path: dir, At: "state", Skip: func(name string, _ fs.FileInfo) bool {
		return name == "cache"
	}}}
}

func create(t *testing.T, dir string) ([]byte, *archive.Manifest) {
	t.Helper()
	var b bytes.Buffer
	m, err := archive.Create(t.Context(), &b, t.TempDir(), "1.2.3", source(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), m
}

func TestArchive(t *testing.T) {
	t.Run("BU-01 what is restored is what was archived", func(t *testing.T) {
		dir := tree(t)
		b, _ := create(t, dir)
		m, err := archive.Verify(t.Context(), bytes.NewReader(b))
		if err != nil || m.Program != "1.2.3" || m.Count() != 4 {
			t.Fatalf("%+v, %v", m, err)
		}
		to := t.TempDir()
		if err := archive.Extract(t.Context(), bytes.NewReader(b), m, to, func(name string) string { return name }); err !=
			nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a.txt", "sub/run.sh", "sub/empty", "large"} {
			want, err := os.ReadFile(filepath.Join(dir, name))
			got, errGot := os.ReadFile(filepath.Join(to, "state", name))
			if err != nil || errGot != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v, %v", name, err, errGot)
			}
			was, _ := os.Stat(filepath.Join(dir, name))
			is, _ := os.Stat(filepath.Join(to, "state", name))
			if was.Mode() != is.Mode() && runtime.GOOS != "windows" {
				t.Errorf("%s: mode %v, want %v", name, is.Mode(), was.Mode())
			}
		}
		if info, err := os.Stat(filepath.Join(to, "state", "nothing")); err != nil || !info.IsDir() {
			t.Errorf("the empty folder: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(to, "state", "cache")); err == nil {
			t.Error("what is left out is there")
		}
		if runtime.GOOS == "windows" {
			return
		}
		for name, want := range map[string]string{"in": "sub/run.sh", "sub/up": "../a.txt", "absolute": "a.txt"} {
			if got, err := os.Readlink(filepath.Join(to, "state", name)); got != want {
				t.Errorf("the link %s leads to %q, %v; want %q", name, got, err, want)
			}
		}
		var left []string
		for _, l := range m.Left {
			left = append(left, strings.TrimPrefix(filepath.ToSlash(l.Path), filepath.ToSlash(dir)+"/")+": "+l.Why)
		}
		if got := strings.Join(left, "; "); strings.Count(got, "leads out") != 3 || !strings.Contains(got, "far: ") ||
			!strings.Contains(got, "sub/sly: ") {
			t.Errorf("left out: %s", got)
		}
	})
	t.Run("BU-04 an archive that is interrupted is an error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := archive.Create(ctx, io.Discard, t.TempDir(), "1", source(tree(t)),
			nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		temp := t.TempDir()
		full := errors.New("no space left on device")
		if _, err := archive.Create(t.Context(), &limited{n: 1000, err: full}, temp, "1", source(tree(t)),
			nil); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
		if list, err := os.ReadDir(temp); err != nil || len(list) > 0 {
			t.Errorf("left behind: %v, %v", list, err)
		}
	})
	t.Run("BU-02 an archive that is not sound is refused", func(t *testing.T) {
		dir := tree(t)
		b, _ := create(t, dir)
		for i := range b[:len(b)/1000] { // a changed bit anywhere
			bad := bytes.Clone(b)
			bad[i*999] ^= 4
			if i*999 < 10 { // the header of gzip has a time and an operating system
				continue
			}
			if _, err := archive.Verify(t.Context(), bytes.NewReader(bad)); err == nil {
				t.Errorf("the changed byte %d is not noticed", i*999)
			}
		}
		if _, err := archive.Verify(t.Context(), bytes.NewReader(b[:len(b)-1])); err == nil {
			t.Error("a cut archive is sound")
		}
		reg := func(name, text string) entry {
			return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}, text}
		}
		link := func(name, target string) entry {
			return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, ""}
		}
		folder := entry{tar.Header{Typeflag: tar.TypeDir, Name: "state/", Mode: 0o700}, ""}
		for name, tt := range map[string]struct {
			entries []entry
			want    string
		}{
			"a name above it":       {[]entry{reg("../x", "bad")}, "leads out"},
			"a name above it later": {[]entry{folder, reg("state/../../x", "bad")}, "leads out"},
			"an absolute name":      {[]entry{reg("/etc/x", "bad")}, "leads out"},
			"a backslash":           {[]entry{reg(`state\..\x`, "bad")}, "leads out"},
			"a link above it":       {[]entry{folder, link("state/l", "../../x")}, "leads out"},
			"an absolute link":      {[]entry{folder, link("state/l", "/etc/passwd")}, "leads out"},
			"a hidden way up":       {[]entry{folder, link("state/d", "a/b"), link("state/l", "d/../../..")}, "leads out"},
			"below a link":          {[]entry{folder, link("state/d", "a"), reg("state/d/x", "bad")}, "which is no folder"},
			"below a file":          {[]entry{reg("state", "a"), reg("state/x", "bad")}, "which is no folder"},
			"twice the same":        {[]entry{reg("a", "1"), reg("a", "1")}, "twice"},
			"a device":              {[]entry{{tar.Header{Typeflag: tar.TypeChar, Name: "d"}, ""}}, "neither"},
			"a hard link":           {[]entry{{tar.Header{Typeflag: tar.TypeLink, Name: "d", Linkname: "x"}, ""}}, "neither"},
			"no manifest":           {[]entry{reg("a", "1")}, "no manifest.json"},
			"what nobody listed":    {[]entry{reg("a", "1"), manifest(nil)}, "not in its manifest"},
			"two manifests":         {[]entry{manifest(nil), manifest(nil)}, "follows the manifest"},
			"what is missing":       {[]entry{manifest([]archive.File{{Path: "b", Size: 1, SHA256: "00"}})}, "missing"},
			"another content": {[]entry{reg("a", "1"),
				manifest([]archive.File{{Path: "a", Mode: 0o600, Size: 1, SHA256: "00"}})}, "is not what it was"},
			"another program": {[]entry{reg("manifest.json", `{"format":"tar"}`)}, "another program"},
			"a later layout": {[]entry{reg("manifest.json", `{"format":"chela-backup","version":2,"program":"9.9.9"}`)},
				"9.9.9"},
		} {
			t.Run(name, func(t *testing.T) {
				b := pack(t, tt.entries)
				if _, err := archive.Verify(t.Context(), bytes.NewReader(b)); err == nil ||
					!strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				to := filepath.Join(t.TempDir(), "to")
				if err := os.Mkdir(to, 0o700); err != nil {
					t.Fatal(err)
				}
				_ = archive.Extract(t.Context(), bytes.NewReader(b), &archive.Manifest{}, to,
					func(name string) string { return name })
				if list, err := os.ReadDir(filepath.Dir(to)); err != nil || len(list) != 1 {
					t.Errorf("extracted outside: %v, %v", list, err)
				}
			})
		}
	})
	t.Run("a file that changes while it is read is named", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "log")
		put(t, file, strings.Repeat("x", 5<<20), 0o600)
		temp := t.TempDir()
		s := source(dir)
		done, stop := make(chan struct{}), make(chan struct{})
		go func() { // it grows for ever
			defer close(done)
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return
			}
			defer f.Close()
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = f.WriteString("y")
				}
			}
		}()
		var b bytes.Buffer
		m, err := archive.Create(t.Context(), &b, temp, "1", s, nil)
		close(stop)
		<-done
		if err != nil || len(m.Left) != 1 || !strings.Contains(m.Left[0].Why, "changed while it was read") {
			t.Errorf("%+v, %v", m.Left, err)
		}
		if _, err := archive.Verify(t.Context(), &b); err != nil {
			t.Error(err)
		}
	})
}

type entry struct {
	tar.Header
	text string
}

func manifest(files []archive.File) entry {
	b, _ := json.Marshal(archive.Manifest{Format: archive.Format, Version: 1, Files: files})
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: archive.Name, Size: int64(len(b)), Mode: 0o600}, string(b)}
}

func pack(t *testing.T, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// limited fails after n bytes.
type limited struct {
	n   int
	err error
}

func (l *limited) Write(b []byte) (int, error) {
	if l.n -= len(b); l.n < 0 {
		return 0, l.err
	}
	return len(b), nil
}
