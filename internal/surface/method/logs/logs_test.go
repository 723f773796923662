package logs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/wire"
)

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 999)
	at := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name string
		text string // of the file; "-": no file
		p    wire.LogsTail
		want wire.LogTail
	}{
		{"no file", "-", wire.LogsTail{}, wire.LogTail{}},
		{"a removed file", "-", wire.LogsTail{Cursor: at(5)}, wire.LogTail{Reset: true}},
		{"all", "a\nb\n", wire.LogsTail{}, wire.LogTail{Cursor: 4, Size: 4, Lines: []string{"a", "b"}}},
		{"an incomplete line", "a\nb", wire.LogsTail{}, wire.LogTail{Cursor: 2, Size: 3, Lines: []string{"a"}}},
		{"after the cursor", "a\nb\n", wire.LogsTail{Cursor: at(2)}, wire.LogTail{Cursor: 4, Size: 4, Lines: []string{"b"}}},
		{"nothing new", "a\nb\n", wire.LogsTail{Cursor: at(4)}, wire.LogTail{Cursor: 4, Size: 4}},
		{"a rotated file", "c\n", wire.LogsTail{Cursor: at(4)},
			wire.LogTail{Cursor: 2, Size: 2, Lines: []string{"c"}, Reset: true}},
		{
			"a record", `{"time":"t","level":"INFO","msg":"up","url":"ws://x"}` + "\n", wire.LogsTail{},
			wire.LogTail{Cursor: 54, Size: 54,
				Lines: []string{`{"message":"up url=ws://x","time":"t","level":"INFO","msg":"up","url":"ws://x"}`}},
		},
		{"the newest lines", "a\nb\nc\n", wire.LogsTail{Limit: 2},
			wire.LogTail{Cursor: 6, Size: 6, Lines: []string{"b", "c"}, Truncated: true}},
		{"at most 5,000 lines", strings.Repeat("a\n", 6000), wire.LogsTail{Limit: 9000},
			wire.LogTail{Cursor: 12_000, Size: 12_000, Lines: slices.Repeat([]string{"a"}, 5000), Truncated: true}},
		{
			"at most 1,000,000 bytes", strings.Repeat(long+"\n", 2000), wire.LogsTail{Limit: 5000, MaxBytes: 9_000_000},
			wire.LogTail{Cursor: 2_000_000, Size: 2_000_000, Lines: slices.Repeat([]string{long}, 999), Truncated: true},
		},
		{"the newest bytes", "aaaa\nb\nc\n", wire.LogsTail{MaxBytes: 5},
			wire.LogTail{Cursor: 9, Size: 9, Lines: []string{"b", "c"}, Truncated: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "chela.log")
			if tt.text != "-" {
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Options{Path: path}.tail(tt.p)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.File = path
			if tt.want.Lines == nil {
				tt.want.Lines = []string{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", strings.TrimSpace(diff))
			}
		})
	}
}
