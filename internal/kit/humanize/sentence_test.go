package humanize

import "testing"

func TestSentence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "",
		"Read a file. In parts.":       "Read a file.",
		" Read\n a  file. \nIn parts.": "Read a file.",
		"Read a.txt":                   "Read a.txt",
		"Über alle Maßen lang":         "Über alle Maß…",
	} {
		if got := Sentence(in, 13); got != want {
			t.Errorf("Sentence(%q) = %q, want %q", in, got, want)
		}
	}
}
