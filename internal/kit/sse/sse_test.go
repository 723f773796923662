package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func read(r io.Reader, limit int) ([]string, error) {
	var all []string
	for e, err := range Read(r, limit) {
		if err != nil {
			return all, err
		}
		all = append(all, string(e))
	}
	return all, nil
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []string{"a"}},
		{"no space", "data:a\n\n", []string{"a"}},
		{"one space only is taken", "data:  a\n\n", []string{" a"}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"CR", "event: x\rdata: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"mixed ends", "data: a\rdata: b\ndata: c\r\n\n", []string{"a\nb\nc"}},
		{"several lines", "data: a\ndata:\ndata: b\n\n", []string{"a\n\nb"}},
		{"empty data", "data\n\n", []string{""}},
		{"two empty lines of data", "data:\ndata:\n\n", []string{"\n"}},
		{"no data, no event", "event: x\n\ndata: a\n\n", []string{"a"}},
		{"comment", ": ping\n\n:\n\ndata: a\n: more\n\n", []string{"a"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}},
		{"a second mark is part of the name", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", nil},
		{"other fields", "id: 7\nretry: 1500\ndata: a\n\nretry: 1x\ndata: b\n\n", []string{"a", "b"}},
		{"unknown field", "datum: x\ndata : y\ndata: a\n\n", []string{"a"}},
		{"the last event has no blank line", "data: a\n\ndata: b\n", []string{"a", "b"}},
		{"the last line has no end", "data: a\n\ndata: b\ndata: c", []string{"a", "b\nc"}},
		{"the last line ends in CR", "data: a\r\n\r\ndata: b\r", []string{"a", "b"}},
		{"a last comment has no end", "data: a\n\n: ping", []string{"a"}},
		{"invalid UTF-8 passes", "data: \xff\n\n", []string{"\xff"}},
	} {
		got, err := read(strings.NewReader(tt.in), 0)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: events (-want +got):\n%s", tt.name, d)
		}
	}
}

const sample = "\xef\xbb\xbf: hi\r\n\r\nevent: a\ndata: {\"x\":1}\n\ndata: one\r\ndata: two\r\rid: 5\rretry: 10\rdata: 三\r\n\r\n\n\ndata\n\n"

func TestSplit(t *testing.T) {
	t.Run("PROV-18 a stream split at every byte position gives equal events", func(t *testing.T) {
		t.Parallel()
		want, err := read(strings.NewReader(sample), 0)
		if err != nil || len(want) != 4 {
			t.Fatalf("events = %v, %v; want 4", want, err)
		}
		for i := range len(sample) {
			got, err := read(io.MultiReader(strings.NewReader(sample[:i]), strings.NewReader(sample[i:])), 0)
			if err != nil {
				t.Errorf("split at %d: %v", i, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("split at %d (-want +got):\n%s", i, d)
			}
		}
		got, err := read(iotest.OneByteReader(strings.NewReader(sample)), 0)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("byte by byte: %v (-want +got):\n%s", err, d)
		}
	})
}

func TestEventIsNotDelayed(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r", "\r\n\r"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "data: a"+end) }() // and the stream stays open
		for e, err := range Read(r, 0) {
			if err != nil || string(e) != "a" {
				t.Errorf("end %q: %q, %v", end, e, err)
			}
			break
		}
		_ = r.Close()
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		in     io.Reader
		limit  int
		events int
		want   error
	}{
		{"reader", io.MultiReader(strings.NewReader("data: a\n\ndata"), iotest.ErrReader(broken)), 0, 1, broken},
		{"reader, after a whole line", io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 0,
			1, broken},
		{"data with the error", iotest.DataErrReader(strings.NewReader("data: a\n\n")), 0, 1, nil},
		{"long line", strings.NewReader("data: a\n\ndata: " + strings.Repeat("x", 9000) + "\n\n"), 8000, 1, ErrTooLong},
		{"long line without end", strings.NewReader(strings.Repeat("x", 9000)), 8000, 0, ErrTooLong},
		{"long event of short lines", strings.NewReader(strings.Repeat("data: x\n", 5000)), 8000, 0, ErrTooLong},
		{"long comment", strings.NewReader("data: a\n\n:" + strings.Repeat("x", 2000) + "\n\n"), 1000, 1, ErrTooLong},
		{"comments do not add up", strings.NewReader(strings.Repeat(": x\n", 5000)), 8000, 0, nil},
		{"no progress", stuck{}, 0, 0, io.ErrNoProgress},
	} {
		got, err := read(tt.in, tt.limit)
		if !errors.Is(err, tt.want) || len(got) != tt.events {
			t.Errorf("%s: %d events, %v; want %d, %v", tt.name, len(got), err, tt.events, tt.want)
		}
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func FuzzSSE(f *testing.F) {
	for _, s := range []string{sample, "data: a\n\n", "\r\r\n\n", "\xef\xbb", "id: \x00\n", "data\rdata\r\n\r"} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		const limit = 1 << 12
		want, wantErr := read(bytes.NewReader(in), limit)
		i := int(at) % (len(in) + 1)
		for name, r := range map[string]io.Reader{
			"split":        io.MultiReader(bytes.NewReader(in[:i]), bytes.NewReader(in[i:])),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(in)),
		} {
			got, err := read(r, limit)
			if d := cmp.Diff(want, got); d != "" || !errors.Is(err, wantErr) {
				t.Errorf("%s: %v, want %v (-want +got):\n%s", name, err, wantErr, d)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{100, 2000} {
		line := fmt.Sprintf("event: content_block_delta\ndata: %s\n\n", strings.Repeat("x", size))
		in := []byte(strings.Repeat(line, 1<<20/len(line)))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for range Read(bytes.NewReader(in), 0) {
					n++
				}
				if n != 1<<20/len(line) {
					b.Fatal(n)
				}
			}
		})
	}
}
