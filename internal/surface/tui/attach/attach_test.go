package attach_test

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/wire"
)

func TestLine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a.png":            b.Bytes(),
		"my photo (1).png": b.Bytes(),
		"notes.txt":        []byte("x"),
		"cut.png":          b.Bytes()[:20],
		"large.png":        nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "large.png"), media.MaxImage+1); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(dir, "my photo (1).png")
	for _, c := range []struct{ line, text, file, err string }{
		{"hello", "hello", "", ""},
		{"/images of cats", "/images of cats", "", ""},
		{"/image ~/a.png", "", "a.png", ""},
		{" /image ~/a.png what is it?\n", "what is it?", "a.png", ""},
		{"/image\t" + filepath.Join(dir, "a.png") + " two  words\nand a line", "two  words\nand a line", "a.png", ""},
		{"/image '" + full + "' it", "it", "my photo (1).png", ""},
		{`/image "` + full + `"`, "", "my photo (1).png", ""},
		{"/image " + strings.NewReplacer(" ", `\ `, "(", `\(`, ")", `\)`).Replace(full) + " it", "it",
			"my photo (1).png", ""},
		{"/image ~/a.png\tit", "it", "a.png", ""},
		{"/image ~/a.png\nit", "it", "a.png", ""},
		{`/image ~/a\.png`, "", "", `a\.png: no such file`},
		{"/image", "", "", "no picture given"},
		{"/image ''", "", "", "no picture given"},
		{"/image none.png", "", "", "picture none.png: no such file"},
		{"/image ~/large.png", "", "", "large.png: too large: 6 MB, the maximum is 6 MB"},
		{"/image ~/notes.txt", "", "", "not a PNG"},
		{"/image ~/cut.png", "", "", "damaged"},
		{"/image ~", "", "", "not a regular file"},
	} {
		text, files, err := attach.ParseLine(c.line)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.line, err, c.err)
			}
			continue
		}
		if err != nil || text != c.text || len(files) != min(len(c.file), 1) {
			t.Errorf("%q: %q, %d files, %v", c.line, text, len(files), err)
			continue
		}
		if c.file == "" {
			continue
		}
		if f := files[0]; f.Type != "image" || f.FileName != c.file || f.MIME != "image/png" ||
			!bytes.Equal(f.Content, b.Bytes()) {
			t.Errorf("%q: %s %s, %d bytes", c.line, f.FileName, f.MIME, len(f.Content))
		}
		if got := attach.Preview(text, files); !strings.HasPrefix(got, "[image image/png, "+humanize.Bytes(int64(b.Len()))+
			"]") || !strings.HasSuffix(got, c.text) {
			t.Errorf("%q is shown as %q", c.line, got)
		}
	}
}

func TestText(t *testing.T) {
	m := wire.Message{Content: wire.Contents{
		{Type: wire.ContentText, Text: "a"}, {Type: wire.ContentText}, {Type: wire.ContentThinking, Text: "hidden"},
		{Type: wire.ContentImage, MIME: "image/png", Data: make([]byte, 7)},
		{Type: wire.ContentImage, MIME: "image/png", Bytes: 9}, {Type: wire.ContentText, Text: "b"},
	}}
	if got, want := attach.Text(m), "a\n[image image/png, 7 bytes]\n[image image/png, 9 bytes]\nb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"/image a b", `/image "a b" c`, `/image a\ b`, "/image", "/image '", `/image \`, "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		text, files, err := attach.ParseLine(line)
		if err != nil && (text != "" || files != nil) {
			t.Fatalf("%q: an error with %q", line, text)
		}
	})
}
