package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/test/chelatest/naughty"
)

// TestNaughty sets values that break programs. They are read back unchanged, also by
// the next process.
func TestNaughty(t *testing.T) {
	t.Parallel()
	all := naughty.Strings(t)
	dir := write(t, map[string]string{"chela.json": "{\n  // kept\n  env: {vars: {}},\n}\n"})
	path := filepath.Join(dir, "chela.json")
	tree, err := (Options{}).Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for some := range slices.Chunk(all, 8) {
		list, err := json.Marshal(some)
		if err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(some[0])
		if err != nil {
			t.Fatal(err)
		}
		if tree, err = writeEdits(tree, Edit{"session.mainKey", value}, Edit{"agents.defaults.model.fallbacks", list}); err !=
			nil {
			t.Fatalf("%q: %v", some, err)
		}
		again, err := (Options{}).Load(path)
		if err != nil {
			t.Fatalf("%q: %v", some, err)
		}
		for _, of := range []*Tree{tree, again} {
			var session struct {
				MainKey string `json:"mainKey"`
			}
			var model struct{ Fallbacks []string }
			if err := json.Unmarshal(of.Section("session"), &session); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(of.Section("agents.defaults.model"), &model); err != nil {
				t.Fatal(err)
			}
			if session.MainKey != some[0] || !slices.Equal(model.Fallbacks, some) {
				t.Errorf("%q became %q, %q", some, session.MainKey, model.Fallbacks)
			}
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b[:14]) != "{\n  // kept\n  " {
		t.Errorf("the file is %.40q, %v", b, err)
	}
}
