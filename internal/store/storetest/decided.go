package storetest

import (
	"fmt"
	"testing"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/store"
)

// testDecided looks at requests that do not wait any more, a page at a time.
func testDecided(t *testing.T, s store.Store) {
	update(t, s, func(tx store.Tx) error {
		for n := range 6 {
			r := approval.Request{
				ID: fmt.Sprintf("ap-%d", n), Session: keyA, Run: "run-1", Call: "c", Tool: "exec", Text: "ls", Hash: "h",
				Requester: chela.Owner("token"), Created: at(n), Expires: at(n + 30), Decision: approval.Deny, By: "owner", Via: "token", Decided: at(9 - n),
			}
			if n == 2 {
				r.Decision, r.By, r.Via = approval.Pending, "", ""
			}
			if err := tx.Approvals().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tt := range []struct {
		name, before string
		n            int
		want         []string
	}{
		{"the last ones", "", 3, []string{"ap-5", "ap-4", "ap-3"}},
		{"those before them", "ap-3", 3, []string{"ap-1", "ap-0"}},
		{"from one that waits", "ap-2", 3, []string{"ap-1", "ap-0"}},
		{"from one that is not there", "none", 3, nil},
	} {
		var got []string
		for _, r := range get(t, s, func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Decided(tt.before, tt.n) }) {
			if got = append(got, r.ID); r.Via != "token" {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
		same(t, tt.name, got, tt.want)
	}
}
