package inbound

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/approval"
)

func FuzzApprove(f *testing.F) {
	for _, s := range []string{"", "yes", "deny", "a1 allow-once", "a1  ALLOW-ALWAYS ", "allow-once a1", "a1 deny please",
		"a1 \u202eyned", "a\x00 no", "expired", "a1 withdrawn"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		id, d, ok := parseApprove(args)
		words := strings.Fields(args)
		if !ok {
			return
		}
		want, known := approval.ParseDecision(words[len(words)-1])
		if !known || d != want || len(words) > 2 || len(words) == 2 && id != words[0] || len(words) == 1 && id != "" {
			t.Fatalf("%q is %q of %q", args, d, id)
		}
	})
}
