package outbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chunk"
)

func TestRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" \n \n", nil},
		{"hello", []string{"r:0 0 hello pending"}},
		{"one two\n\n\n\n\n\n\n\n\n\n\n\n\n\nthree ", []string{"r:0 0 one two pending", "r:1 1 three pending"}},
		{"  code\n", []string{"r:0 0   code pending"}},
	} {
		var got []string
		for _, r := range Rows(Row{Key: "r"}, c.text, chunk.Options{Limit: 10}) {
			got = append(got, fmt.Sprint(r.Key, " ", r.Part, " ", r.Text, " ", r.State))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}
