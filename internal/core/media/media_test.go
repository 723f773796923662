package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
)

// picture returns an image with a red left half and a blue right half.
func picture(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{R: 255, A: 255}
			if x >= w/2 {
				c = color.RGBA{B: 255, A: 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

// noise returns an image that does not compress.
func noise(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	_, _ = rand.NewChaCha8([32]byte{}).Read(m.Pix)
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return m
}

func encoded(t testing.TB, kind string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case media.PNG:
		err = png.Encode(&b, m)
	case media.JPEG:
		err = jpeg.Encode(&b, m, nil)
	case media.GIF:
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pngHeader returns the header of a PNG of the given size.
func pngHeader(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	b = append(b, 8, 6, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
}

func webp(form string, data ...byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8"+form+"\x00\x00\x00\x00"), data...)
	return append(b, make([]byte, 32)...)
}

// rotated returns the JPEG with an EXIF orientation.
func rotated(jpg []byte, orientation byte) []byte {
	exif := append([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"),
		orientation, 0, 0, 0, 0, 0, 0, 0)
	seg := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return slices.Concat(jpg[:2], seg, exif, jpg[2:])
}

// exif returns a segment with EXIF data.
func exif(parts ...string) []byte {
	data := "Exif\x00\x00" + strings.Join(parts, "")
	return append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(data)+2)), data...)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	small := picture(40, 30)
	jpg := encoded(t, media.JPEG, small)
	for _, c := range []struct {
		name string
		data []byte
		want media.Info
	}{
		{"png", encoded(t, media.PNG, small), media.Info{Type: media.PNG, Width: 40, Height: 30, Orientation: 1}},
		{"jpeg", jpg, media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 1}},
		{"a rotated jpeg", rotated(jpg, 6), media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 6}},
		{"a rotated jpeg with fill bytes, another segment and another field before",
			slices.Concat(jpg[:2], []byte{0xff, 0xff, 0xfe, 0, 4, 'h', 'i'}, exif("MM\x00*\x00\x00\x00\x08\x00\x02",
				"\x01\x0f\x00\x03\x00\x00\x00\x01\x00\x08\x00\x00", "\x01\x12\x00\x03\x00\x00\x00\x01\x00\x03\x00\x00"), jpg[2:]),
			media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 3}},
		{"a jpeg whose EXIF data has no field",
			slices.Concat(jpg[:2], exif("II*\x00\x08\x00\x00\x00\x00\x00", "\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"),
				jpg[2:]), media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 1}},
		{"a jpeg with an offset past its EXIF data", slices.Concat(jpg[:2], exif("II*\x00\xff\xff\xff\xff"), jpg[2:]),
			media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 1}},
		{"a jpeg with an invalid orientation", rotated(jpg, 77),
			media.Info{Type: media.JPEG, Width: 40, Height: 30, Orientation: 1}},
		{"gif", encoded(t, media.GIF, small), media.Info{Type: media.GIF, Width: 40, Height: 30, Orientation: 1}},
		{"webp, lossy", webp(" ", 0, 0, 0, 0x9d, 1, 0x2a, 40, 0, 30, 0),
			media.Info{Type: media.WebP, Width: 40, Height: 30, Orientation: 1}},
		{"webp, lossless", webp("L", 0x2f, 39, 0x40, 7, 0),
			media.Info{Type: media.WebP, Width: 40, Height: 30, Orientation: 1}},
		{"webp, extended", webp("X", 0, 0, 0, 0, 39, 0, 0, 29, 0, 0),
			media.Info{Type: media.WebP, Width: 40, Height: 30, Orientation: 1}},
		{"a decompression bomb", pngHeader(60000, 60000),
			media.Info{Type: media.PNG, Width: 60000, Height: 60000, Orientation: 1}},
	} {
		got, err := media.Probe(c.data)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
	for name, data := range map[string][]byte{
		"empty":                       nil,
		"text":                        []byte("hello"),
		"svg":                         []byte("<svg/>"),
		"only the magic number":       []byte("\x89PNG\r\n\x1a\n"),
		"no pixels":                   pngHeader(0, 5),
		"a webp that is no key frame": webp(" ", 1, 0, 0, 0x9d, 1, 0x2a, 40, 0, 30, 0),

		"a webp without its start code":         webp(" ", 0, 0, 0, 0x9d, 1, 0x2b, 40, 0, 30, 0),
		"a lossless webp without its signature": webp("L", 0x2e, 39, 0x40, 7, 0),
		"an unknown webp": webp("Y", 0, 0, 0, 0, 39,
			0, 0, 29, 0, 0),
		"a flat webp":                 webp(" ", 0, 0, 0, 0x9d, 1, 0x2a, 40, 0, 0, 0),
		"a webp in another container": append([]byte("RIFX"), webp("X", 0, 0, 0, 0, 39, 0, 0, 29, 0, 0)[4:]...),
		"a truncated jpeg":            jpg[:20],
		"a webp without data":         []byte("RIFF\x00\x00\x00\x00WEBPVP8 "),

		"a truncated gif": []byte("GIF89a\x01"),
	} {
		if i, err := media.Probe(data); err == nil {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

func FuzzProbe(f *testing.F) {
	jpg := encoded(f, media.JPEG, picture(8, 8))
	for _, seed := range [][]byte{
		encoded(f, media.PNG, picture(3, 3)), jpg, rotated(jpg, 8), encoded(f, media.GIF, picture(3, 3)),
		pngHeader(1<<31-1, 1<<31-1),
		webp(" ", 0, 0, 0, 0x9d, 1, 0x2a, 40, 0, 30, 0), webp("L", 0x2f, 39, 0x40, 7, 0), webp("X"),
		[]byte("\xff\xd8\xff"), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := media.Probe(data)
		if err != nil {
			return
		}
		if i.Width <= 0 || i.Height <= 0 || i.Orientation < 1 || i.Orientation > 8 || i.Pixels() <= 0 {
			t.Fatalf("%+v", i)
		}
		if i.Pixels() > 1<<20 || i.Type == media.WebP {
			return
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil &&
			(c.Width != i.Width || c.Height != i.Height) {
			t.Fatalf("%d × %d, decoded %d × %d", i.Width, i.Height, c.Width, c.Height)
		}
	})
}

func TestScale(t *testing.T) {
	t.Parallel()
	clear := picture(300, 100)
	clear.SetRGBA(0, 0, color.RGBA{})
	for _, c := range []struct {
		name string
		data []byte
		kind string
		w, h int
		same bool
	}{
		{"small enough", encoded(t, media.PNG, picture(100, 50)), media.PNG, 100, 50, true},
		{"wide", encoded(t, media.PNG, picture(300, 100)), media.JPEG, 100, 33, false},
		{"high", encoded(t, media.JPEG, picture(99, 1000)), media.JPEG, 9, 100, false},
		{"a line", encoded(t, media.PNG, picture(5000, 1)), media.JPEG, 100, 1, false},
		{"transparent", encoded(t, media.PNG, clear), media.PNG, 100, 33, false},
		{"gif", encoded(t, media.GIF, picture(200, 200)), media.JPEG, 100, 100, false},
		{"rotated", rotated(encoded(t, media.JPEG, picture(80, 40)), 6), media.JPEG, 40, 80, false},
		{"webp", webp("X", 0, 0, 0, 0, 0xff, 0xff, 0, 29, 0, 0), media.WebP, 65536, 30, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, kind, err := media.Scale(c.data, 100)
			if err != nil || kind != c.kind || bytes.Equal(got, c.data) != c.same {
				t.Fatalf("%s, %v, unchanged: %v", kind, err, bytes.Equal(got, c.data))
			}
			i, err := media.Probe(got)
			if err != nil || i.Width != c.w || i.Height != c.h || i.Orientation != 1 {
				t.Errorf("%+v, %v; want %d × %d", i, err, c.w, c.h)
			}
		})
	}
	if _, _, err := media.Scale(pngHeader(5001, 5000), 100); err == nil ||
		!strings.Contains(err.Error(), "at most 25 million") {
		t.Errorf("too many pixels: %v", err)
	}
	if got, kind, err := media.Scale(encoded(t, media.PNG, clear), 0); kind != media.PNG || err != nil ||
		!bytes.Equal(got, encoded(t, media.PNG, clear)) {
		t.Errorf("no limit: %d bytes of %s, %v", len(got), kind, err)
	}
	for name, data := range map[string][]byte{
		"a decompression bomb": pngHeader(60000, 60000),
		"truncated":            pngHeader(500, 500),
		"text":                 []byte("x"),
	} {
		if _, _, err := media.Scale(data, 100); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestMean checks that each pixel is the mean of those that it covers, apart from rounding.
func TestMean(t *testing.T) {
	t.Parallel()
	src := image.NewRGBA(image.Rect(0, 0, 5, 3))
	for y := range 3 {
		for x := range 5 {
			src.SetRGBA(x, y, color.RGBA{R: uint8(40 * x), G: uint8(60 * y), B: uint8(20 * x * y), A: 250})
		}
	}
	data, kind, err := media.Scale(encoded(t, media.PNG, src), 4) // 4 × 2
	if err != nil || kind != media.PNG {
		t.Fatal(kind, err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil || got.Bounds() != image.Rect(0, 0, 4, 2) {
		t.Fatal(got.Bounds(), err)
	}
	// The columns of a source of 5 are 0, 1, 2 and 3-4; the rows of 3 are 0 and 1-2.
	for at, want := range map[image.Point][4]uint32{
		{}:           {0, 0, 0, 250},
		{X: 2}:       {80, 0, 0, 250},
		{X: 3}:       {140, 0, 0, 250},
		{X: 1, Y: 1}: {40, 90, 30, 250},
		{X: 3, Y: 1}: {140, 90, 105, 250},
	} {
		r, g, b, a := got.At(at.X, at.Y).RGBA()
		for i, v := range [4]uint32{r, g, b, a} {
			if d := int(v>>8) - int(want[i]); d < -3 || d > 3 {
				t.Errorf("%v: %d %d %d %d, want %v", at, r>>8, g>>8, b>>8, a>>8, want)
				break
			}
		}
	}
}

// TestCorner checks where the one red corner is for each orientation.
func TestCorner(t *testing.T) {
	t.Parallel()
	src := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for i := range src.Pix {
		src.Pix[i] = 255
	}
	draw.Draw(src, image.Rect(0, 0, 16, 16), image.NewUniform(color.RGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	jpg := encoded(t, media.JPEG, src)
	for orientation, corner := range [...]image.Point{
		2: {X: 1},
		3: {X: 1, Y: 1},
		4: {Y: 1},
		5: {},
		6: {X: 1},
		7: {X: 1, Y: 1},
		8: {Y: 1},
	} {
		if orientation < 2 {
			continue
		}
		m := upright(t, jpg, orientation)
		for _, at := range []image.Point{{}, {X: 1}, {Y: 1}, {X: 1, Y: 1}} {
			_, g, _, _ := m.At(3+at.X*(m.Bounds().Dx()-7), 3+at.Y*(m.Bounds().Dy()-7)).RGBA()
			if red := g < 0x8000; red != (at == corner) {
				t.Errorf("orientation %d: the corner %v is red: %v", orientation, at, red)
			}
		}
	}
}

// upright returns a picture with this orientation as it is scaled for a model.
func upright(t *testing.T, jpg []byte, orientation int) image.Image {
	t.Helper()
	data, _, err := media.Scale(rotated(jpg, byte(orientation)), 60)
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOrientation checks the side of the red half for each orientation.
func TestOrientation(t *testing.T) {
	t.Parallel()
	jpg := encoded(t, media.JPEG, picture(64, 32))
	red := [...]string{1: "left", 2: "right", 3: "right", 4: "left", 5: "top", 6: "top", 7: "bottom", 8: "bottom"}
	for orientation := 1; orientation <= 8; orientation++ {
		m := upright(t, jpg, orientation)
		w, h := m.Bounds().Dx(), m.Bounds().Dy()
		at := map[string]image.Point{
			"left":   {2, h / 2},
			"right":  {w - 3, h / 2},
			"top":    {w / 2, 2},
			"bottom": {w / 2, h - 3},
		}[red[orientation]]
		if r, _, b, _ := m.At(at.X, at.Y).RGBA(); r < b {
			t.Errorf("orientation %d: %d × %d, the %s is not red", orientation, w, h, red[orientation])
		}
	}
}

func open(t testing.TB) (*media.Files, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), media.Dir)
	f, err := media.Open(dir, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, dir
}

// age sets the times of all files to before the grace period.
func age(t testing.TB, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, e := range list {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

func rows(refs ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return refs, nil }
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	one, err := f.Put([]byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Put([]byte("one"))
	if err != nil || again != one {
		t.Errorf("references of the same content: %s and %s, %v", one, again, err)
	}
	path := filepath.Join(dir, one)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if got, err := f.Read(one); string(got) != "one" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	for _, ref := range []string{"", "../chela.db", strings.Repeat("0", 32), "/etc/passwd"} {
		if _, err := f.Read(ref); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read("note.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not in the store was read: %v", err)
	}
	if _, _, err := f.Scaled("note.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not in the store was scaled: %v", err)
	}
	if err := os.Symlink("note.txt", filepath.Join(dir, strings.Repeat("a", 32))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("On\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put([]byte("one")); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Read(one); string(got) != "one" {
		t.Errorf("the damaged file was not replaced: %q", got)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	for range 2 {
		if n, err := media.Copy(dir, copied); n != 1 || err != nil {
			t.Errorf("%d files, %v", n, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(copied, one)); string(got) != "one" || err != nil {
		t.Errorf("copied: %q %v", got, err)
	}
	if n, err := media.Copy(filepath.Join(dir, "none"), copied); n != 0 || err != nil {
		t.Errorf("no source directory: %d, %v", n, err)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	live, _ := f.Put([]byte("live"))
	gone, _ := f.Put([]byte("gone"))
	touched, _ := f.Put([]byte("touched"))
	for _, name := range []string{".tmp-left", "note.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	age(t, dir)
	fresh, _ := f.Put([]byte("fresh")) // a row may be about to refer to it
	if _, err := f.Put([]byte("touched")); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := f.Sweep(canceled, rows()); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %d removed, %v", n, err)
	}
	if n, err := f.Sweep(t.Context(), func(context.Context) ([]string, error) { return nil, errors.New("no rows") }); n !=
		0 || err == nil {
		t.Errorf("%d files were removed although the rows could not be read, %v", n, err)
	}
	n, err := f.Sweep(t.Context(), rows(live))
	if n != 2 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	for ref, want := range map[string]bool{live: true, gone: false, touched: true, fresh: true} {
		if _, err := f.Read(ref); (err == nil) != want {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "note.txt")); err != nil {
		t.Error("a file that is not in the store was removed")
	}
}

// TestSweepRace puts old content again during concurrent sweeps, and checks that the
// file exists after Put has returned.
func TestSweepRace(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	ref, err := f.Put([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 30 {
		age(t, dir)
		wg.Go(func() { _, _ = f.Sweep(t.Context(), rows()) })
		if _, err := f.Put([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if _, err := f.Read(ref); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a1", 16), strings.Repeat("b2", 16)
	row := fmt.Sprintf(`[{"k":"image","ref":"%s"},{"t":"say \"ref\":\"%s\""},{"ref":"short"},{"ref":"%s"}]`, a,
		strings.Repeat("c3", 16), b)
	if diff := cmp.Diff([]string{"x", a, b}, media.Refs([]string{"x"}, row)); diff != "" {
		t.Error(diff)
	}
	for s, want := range map[string]string{
		"media:" + a:                             a,
		" media://" + strings.ToUpper(a) + "\n":  a,
		a:                                        "",
		"media:../x":                             "",
		"media:":                                 "",
		"media:0123456789abcdef0123456789abcdef": "0123456789abcdef0123456789abcdef",
		"media:/0123456789abcdef0123456789abcde": "",
		"media:0123456789abcdef0123456789abcdeg": "",
		"media:0123456789abcdef0123456789abcde:": "",

		"media:0123456789abcdef0123456789abcde.": "",
		"media:0123456789abcdef0123456789abcde`": "",
	} {
		if got, ok := media.ParseRef(s); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s %v", s, got, ok)
		}
		if got := media.IsFile(s); got != (want == "") {
			t.Errorf("%q is a file: %v", s, got)
		}
	}
	if media.IsFile("https://host/a.png") || !media.IsFile("a.png") {
		t.Error("an address is a file, or a file is none")
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	f, _ := open(t)
	pic := encoded(t, media.PNG, picture(10, 10))
	for _, c := range []struct {
		name, claimed string
		data          []byte
		kind          string
		refused       string
	}{
		{"a.png", "image/png", pic, media.PNG, ""},
		{"a.jpg", "image/jpeg", pic, media.PNG, ""},
		{"a.txt", "text/plain", pic, media.PNG, ""},
		{"a.png", "image/png", []byte("#!/bin/sh\n"), "text/plain", ""},
		{"a.csv", "text/csv", []byte("a,b\n"), "text/csv", ""},
		{"b.csv", " Text/CSV; charset=utf-8", []byte("a,b\n"), "text/csv", ""},
		{"a.docx", "application/x-docx", []byte("PK\x03\x04"), media.Docx, ""},
		{"a.odt", "application/x-odt", []byte("PK\x03\x04"), "application/x-odt", ""},
		{"a.bin", "application/x-own", []byte("\x00\x01\x02"), "application/x-own", ""},
		{"b.bin", "", []byte("\x00\x01\x02"), "application/octet-stream", ""},
		{"b.pdf", "text/html", []byte("%PDF-1.7\n"), "application/pdf", ""},
		{"max.png", "", append(bytes.Clone(pic), make([]byte, media.MaxImage-len(pic))...), media.PNG, ""},
		{"wide.png", "", pngHeader(5000, 5000), media.PNG, ""},
		{"a.pdf", "", []byte("%PDF-1.7\n"), "application/pdf", ""},
		{"bomb.png", "image/png", pngHeader(60000, 60000), "", "60000 × 60000 pixels; at most 25 million"},
		{"cut.png", "image/png", pic[:20], "", "damaged"},
		{"wider.png", "image/png", pngHeader(5001, 5000), "", "at most 25 million"},
		{"large.png", "image/png", append(bytes.Clone(pic), make([]byte, media.MaxImage)...), "", "6 MB; at most 6 MB"},
	} {
		got, err := f.Store(chela.Media{Name: c.name, Type: c.claimed, Data: c.data})
		if c.refused != "" {
			if chela.CodeOf(err) != chela.CodeInvalid || !strings.Contains(err.Error(), c.refused) ||
				!strings.Contains(err.Error(), c.name) {
				t.Errorf("%s: %v, want %q", c.name, err, c.refused)
			}
			continue
		}
		if err != nil || got.Type != c.kind || got.Data != nil || got.Size() != len(c.data) {
			t.Errorf("%s (%s): %+v, %v", c.name, c.claimed, got, err)
			continue
		}
		if again, err := f.Store(got); err != nil || again.Ref != got.Ref {
			t.Errorf("%s: stored again: %+v, %v", c.name, again, err)
		}
		back, err := f.Load(got)
		if err != nil || !bytes.Equal(back.Data, c.data) || back.Ref != "" {
			t.Errorf("%s: loaded %d bytes, %v", c.name, len(back.Data), err)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	pic := encoded(t, media.PNG, picture(10, 10))
	p := f.StorePart(llm.Image("image/jpeg", pic))
	if p.Ref == "" || p.Data != nil || p.MIME != media.PNG || p.Size() != len(pic) {
		t.Errorf("%+v", p)
	}
	if again := f.StorePart(p); again.Ref != p.Ref {
		t.Errorf("%+v", again)
	}
	for _, bad := range [][]byte{[]byte("not an image"), pngHeader(60000, 60000)} {
		if p := f.StorePart(llm.Image("image/png", bad)); p.Kind != llm.PartText || !strings.Contains(p.Text, "left out") {
			t.Errorf("%+v", p)
		}
	}
	if text := f.StorePart(llm.Text("see")); text.Text != "see" {
		t.Errorf("%+v", text)
	}
	m := &llm.Message{
		Role:     llm.RoleTool,
		CallID:   "c",
		ToolName: "t",
		IsError:  true,
		Provider: "p",
		Model:    "m",
		Stop:     llm.StopEnd,
		Parts:    []llm.Part{llm.Text("see"), p},
	}
	full := f.Fill(m)
	if diff := cmp.Diff(&llm.Message{
		Role:     m.Role,
		CallID:   "c",
		ToolName: "t",
		IsError:  true,
		Provider: "p",
		Model:    "m",
		Stop:     m.Stop,
		Parts:    []llm.Part{llm.Text("see"), llm.Image(media.PNG, pic)},
	}, full, cmpopts.IgnoreUnexported(llm.Message{})); diff != "" {
		t.Errorf("filled: %s", diff)
	}
	if !bytes.Equal(full.Parts[1].Data, pic) || m.Parts[1].Data != nil || full.CallID != "c" {
		t.Errorf("filled %+v, was %+v", full, m)
	}
	if f.FillScaled(m, len(pic)-1) != m {
		t.Error("an image that is too large even when scaled was filled in")
	}
	large := encoded(t, media.PNG, noise(300, 300))
	m.Parts[1] = f.StorePart(llm.Image("image/png", large))
	if whole := f.FillScaled(m, len(large)).Parts[1]; !bytes.Equal(whole.Data, large) || whole.MIME != media.PNG {
		t.Errorf("an image as large as the limit: %d bytes of %s", len(whole.Data), whole.MIME)
	}
	scaled := f.FillScaled(m, 100_000).Parts[1]
	if i, err := media.Probe(scaled.Data); err != nil || i.Width != 100 || scaled.MIME != media.JPEG ||
		scaled.Ref != "" || len(large) < 100_000 {
		t.Errorf("scaled: %+v, %v", i, err)
	}
	again, kind, err := f.Scaled(m.Parts[1].Ref)
	if err != nil || kind != media.JPEG || !bytes.Equal(again, scaled.Data) {
		t.Errorf("scaled again: %d bytes of %s, %v", len(again), kind, err)
	}
	cached := filepath.Join(dir, m.Parts[1].Ref+"-100")
	for _, content := range [][]byte{encoded(t, media.PNG, picture(7, 7)), []byte("damaged")} {
		want := scaled.Data
		if _, err := media.Probe(content); err == nil {
			want = content
		}
		if err := os.WriteFile(cached, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.Scaled(m.Parts[1].Ref); err != nil || !bytes.Equal(got, want) {
			t.Errorf("with %d bytes in the cache: %d bytes, %v", len(content), len(got), err)
		}
	}
	age(t, dir)
	if n, err := f.Sweep(t.Context(), rows(m.Parts[1].Ref)); n != 1 || err != nil { // removes the first image
		t.Errorf("%d swept, %v", n, err)
	}
	if n, err := f.Sweep(t.Context(), rows()); n != 2 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	p = f.StorePart(llm.Image("image/png", pic))
	m.Parts[1] = p
	if err := os.RemoveAll(filepath.Join(dir, p.Ref)); err != nil {
		t.Fatal(err)
	}
	if f.Fill(m) != m {
		t.Error("a missing image was filled in")
	}
}
