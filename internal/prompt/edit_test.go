package prompt

import "testing"

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
		t.Errorf("a new workspace is %q, %q; want nobody yet", name, emoji)
	}
	if _, err := w.Write("IDENTITY.md", "- **Name:** Anna"); err != nil {
		t.Fatal(err)
	}
	if name, _ := w.Identity(); name != "Anna" {
		t.Errorf("the workspace is %q, want Anna", name)
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
