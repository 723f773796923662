package storetest

import (
	"fmt"
	"testing"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
)

// testDecided reads the decided requests page by page.
func testDecided(t *testing.T, s store.Store) {
	update(t, s, func(tx store.Tx) error {
		for n := range 6 {
			r := approval.Request{
				ID:        fmt.Sprintf("ap-%d", n),
				Session:   keyA,
				Run:       "run-1",
				Call:      "c",
				Tool:      "exec",
				Text:      "ls",
				Hash:      "h",
				Requester: chela.Owner("token"),
				Created:   at(n),
				Expires:   at(n + 30),
				Decision:  approval.Deny,
				By:        "owner",
				Via:       "token",
				Decided:   at(9 - n),
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
		{"the newest", "", 3, []string{"ap-5", "ap-4", "ap-3"}},
		{"the page before", "ap-3", 3, []string{"ap-1", "ap-0"}},
		{"before a pending request", "ap-2", 3, []string{"ap-1", "ap-0"}},
		{"before an unknown request", "none", 3, nil},
	} {
		var got []string
		for _, r := range get(t, s,
			func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Decided(tt.before, tt.n) }) {
			if got = append(got, r.ID); r.Via != "token" {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
		same(t, tt.name, got, tt.want)
	}
}
