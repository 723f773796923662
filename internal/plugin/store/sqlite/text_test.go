package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTextColumns lists the columns whose texts can be forgotten. Whoever adds a column
// decides whether it is one of them, or identifies something.
func TestTextColumns(t *testing.T) {
	d, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.openReader()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables, err := textTables(c.Tables)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range tables {
		fixed := x.Fixed()
		for _, name := range fixed {
			if !slices.Contains(x.Columns, name) {
				t.Errorf("%s has no column %s", x.Table, name)
			}
		}
		rest := slices.DeleteFunc(slices.Clone(x.Columns), func(name string) bool { return slices.Contains(fixed, name) })
		if len(rest) > 0 {
			got[x.Table] = strings.Join(rest, " ")
		}
	}
	want := map[string]string{
		"approval":  "request",
		"call":      "args raw ran outcome rights",
		"change":    "change",
		"child":     "child",
		"device":    "device request",
		"guest":     "guest",
		"entry":     "text parts note details sender_name origin",
		"heartbeat": "state",

		"invocation": "invocation",
		"item":       "principal inbound call note origin overrides result",
		"job":        "job",
		"job_run":    "run",
		"outbox":     "address text media error origin buttons poll",

		"run":     "origin principal address error text footer waits overrides",
		"session": "search meta",
		"setting": "value",
		"wake":    "wake",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
