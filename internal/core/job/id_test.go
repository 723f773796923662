package job_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/job"
)

func TestFind(t *testing.T) {
	t.Parallel()
	jobs := []job.Job{{ID: "abcd-1", Name: "report"}, {ID: "abcd-2", Name: "Report"}, {ID: "ef", Name: "abcd-2"},
		{ID: "long-3", Name: "x", DisplayName: "Water"}}
	for ref, want := range map[string]string{
		"abcd-1": "abcd-1", "abcd-2": "abcd-2", "LONG": "long-3", "water": "long-3", "ef": "ef", " ef ": "ef",
		"abcd": "2 jobs match", "report": "2 jobs match", "e": "no job", "": "which job", "none": "no job",
	} {
		j, err := job.Find(jobs, ref)
		got := string(j.ID)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("Find(%q) = %q, want %q", ref, got, want)
		}
	}
	first, again := job.IDOf("a"), job.IDOf("a")
	if first == job.IDOf("b") || first != again {
		t.Error("ids do not follow from the calls")
	}
}
