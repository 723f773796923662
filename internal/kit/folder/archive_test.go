package folder_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/folder"
)

// entry is a file of an archive; a name with a slash at the end is a folder.
type entry struct {
	name, text string
	kind       byte // of a tar; 0: by the name
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.text)), Linkname: "x"}
		switch {
		case e.kind == 0 && strings.HasSuffix(e.name, "/"):
			h.Typeflag, h.Linkname = tar.TypeDir, ""
		case e.kind == 0:
			h.Typeflag, h.Linkname = tar.TypeReg, ""
		case e.kind == tar.TypeXGlobalHeader:
			h = tar.Header{Typeflag: e.kind, PAXRecords: map[string]string{"comment": "x"}}
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, mode fs.FileMode, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if mode != 0 {
			h.SetMode(mode)
		}
		f, err := w.CreateHeader(&h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// extract unpacks an archive and returns its files.
func extract(t testing.TB, archive []byte) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	file, to := filepath.Join(dir, "archive"), filepath.Join(dir, "to")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	err := folder.Extract(file, to, limits)
	out := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == file {
			return err
		}
		rel, _ := filepath.Rel(to, path)
		text, err := os.ReadFile(path)
		out[filepath.ToSlash(rel)] = string(text)
		return err
	})
	return out, err
}

func TestExtract(t *testing.T) {
	t.Parallel()
	two := []entry{{"a.txt", "1", 0}, {"b/c.txt", "2", 0}}
	below := []entry{{"package/", "", 0}, {"package/a.txt", "1", 0}, {"package/b/c.txt", "2", 0}}
	for _, tt := range []struct {
		name    string
		archive []byte
	}{
		{"tar", tarOf(t, two...)},
		{"tar.gz", gzipOf(t, tarOf(t, two...))},
		{"zip", zipOf(t, 0, two...)},
		{"zip with modes", zipOf(t, 0o644, two...)},
		{"a folder at the top, tar.gz", gzipOf(t, tarOf(t, below...))},
		{"a folder at the top, zip", zipOf(t, 0, below...)},
		{"a folder at the top without an entry", tarOf(t, below[1:]...)},
		{"./ before the names", tarOf(t, entry{"./", "", 0}, entry{"./a.txt", "1", 0}, entry{"./b/", "", 0},
			entry{"./b//c.txt", "2", 0})},
		{"with a comment, as git makes it", tarOf(t, entry{kind: tar.TypeXGlobalHeader}, below[1], below[2])},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract(t, tt.archive)
			if err != nil || len(got) != 2 || got["a.txt"] != "1" || got["b/c.txt"] != "2" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	t.Run("a hidden folder at the top remains", func(t *testing.T) {
		if got, err := extract(t, tarOf(t, entry{".plugin/a", "1", 0})); err != nil || got[".plugin/a"] != "1" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("the permission to execute remains", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.zip")
		if err := os.WriteFile(file, zipOf(t, 0o4777, entry{"a", "", 0}), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := folder.Extract(file, filepath.Join(dir, "to"), limits); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, "to", "a")); err != nil || info.Mode() != 0o700 {
			t.Error(info.Mode(), err)
		}
	})
}

func TestExtractRefuses(t *testing.T) {
	t.Parallel()
	six := []entry{{"a", "", 0}, {"b", "", 0}, {"c", "", 0}, {"d", "", 0}, {"e", "", 0}, {"f", "", 0}}
	large := entry{"a", strings.Repeat("x", 1001), 0}
	whole := gzipOf(t, tarOf(t, entry{"a", "1", 0}))
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-6] ^= 1
	type test struct {
		name    string
		archive []byte
		want    string
	}
	tests := []test{
		{"nothing", nil, "no files"},
		{"not an archive", bytes.Repeat([]byte("hello"), 300), "not an archive"},
		{"an empty tar", tarOf(t), "no files"},
		{"folders only", tarOf(t, entry{"a/", "", 0}), "no files"},
		{"a symbolic link", tarOf(t, entry{"a", "", tar.TypeSymlink}), "neither"},
		{"a hard link", tarOf(t, entry{"a", "", tar.TypeLink}), "neither"},
		{"a device", tarOf(t, entry{"a", "", tar.TypeChar}), "neither"},
		{"a pipe", tarOf(t, entry{"a", "", tar.TypeFifo}), "neither"},
		{"a link in a zip", zipOf(t, fs.ModeSymlink|0o777, entry{"a", "/etc/passwd", 0}), "neither"},
		{"a pipe in a zip", zipOf(t, fs.ModeNamedPipe|0o777, entry{"a", "", 0}), "neither"},
		{"a cut gzip", whole[:len(whole)-9], "EOF"},
		{"a wrong checksum", wrong, "checksum"},
		{"a bomb", gzipOf(t, append(tarOf(t, entry{"a", "", 0}), make([]byte, 1<<20)...)), "more than"},
	}
	for _, same := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"too many files", six, "more than 5 files"},
		{"too many folders", []entry{{"a/b/c/d/e/f/", "", 0}}, "more than 5 files"},
		{"too large", []entry{large}, "1000 bytes"},
		{"too large together", []entry{{"a", strings.Repeat("x", 600), 0}, {"b", strings.Repeat("x", 600), 0}}, "1000 bytes"},
		{"an absolute path", []entry{{"/a", "", 0}}, "absolute"},
		{"a path upwards", []entry{{"a/../../b", "", 0}}, "invalid"},
		{"a folder upwards", []entry{{"../", "", 0}}, "invalid"},
		{"a backslash", []entry{{`a\b`, "", 0}}, "invalid"},
		{"a drive", []entry{{"c:a", "", 0}}, "invalid"},
		{"a device of Windows", []entry{{"a/nul.txt", "", 0}}, "invalid"},
		{"a port of Windows", []entry{{"Com1", "", 0}}, "invalid"},
		{"a point at the end", []entry{{"a./b", "", 0}}, "invalid"},
		{"a control character", []entry{{"a\nb", "", 0}}, "invalid"},
		{"a long name", []entry{{strings.Repeat("x", 256), "", 0}}, "invalid"},
		{"a long path", []entry{{strings.Repeat("x/", 401), "", 0}}, "too long"},
		{"a name twice", []entry{{"a", "", 0}, {"a", "", 0}}, "two files"},
		{"a name in another case", []entry{{"a", "", 0}, {"A", "", 0}}, "both"},
		{"a folder in another case", []entry{{"a/b", "", 0}, {"A/c", "", 0}}, "both"},
		{"a file that is a folder", []entry{{"a", "", 0}, {"a/b", "", 0}}, "both"},
		{"a folder that is a file", []entry{{"a/b", "", 0}, {"a", "", 0}}, "both"},
		{"a file without a name", []entry{{".", "", 0}}, "not the name"},
	} {
		tests = append(tests, test{same.name + ", tar", tarOf(t, same.entries...), same.want},
			test{same.name + ", zip", zipOf(t, 0, same.entries...), same.want})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract(t, tt.archive)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("a size in the header that is too small", func(t *testing.T) {
		b := zipOf(t, 0, large)
		// The uncompressed size is in the central directory, and in a descriptor after the content.
		at := bytes.LastIndex(b, []byte("PK\x01\x02"))
		copy(b[at+24:], []byte{1, 0, 0, 0})
		if _, err := extract(t, b); err == nil {
			t.Error("accepted")
		}
	})
}

