package index_test

import (
	"cmp"
	"encoding/json"
	"os"
	"testing"

	"github.com/chela-ai/chela/internal/core/memory"
)

// question is a question to the notes of testdata/retrieval.
type question struct {
	ID, Question, Lang, Kind, Path, Heading string
}

// TestRetrieval asks questions to 400 notes. Neither their author nor that of the
// questions knew how notes are found. Another file with questions is asked when
// CHELA_TEST_QUESTIONS names it.
//
// What words alone can do is limited. A question in words that the note does not contain
// looks like a question about a known person or thing that no note answers: the
// paraphrases are a fifth of the questions. The test keeps what is reached.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	const leastRight, leastSilent = 80, 85 // of 100
	var notes []struct{ Path, Heading, Text string }
	decode(t, "testdata/retrieval/notes.json", &notes)
	files := map[string]string{}
	for _, n := range notes {
		files[n.Path] += n.Text + "\n\n"
	}
	v := newVault(t, files)
	const own = "testdata/retrieval/questions.json"
	file := cmp.Or(os.Getenv("CHELA_TEST_QUESTIONS"), own)
	var questions []question
	decode(t, file, &questions)
	right, asked := map[string]int{}, map[string]int{}
	var scores, others []float64 // of the right note, 0 if it is not found; of what is found when no note answers
	for _, q := range questions {
		hits, err := v.Search(t.Context(), memory.Query{Text: q.Question, MinScore: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		score := 0.0
		for _, h := range hits {
			if q.Kind == "none" || h.Path == q.Path {
				score = max(score, h.Score)
			}
		}
		if q.Kind == "none" {
			others = append(others, score)
			continue
		}
		scores = append(scores, score)
		asked[q.Kind]++
		if score >= memory.DefaultMinScore {
			right[q.Kind]++
		}
	}
	for kind, n := range asked {
		t.Logf("%s: %d of %d", kind, right[kind], n)
	}
	percent := func(of []float64, f func(float64) bool) int {
		n := 0
		for _, s := range of {
			if f(s) {
				n++
			}
		}
		return 100 * n / max(len(of), 1)
	}
	for _, least := range []float64{0.001, 0.1, 0.2, 0.25, 0.3, memory.DefaultMinScore, 0.4, 0.45} {
		found := percent(scores, func(s float64) bool { return s >= least })
		silent := percent(others, func(s float64) bool { return s < least })
		t.Logf("minScore %.2f: the right note is among the first 6 for %d %%, nothing is found for %d %% of the questions without an answer", least, found, silent)
		if file == own && least == memory.DefaultMinScore && (found < leastRight || silent < leastSilent) {
			t.Errorf("at the default less than %d %% and %d %%", leastRight, leastSilent)
		}
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
