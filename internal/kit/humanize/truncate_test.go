package humanize_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s          string
		n          int
		want, size string
	}{
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"世界", 2, "世界", "…"},
		{"世界人", 2, "世界…", "…"},
		{"世界", 4, "世界", "世…"},
		{"abc", 0, "…", "…"},
	} {
		if got := humanize.Truncate(c.s, c.n); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
		if got := humanize.TruncateBytes(c.s, c.n); got != c.size {
			t.Errorf("TruncateBytes(%q, %d) = %q, want %q", c.s, c.n, got, c.size)
		}
	}
}

func TestTrimPartial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ b, want string }{
		{"", ""}, {"abc", "abc"}, {"a你", "a你"}, {"a\xe4\xbd", "a"}, {"a\xe4", "a"}, {"\xf0\x9d\x84", ""}, {"a\xff", "a\xff"},
		{"a\x80\x80\x80\x80", "a\x80\x80\x80\x80"},
	} {
		if got := string(humanize.TrimPartial([]byte(c.b))); got != c.want {
			t.Errorf("TrimPartial(%q) = %q, want %q", c.b, got, c.want)
		}
	}
}
