package prompt

import (
	"strings"
	"testing"
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
	w := Open(t.TempDir())
	if _, err := Seed(w.Dir()); err != nil {
		t.Fatal(err)
	}
	if name, emoji := w.Identity(); name != "" || emoji != "" {
		t.Errorf("identity of a new workspace: %q, %q; want none", name, emoji)
	}
	if _, err := w.Write("IDENTITY.md", "- **Name:** Anna"); err != nil {
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

func TestSetIdentity(t *testing.T) {
	t.Parallel()
	w := Open(t.TempDir())
	if _, err := Seed(w.Dir()); err != nil {
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
}
