package sqlite

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// killedBase returns the files that a killed process leaves: sessions in the database,
// others in its log, and the index of the log.
func killedBase(t *testing.T) (files map[string][]byte) {
	t.Helper()
	path := filepath.Join(tempDir(t), "chela.db")
	d := openAt(t, path)
	conversations(t, d, 0, 4)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openAt(t, path)
	conversations(t, d, 4, 8)
	files = make(map[string][]byte)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		files[suffix] = b
	}
	return files
}

// putKilled writes the files of a killed process.
func putKilled(t *testing.T, files map[string][]byte) string {
	t.Helper()
	path := filepath.Join(tempDir(t), "chela.db")
	for suffix, b := range files {
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestDamagedLog flips bits and zeroes blocks in the log of a killed process.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	base := killedBase(t)
	const header, frame = 32, 24 + 4096
	log := base["-wal"]
	frames := (len(log) - header) / frame
	if frames < 8 {
		t.Fatalf("%d frames", frames)
	}
	damage := func(at, kind int) map[string][]byte {
		b := bytes.Clone(log)
		if kind == 0 {
			b[at] ^= 4
		} else {
			clear(b[at:min(at+4096, len(b))])
		}
		return map[string][]byte{"": base[""], "-wal": b, "-shm": base["-shm"]}
	}
	whole := readSessions(t, putKilled(t, base))

	t.Run("40 of 40 are noticed at the start, which changes nothing; salvage keeps the log", func(t *testing.T) {
		for n := range 40 {
			at := n * (len(log) - 1) / 39
			files := damage(at, n%2)
			path := putKilled(t, files)
			_, err := Open(t.Context(), Options{Path: path})
			if !errors.As(err, new(*DamagedError)) || !strings.Contains(chela.HintOf(err), "salvage") ||
				!strings.Contains(err.Error(), "the last one was written at 20") {
				t.Errorf("damage at %d: %v (hint %q)", at, err, chela.HintOf(err))
				continue
			}
			if _, err := Verify(t.Context(), path); !errors.As(err, new(*DamagedError)) {
				t.Errorf("damage at %d: verify: %v", at, err)
			}
			for suffix, want := range files {
				if have, err := os.ReadFile(path + suffix); err != nil || !bytes.Equal(have, want) {
					t.Errorf("damage at %d: chela.db%s was changed: %v", at, suffix, err)
				}
			}
			r, err := Recover(t.Context(), path)
			if err != nil {
				t.Errorf("damage at %d: salvage: %v", at, err)
				continue
			}
			if have, err := os.ReadFile(r.Renamed + "-wal"); err != nil || !bytes.Equal(have, files["-wal"]) {
				t.Errorf("damage at %d: the log was not kept: %v", at, err)
			}
			d := openAt(t, path)
			d.Close()
			if got := readSessions(t, path); at > header && len(got) < len(whole)-1 {
				t.Errorf("damage at %d: %d of %d sessions are left", at, len(got), len(whole))
			}
		}
	})
	t.Run("after the system started again, what the index says counts no more", func(t *testing.T) {
		for _, files := range []map[string][]byte{damage(len(log)-frame, 1), {"": base[""], "-shm": base["-shm"]}} {
			path := putKilled(t, files)
			if err := os.Chtimes(path+"-shm", time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			d.Close()
		}
	})
	t.Run("a missing log is noticed", func(t *testing.T) {
		path := putKilled(t, map[string][]byte{"": base[""], "-shm": base["-shm"]})
		if _, err := Open(t.Context(), Options{Path: path}); !errors.As(err, new(*DamagedError)) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a commit that the kill interrupted is no damage", func(t *testing.T) {
		for _, more := range []int{10, 24, 1000, frame - 1} {
			path := putKilled(t, map[string][]byte{
				"":     base[""],
				"-wal": append(bytes.Clone(log), log[header:header+more]...),
				"-shm": base["-shm"],
			})
			d := openAt(t, path)
			d.Close()
			if got := readSessions(t, path); len(got) != len(whole) {
				t.Errorf("%d bytes: %d of %d sessions", more, len(got), len(whole))
			}
		}
	})
	t.Run("without an index, intact commits after the damage are reported, and both files are kept", func(t *testing.T) {
		for kind := range 2 {
			files := damage(header+(frames/2)*frame+100, kind)
			delete(files, "-shm")
			path := putKilled(t, files)
			var said bytes.Buffer
			d, err := Open(t.Context(), Options{Path: path, Log: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			d.Close()
			if !strings.Contains(said.String(), `"missing since"="20`) {
				t.Errorf("log: %s", said.String())
			}
			kept, _ := filepath.Glob(path + ".damaged-*")
			if len(kept) != 2 {
				t.Fatalf("kept %q", kept)
			}
			checkPrivate(t, kept...)
			for i, suffix := range []string{"", "-wal"} {
				if have, err := os.ReadFile(kept[i]); err != nil || !bytes.Equal(have, files[suffix]) {
					t.Errorf("%s is not the file before the start: %v", kept[i], err)
				}
			}
		}
	})
	t.Run("without an index, a torn end is no damage", func(t *testing.T) {
		path := putKilled(t, map[string][]byte{"": base[""], "-wal": log[:len(log)-1000]})
		var said bytes.Buffer
		d, err := Open(t.Context(), Options{Path: path, Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		if said.Len() > 0 {
			t.Errorf("log: %s", said.String())
		}
	})
}

// BenchmarkCheckLog reads the longest log that a killed process leaves.
func BenchmarkCheckLog(b *testing.B) {
	path := filepath.Join(tempDir(b), "chela.db")
	d := openAt(b, path)
	for i := 0; ; i++ {
		conversations(b, d, i, i+1)
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > logPages*4096 {
			break
		}
	}
	for b.Loop() {
		if _, err := checkLog(path); err != nil {
			b.Fatal(err)
		}
	}
}
