package humanize

import "testing"

func TestParseBytes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"0": 0, "973": 973, "1kb": 1024, "1.5 MB": 1_572_864, " 2GB ": 2 << 30,
		"": -1, "mb": -1, "-1": -1, "x": -1, "1e300": -1, "NaN": -1, "1tb": -1,
	} {
		got, err := ParseBytes(s)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d (%v)", s, got, want, err)
		}
	}
}
