package prompt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, name, emoji string }{
		{"- **Name:** Anna\n- **Emoji:** 🦞\n", "Anna", "🦞"},
		{"- **Name:** (not chosen yet)\n- **Emoji:** (one, as a signature)", "", ""},
		{"Name: Bo\nemoji: 🐙", "Bo", "🐙"},
		{"* *Name*: C\x00arl", "C\\u{0}arl", ""},
		{"", "", ""},
		{":::\n- **Name:**\n", "", ""},
	} {
		if name, emoji := identity(tt.text); name != tt.name || emoji != tt.emoji {
			t.Errorf("identity(%q) = %q, %q; want %q, %q", tt.text, name, emoji, tt.name, tt.emoji)
		}
	}
	w := Open(t.TempDir(), nil)
	if _, err := Seed(w.Dir(), false); err != nil {
		t.Fatal(err)
	}
	if name, emoji := w.Identity(); name != "" || emoji != "" {
		t.Errorf("identity of a new workspace: %q, %q; want none", name, emoji)
	}
	if _, err := w.Write("IDENTITY.md", "- **Name:** Anna", ""); err != nil {
		t.Fatal(err)
	}
	if name, _ := w.Identity(); name != "Anna" {
		t.Errorf("name %q, want Anna", name)
	}
}

func FuzzIdentity(f *testing.F) {
	for _, s := range []string{"- **Name:** Anna", "Name:\u202e x", "emoji: (", "::", "- **Name:** *_*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range [2]string{first(identity(text)), second(identity(text))} {
			if len([]rune(s)) > 10*maxName || len(s) > 0 && Name(s) != s && len([]rune(s)) <= maxName {
				t.Errorf("identity(%q) gives %q", text, s)
			}
		}
	})
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

// TestEdit reads and writes the files of a workspace.
func TestEdit(t *testing.T) {
	t.Parallel()
	w := Open(filepath.Join(t.TempDir(), "workspace"), nil)
	for _, name := range []string{"notes.md", "agents.md", "", "../AGENTS.md", "memory/x.md"} {
		_, err := w.Stat(name)
		_, _, rerr := w.Read(name)
		_, werr := w.Write(name, "x", "")
		for _, err := range []error{err, rerr, werr} {
			if chela.CodeOf(err) != chela.CodeInvalid {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if info, text, err := w.Read("MEMORY.md"); err != nil || !info.Missing || !info.Optional || text != "" {
		t.Errorf("a file of no workspace: %+v, %q, %v", info, text, err)
	}
	most := strings.Repeat("x", MaxWrite)
	if _, err := w.Write("TOOLS.md", most+"x", ""); chela.CodeOf(err) != chela.CodeInvalid {
		t.Errorf("a file that is too long: %v", err)
	}
	before := time.Now().Add(-time.Minute)
	info, err := w.Write("TOOLS.md", most, "")
	if err != nil || info.Size != MaxWrite || info.Missing || info.Optional || info.Changed.Before(before) {
		t.Errorf("written %+v, %v", info, err)
	}
	put(t, filepath.Join(w.Dir(), "USER.md"), most+"x")
	if info, text, err := w.Read("USER.md"); err != nil || text != most || info.Size != MaxWrite+1 {
		t.Errorf("read %d bytes, %+v, %v", len(text), info, err)
	}
	if err := os.Mkdir(filepath.Join(w.Dir(), "SOUL.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stat("SOUL.md"); chela.CodeOf(err) != chela.CodeInvalid {
		t.Errorf("a directory: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	seeds := filepath.Join(t.TempDir(), "seeded")
	if _, err := Seed(seeds, false); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{ // nobody else may read them
		w.Dir(): 0o700, filepath.Join(w.Dir(), "TOOLS.md"): 0o600, seeds: 0o700, filepath.Join(seeds, "SOUL.md"): 0o600,
	} {
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
}

func TestSetIdentity(t *testing.T) {
	t.Parallel()
	w := Open(t.TempDir(), nil)
	if _, err := Seed(w.Dir(), false); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, emoji, wantName, wantEmoji string }{
		{"Ops", "", "Ops", ""}, {"", "🔧", "Ops", "🔧"}, {"Two: of it", "🦐", "Two: of it", "🦐"}, {"", "", "Two: of it", "🦐"},
	} {
		if err := w.SetIdentity(tt.name, tt.emoji); err != nil {
			t.Fatal(err)
		}
		if name, emoji := w.Identity(); name != tt.wantName || emoji != tt.wantEmoji {
			t.Errorf("after %q, %q: %q, %q", tt.name, tt.emoji, name, emoji)
		}
	}
	_, text, err := w.Read("IDENTITY.md")
	if err != nil || !strings.Contains(text, "- **Vibe:** (calm") || strings.Count(text, "Name:") != 1 {
		t.Errorf("error %v, file:\n%s", err, text)
	}
	if got := withValue("I am a crab.", "Name", "Ops"); got != "I am a crab.\n- **Name:** Ops\n" {
		t.Errorf("file without the line: %q", got)
	}
	if runtime.GOOS == "windows" { // links need rights, and are not counted
		return
	}
	env, identity := filepath.Join(w.Dir(), ".env"), filepath.Join(w.Dir(), "IDENTITY.md")
	put(t, env, "KEY=secret")
	for name, link := range map[string]func(string, string) error{"a link": os.Symlink, "a hard link": os.Link} {
		if err := errors.Join(os.Remove(identity), link(env, identity)); err != nil {
			t.Fatal(err)
		}
		err := w.SetIdentity("Eve", "")
		if b, _ := os.ReadFile(identity); err == nil || string(b) != "KEY=secret" {
			t.Errorf("%s to a private file: %v, and IDENTITY.md is %q; want an error and no copy", name, err, b)
		}
	}
}