// TestOverlap unpacks a zip whose entries all have the same content, which takes long
// to decompress to nothing.
func TestOverlap(t *testing.T) {
	t.Parallel()
	content := append(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 400_000), 1, 0, 0, 0xff, 0xff) // empty blocks
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "a", Method: zip.Deflate, CompressedSize64: uint64(len(content))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := extract(t, b.Bytes()); err != nil || len(got) != 1 || got["a"] != "" {
		t.Fatalf("one entry: %q, %v", got, err)
	}
	list, end := bytes.LastIndex(b.Bytes(), []byte("PK\x01\x02")), bytes.LastIndex(b.Bytes(), []byte("PK\x05\x06"))
	archive, header, tail := bytes.Clone(b.Bytes()[:end]), b.Bytes()[list:end], bytes.Clone(b.Bytes()[end:])
	for _, name := range "bcde" {
		archive = append(archive, header...)
		archive[len(archive)-len(header)+46] = byte(name)
	}
	for _, at := range []int{8, 10} { // the numbers of entries, then the size of the list
		binary.LittleEndian.PutUint16(tail[at:], 5)
	}
	binary.LittleEndian.PutUint32(tail[12:], uint32(5*len(header)))
	if _, err := extract(t, append(archive, tail...)); err == nil ||
		!strings.Contains(err.Error(), "larger than it seems") {
		t.Error(err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(tarOf(f, entry{"a/b", "1", 0}, entry{"a/c", "2", 0}))
	f.Add(tarOf(f, entry{"../a", "1", 0}))
	f.Add(tarOf(f, entry{"a", "", tar.TypeSymlink}))
	f.Add(gzipOf(f, tarOf(f, entry{"a", "1", 0})))
	f.Add(zipOf(f, 0, entry{"a/b", "1", 0}, entry{"c", "2", 0}))
	f.Add(zipOf(f, fs.ModeSymlink|0o777, entry{"a", "/etc", 0}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		got, err := extract(t, archive)
		size := 0
		for name, text := range got {
			if size += len(text); strings.HasPrefix(name, "../") && !strings.HasPrefix(name, "../to.top/") {
				t.Errorf("%s is outside of the folder", name)
			}
		}
		if err == nil && (size > int(limits.Bytes) || len(got) > limits.Files || len(got) == 0) {
			t.Errorf("%d files, %d bytes", len(got), size)
		}
	})
}
