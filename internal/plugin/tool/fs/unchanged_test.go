package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

// A file that another program changes after a patch was applied to it in
// memory is not overwritten.
func TestUnchanged(t *testing.T) {
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, meanwhile := range map[string]func(path string) error{
		"nothing":      func(string) error { return nil },
		"a later time": func(path string) error { return os.Chtimes(path, began, began.Add(time.Second)) },
		"another size": func(path string) error {
			if err := os.WriteFile(path, []byte("one more\n"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, began, began)
		},
		"a deletion": os.Remove,
		"a new file": func(path string) error { return os.WriteFile(path+".new", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "f")
			if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, began, began); err != nil {
				t.Fatal(err)
			}
			dir, err := pathpolicy.Rule{}.Open(tool.Call{Dir: folder})
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			sections, err := parsePatch(
				"*** Begin Patch\n*** Add File: f.new\n+x\n*** Update File: f\n@@\n-one\n+two\n*** End Patch")
			if err != nil {
				t.Fatal(err)
			}
			patch := &tree{w: &workspace{Dir: dir, journal: journal.Off{}}, files: map[string]*file{}}
			for _, s := range sections {
				if err := patch.apply(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := meanwhile(path); err != nil {
				t.Fatal(err)
			}
			_, err = patch.write(t.Context())
			data, _ := os.ReadFile(path)
			if name == "nothing" {
				if err != nil || string(data) != "two\n" {
					t.Errorf("%q, %v", data, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), "nothing was changed") || string(data) == "two\n" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}
