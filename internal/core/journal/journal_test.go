package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/journal"
)

// at returns the version with a text; "-": the target does not exist; "?": it is not kept.
func at(text string) journal.Version {
	switch text {
	case "-":
		return journal.Version{}
	case "?":
		return journal.Version{Exists: true, Size: 9 << 20}
	}
	return journal.TextVersion(text)
}

// change is a change given as "target before after".
func change(id, s string) journal.Change {
	f := strings.Fields(s)
	return journal.Change{
		ID:     id,
		Unit:   "u" + id,
		Kind:   journal.File,
		Target: f[0],
		Before: at(f[1]),
		After:  at(f[2]),
		State:  journal.Done,
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		changes []string // newest first
		want    []string // target, from, to, changes, refusal
	}{
		{"nothing", nil, nil},
		{"one", []string{"f a b"}, []string{"f b>a 0 "}},
		{"folded", []string{"f b c", "g - x", "f a b"}, []string{"f c>a 0,2 ", "g x>- 1 "}},
		{"made and deleted", []string{"f a -", "f - a"}, []string{"f ->- 0,1 "}},
		{"another change in between", []string{"f x c", "f a b"}, []string{"f c>a 0,1 it was also changed in between"}},
		{"not kept", []string{"f ? b"}, []string{"f b>? 0 its earlier content (9 MB) was not kept"}},
		{"not kept in between", []string{"f ? c", "f a b"}, []string{"f c>a 0,1 it was also changed in between"}},
		{"a move", []string{"old a -", "new - a"}, []string{"old ->a 0 ", "new a>- 1 "}},
	} {
		var changes []journal.Change
		for i, s := range tt.changes {
			changes = append(changes, change(fmt.Sprint(i), s))
		}
		var got []string
		for _, s := range journal.Steps(changes) {
			name := func(v journal.Version) string {
				switch {
				case !v.Exists:
					return "-"
				case v.Text == "":
					return "?"
				}
				return v.Text
			}
			got = append(got, fmt.Sprintf("%s %s>%s %s %s", s.Target, name(s.From), name(s.To), strings.Join(s.IDs(), ","),
				s.Refused))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	var changes []journal.Change
	for i, unit := range []string{"c", "b", "c", "a", "b"} {
		c := change(fmt.Sprint(i), "f a b")
		c.Unit = unit
		changes = append(changes, c)
	}
	for n, want := range []string{"", "02", "0124", "01234", "01234"} {
		got := ""
		for _, c := range journal.Units(changes, n, func(journal.Change) bool { return true }) {
			got += c.ID
		}
		if got != want {
			t.Errorf("%d units: %s, want %s", n, got, want)
		}
	}
}

func TestBlame(t *testing.T) {
	t.Parallel()
	texts := []string{"a\nb\nc\nd\n", "a\nb\nd\n", "x\nb\nd\n", "b\n"} // newest first
	var changes []journal.Change
	for i := range len(texts) - 1 {
		changes = append(changes, journal.Change{ID: fmt.Sprint(i), Before: at2(texts[i+1]), After: at2(texts[i])})
	}
	content := func(v journal.Version) ([]byte, error) { return []byte(v.Text), nil }
	for line, want := range []int{1, -1, 0, 2} {
		if got, err := journal.Blame([]byte(texts[0]), line, changes, content); got != want || err != nil {
			t.Errorf("line %d: %d, want %d (%v)", line, got, want, err)
		}
	}
	boom := errors.New("boom")
	if _, err := journal.Blame([]byte(texts[0]), 1, changes,
		func(journal.Version) ([]byte, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("content that cannot be read: %v", err)
	}
}

func at2(text string) journal.Version { return journal.TextVersion(text) }

// FuzzBlame checks that a line is found in exactly the version that the change found, and
// not in the one before.
func FuzzBlame(f *testing.F) {
	f.Add("a\nb\n", "b\na\n", "b\n", 0)
	f.Add("", "x", "x\ny", 1)
	f.Add("a\r\n\n\n", "a\n\n", "\n\n\n", 2)
	f.Fuzz(func(t *testing.T, first, second, third string, line int) {
		lines := strings.SplitAfter(third, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if line < 0 || line >= len(lines) {
			return
		}
		versions := []string{third, second, first}
		changes := []journal.Change{{Before: at2(second), After: at2(third)}, {Before: at2(first), After: at2(second)}}
		i, err := journal.Blame([]byte(third), line, changes,
			func(v journal.Version) ([]byte, error) { return []byte(v.Text), nil })
		if err != nil {
			t.Fatal(err)
		}
		found := 2
		if i >= 0 {
			found = i
		}
		for _, v := range versions[:found+1] {
			if !strings.Contains(v, strings.TrimSuffix(lines[line], "\n")) && validText(versions) {
				t.Errorf("line %q was introduced by change %d, and is not in %q", lines[line], i, v)
			}
		}
	})
}

func validText(all []string) bool {
	return !slices.ContainsFunc(all,
		func(s string) bool { return strings.ToValidUTF8(s, "") != s || strings.Contains(s, "\x00") })
}

func TestDiff(t *testing.T) {
	t.Parallel()
	d := journal.DiffOf("old", "new", []byte("a\nb\n"), []byte("a\nc\nd"))
	if d.Added != 2 || d.Removed != 1 || d.Size() != "+2 -1" || !strings.HasPrefix(d.Text, "--- old\n+++ new\n") {
		t.Errorf("%+v", d)
	}
	if d := journal.DiffOf("old", "new", []byte("a"), []byte("\x00")); !d.Binary || d.Text == "" {
		t.Errorf("binary: %+v", d)
	}
	latin := []byte("Stra\xdfe nach M\xfcnchen, sch\xf6n und gr\xfcn\n")
	if d := journal.DiffOf("old", "new", latin, append(latin, "f\xfcr Anna\n"...)); d.Added != 1 || d.Removed != 0 ||
		!strings.Contains(d.Text, "+für Anna\n") {
		t.Errorf("another encoding: %+v", d)
	}
	if d := journal.DiffOf("old", "new", latin, []byte("Straße nach München, schön und grün\n")); !d.Binary ||
		d.Text == "" {
		t.Errorf("the same text in another encoding: %+v", d)
	}
	if d := journal.DiffOf("old", "new", nil, nil); d != (journal.Diff{}) {
		t.Errorf("no difference: %+v", d)
	}
}
